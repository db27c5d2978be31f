import type { GraphQLError, GraphQLFormattedError } from 'graphql';
import type { ErrorDetails, FormatErrorDetails } from '../../types/graphql.ts';
import type { Reporter } from '../diagnostics/logging.ts';
import { statusOfRefusal } from '../execution/deadline.ts';
import {
  isClientError,
  isGraphQLError,
  isServerError,
  refuse,
  toGraphQLError,
} from '../execution/graphql-error.ts';
import type { EngineSettings, ErrorOrigin, RequestError } from '../execution/types.ts';
import { HttpError } from '../http/reply.ts';
import { assertSync, wrongReturnValue } from '../options/rules.ts';
import { GRAPHQL_OPTIONS } from '../options/scopes.ts';
import type { CoreSettings } from './options.ts';

/** The maximum characters of a message. graphql-js quotes the client's values, which may be long. */
const MAX_MESSAGE_LENGTH = 1024;
/** The message that replaces the message of an unexpected error. */
export const MASKED = 'Internal server error';
export const MASKED_CODE = 'INTERNAL_SERVER_ERROR';

/** Masks and formats the errors of one response, in order, and reports unexpected errors. */
export type FormatErrors = (
  errors: readonly GraphQLError[],
  origin?: ErrorOrigin,
) => readonly GraphQLFormattedError[];

/**
 * Creates the function that formats errors for the client. An unexpected error is reported and keeps only its
 * path and locations; with `debug` its message becomes `extensions.debug`. No field error is removed: clients
 * match errors with nulls. An error whose own formatting fails is masked, so that the rest of the response stays.
 */
export function createErrorFormatter(
  { formatError }: Pick<CoreSettings, 'formatError'>,
  { report }: Pick<Reporter, 'report'>,
  { debug, hideSuggestions }: { readonly debug: boolean; readonly hideSuggestions: boolean },
): FormatErrors {
  // An error may be formatted twice, such as the error of a refused operation on a WebSocket.
  const reported = new WeakSet<GraphQLError>();

  function formatUnexpected(error: GraphQLError, origin: ErrorOrigin | undefined): GraphQLFormattedError {
    // After a disconnect the resolvers fail because they were aborted.
    if (!reported.has(error) && origin?.aborted !== true) {
      reported.add(error);
      report(thrownError(error), errorDetails(origin, error.path));
    }
    const message = isNullError(error) ? error.message : MASKED;
    return maskedError(error, message, debug ? clip(error.message) : undefined);
  }

  function format(error: GraphQLError, origin: ErrorOrigin | undefined): GraphQLFormattedError {
    const isPublic = isPublicError(error);
    let formatted = isPublic ? formatPublic(error) : formatUnexpected(error, origin);
    if (hideSuggestions && error.path === undefined) formatted = withoutSuggestion(formatted);
    if (formatError === undefined && (!isPublic || formatted.extensions === undefined)) return formatted;
    try {
      if (formatError !== undefined)
        formatted = withoutHttp(
          assertFormatted(formatError(formatted, error, formatDetails(origin, error.path))),
        );
      // Extensions may contain a BigInt, or themselves.
      JSON.stringify(formatted);
      return formatted;
    } catch (thrown) {
      const failure =
        formatError === undefined
          ? new TypeError('An error has extensions that JSON cannot represent', { cause: error })
          : thrown;
      report(failure, errorDetails(origin, error.path));
      return maskedError(error, MASKED, undefined);
    }
  }

  return (errors, origin) =>
    errors.map((error) => {
      try {
        return format(error, origin);
      } catch (failure) {
        // An error of the application whose members cannot be read.
        report(failure, errorDetails(origin));
        return { message: MASKED, extensions: { code: MASKED_CODE } };
      }
    });
}

/** The error without its message. graphql-js does not convert an error that already has a `path` to a GraphQLError. */
function maskedError(error: GraphQLError, message: string, debug: string | undefined): GraphQLFormattedError {
  const { locations, path } = isGraphQLError(error) ? error : ({} as Partial<GraphQLError>);
  return {
    message,
    ...(locations === undefined ? undefined : { locations }),
    ...(path === undefined ? undefined : { path }),
    extensions: debug === undefined ? { code: MASKED_CODE } : { code: MASKED_CODE, debug },
  };
}

/** Removes `extensions.http`, which sets the status and headers of the response. */
function withoutHttp(formatted: GraphQLFormattedError): GraphQLFormattedError {
  if (formatted.extensions?.['http'] === undefined) return formatted;
  const { http: _, ...extensions } = formatted.extensions;
  return { ...formatted, extensions };
}

/**
 * Creates the function that masks errors without creating GraphQLErrors (see `EngineSettings`). Undefined if
 * `formatError` or `debug` needs the errors.
 */
export function createErrorMask(
  { formatError }: Pick<CoreSettings, 'formatError'>,
  { report }: Pick<Reporter, 'report'>,
  { debug }: { readonly debug: boolean },
): EngineSettings['maskError'] {
  if (debug || formatError !== undefined) return undefined;
  return (error, { locations, path }, origin) => {
    if (origin?.aborted !== true) report(error, errorDetails(origin, path));
    const message = isNullError(error) ? error.message : MASKED;
    const extensions = { code: MASKED_CODE };
    return locations === undefined ? { message, path, extensions } : { message, locations, path, extensions };
  };
}

/** Messages of graphql-js may end with suggestions; not all versions have an option to omit them. */
const SUGGESTION = / Did you mean [^?]*\?$/;

function withoutSuggestion(formatted: GraphQLFormattedError): GraphQLFormattedError {
  const message = formatted.message.replace(SUGGESTION, '');
  return message === formatted.message ? formatted : { ...formatted, message };
}

const formatDetails = (origin: ErrorOrigin | undefined, path: GraphQLError['path']): FormatErrorDetails => ({
  ...errorDetails(origin, path),
  context: origin?.contextValue,
  caller: origin?.caller,
});

/** The details of a report. */
export function errorDetails(
  origin: ErrorOrigin | undefined,
  path?: readonly (string | number)[],
): ErrorDetails {
  const { transport = 'http', operationName, request, socket } = origin ?? {};
  return { transport, operationName, path, request, socket };
}

/** Formats an error with its own message. */
function formatPublic(error: GraphQLError): GraphQLFormattedError {
  const { extensions, ...formatted } = error.toJSON();
  const message = clip(formatted.message);
  const { http: _, ...visible } = extensions ?? {};
  return Object.keys(visible).length === 0
    ? { ...formatted, message }
    : { ...formatted, message, extensions: visible };
}

/**
 * Whether the message of an error was written for clients: an error of graphql-js about the request, or one
 * that the application threw as a GraphQLError.
 */
export function isPublicError(error: GraphQLError): boolean {
  if (!isGraphQLError(error)) return false;
  if (isClientError(error)) return true;
  const thrown = thrownError(error);
  return isGraphQLError(thrown) && (error.path === undefined || !isServerError(thrown));
}

/** The wrappers of one error that are opened. */
const MAX_WRAPPERS = 20;

/**
 * Returns the error that was thrown first. A GraphQLError with a path is a wrapper of an execution, also of a nested
 * one, such as that of a local subschema. One without a path was thrown by the application around its cause.
 */
function thrownError(error: GraphQLError): unknown {
  let thrown: unknown = error.originalError ?? error;
  for (let count = 0; count < MAX_WRAPPERS && isGraphQLError(thrown); count++) {
    const { originalError, path } = thrown;
    if (originalError === undefined || originalError === null) return thrown;
    if (path === undefined && !isGraphQLError(originalError)) return thrown;
    thrown = originalError;
  }
  return thrown;
}

/** graphql-js's message about a null, which names only types and fields of the schema. */
const NULL_ERROR = /^Cannot return null for non-nullable field \w+\.\w+\.$/;
const isNullError = ({ message }: Error): boolean => NULL_ERROR.test(message);

/**
 * The result of an operation for which a function of the application has failed, such as `context`. A GraphQLError is
 * meant for the client; any other error is masked when it is formatted.
 */
export function failedOperation(error: unknown): RequestError {
  if (isGraphQLError(error)) return { kind: 'error', errors: [error], status: statusOfRefusal(error) };
  return { kind: 'error', errors: [toGraphQLError(error)], status: 500, limit: true };
}

/** Like `failedOperation`, for an error that may be a mistake of the client in one operation of several. */
export function refusalOf(error: unknown): RequestError {
  if (!HttpError.is(error) || error.code === undefined) return failedOperation(error);
  return refuse(error.message, error.code, error.status);
}

function clip(message: unknown): string {
  const text = String(message);
  return text.length > MAX_MESSAGE_LENGTH ? `${text.slice(0, MAX_MESSAGE_LENGTH)}\u2026` : text;
}

/** Checks the result of `formatError`: without a return statement clients could not read the response. */
function assertFormatted(formatted: GraphQLFormattedError): GraphQLFormattedError {
  assertSync(formatted, GRAPHQL_OPTIONS, 'formatError');
  if (typeof formatted === 'object' && formatted !== null) return formatted;
  throw wrongReturnValue(GRAPHQL_OPTIONS, 'formatError', formatted, 'an object');
}
