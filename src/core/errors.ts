import { GraphQLError, type GraphQLFormattedError } from 'graphql';
import { assertSync } from '../options/assert-sync.ts';
import { formatValue } from '../options/format-value.ts';
import { optionError } from '../options/resolve-options.ts';
import { GRAPHQL_OPTIONS } from '../options/scopes.ts';
import type { CoreSettings } from './options.ts';

/** Longest message a client gets: values of its own that graphql-js quotes are not echoed at full length. */
const MAX_MESSAGE = 1024;
/** What clients read instead of a text that was not written for them. */
export const MASKED = 'Internal server error';

/** Masks, clips and formats the errors of one answer. Field errors are all told: clients match them with their nulls. */
export function createErrorFormatter({
  formatError,
}: Pick<CoreSettings, 'formatError'>): (errors: readonly GraphQLError[]) => readonly GraphQLFormattedError[] {
  const format =
    formatError === undefined
      ? maskError
      : (error: GraphQLError) => checked(formatError(maskError(error), error));
  return (errors) => errors.map(format);
}

/** No client could read an error that is nothing, as of a `formatError` that forgot to return one. */
function checked(formatted: GraphQLFormattedError): GraphQLFormattedError {
  assertSync(formatted, GRAPHQL_OPTIONS, 'formatError');
  if (typeof formatted === 'object' && formatted !== null) return formatted;
  throw optionError(GRAPHQL_OPTIONS, `"formatError" returned ${formatValue(formatted)}; accepted: an object`);
}

/**
 * What clients see of an error: a `GraphQLError` made on purpose with its message, anything else without its text.
 * `extensions.http` is for us, not for clients.
 */
function maskError(error: GraphQLError): GraphQLFormattedError {
  const { extensions, ...formatted } = error.toJSON();
  const message = isOwn(error) ? clip(formatted.message) : MASKED;
  const { http: _, ...shown } = extensions ?? {};
  return Object.keys(shown).length === 0
    ? { ...formatted, message }
    : { ...formatted, message, extensions: shown };
}

/** True for an error whose text was written for clients: graphql-js's own, or one thrown as a GraphQLError. */
function isOwn(error: GraphQLError): boolean {
  const original = error.originalError;
  return original === undefined || original === null || isGraphQLError(original);
}

/** By name too, since an application may hold a second copy of graphql. */
export function isGraphQLError(error: unknown): error is GraphQLError {
  return error instanceof GraphQLError || (error instanceof Error && error.name === 'GraphQLError');
}

function clip(message: string): string {
  return message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE)}…` : message;
}

/** A request refused before execution, as GraphQL errors know it: a message and a stable code. */
export function refusalError(message: string, code: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code } });
}
