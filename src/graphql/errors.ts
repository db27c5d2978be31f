import { GraphQLError, type GraphQLFormattedError } from 'graphql';

/**
 * What clients see of an error: a `GraphQLError` thrown on purpose as it is, anything else without its text.
 * The original stays reachable for `formatError` and the diagnostics channels.
 */
export function maskError(error: GraphQLError): GraphQLFormattedError {
  const original = error.originalError;
  if (original === undefined || original === null || original instanceof GraphQLError) return error.toJSON();
  return { ...error.toJSON(), message: 'Internal server error' };
}
