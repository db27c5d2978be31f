import { GraphQLError, type GraphQLFormattedError } from 'graphql';
import { assertSync } from '../options/assert-sync.ts';
import { formatValue } from '../options/format-value.ts';
import { optionError } from '../options/resolve-options.ts';
import { GRAPHQL_OPTIONS } from '../options/scopes.ts';
import type { CoreSettings } from './options.ts';

/** Characters of a message: graphql-js quotes the client's values, which are not echoed at full length. */
const MAX_MESSAGE_LENGTH = 1024;
/** The message that replaces the message of an unexpected error. */
export const MASKED = 'Internal server error';

/** Creates the function that masks, clips and formats the errors of one response. It keeps all field errors: clients match them with nulls. */
export function createErrorFormatter({
  formatError,
}: Pick<CoreSettings, 'formatError'>): (errors: readonly GraphQLError[]) => readonly GraphQLFormattedError[] {
  const format =
    formatError === undefined
      ? maskError
      : (error: GraphQLError) => assertFormatted(formatError(maskError(error), error));
  return (errors) => errors.map(format);
}

/** A `formatError` without a return statement would produce a response that clients cannot read. */
function assertFormatted(formatted: GraphQLFormattedError): GraphQLFormattedError {
  assertSync(formatted, GRAPHQL_OPTIONS, 'formatError');
  if (typeof formatted === 'object' && formatted !== null) return formatted;
  throw optionError(
    GRAPHQL_OPTIONS,
    `option "formatError" returned ${formatValue(formatted)}; accepted: an object`,
  );
}

/**
 * Formats an error for the client: a `GraphQLError` with its message, any other error with its message hidden. Removes
 * `extensions.http`, which sets the status and headers of the response.
 */
function maskError(error: GraphQLError): GraphQLFormattedError {
  const { extensions, ...formatted } = error.toJSON();
  const message = isPublic(error) ? clip(formatted.message) : MASKED;
  const { http: _, ...visible } = extensions ?? {};
  return Object.keys(visible).length === 0
    ? { ...formatted, message }
    : { ...formatted, message, extensions: visible };
}

/** Whether the message was written for clients: an error of graphql-js, or one that was thrown as a GraphQLError. */
function isPublic(error: GraphQLError): boolean {
  const original = error.originalError;
  return original === undefined || original === null || isGraphQLError(original);
}

/** Also by name, since an application may have a second copy of graphql. */
export function isGraphQLError(error: unknown): error is GraphQLError {
  return error instanceof GraphQLError || (error instanceof Error && error.name === 'GraphQLError');
}

function clip(message: string): string {
  return message.length > MAX_MESSAGE_LENGTH ? `${message.slice(0, MAX_MESSAGE_LENGTH)}…` : message;
}

/** Creates the error of a refused request, with a stable code in its extensions. */
export function refusalError(message: string, code: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code } });
}
