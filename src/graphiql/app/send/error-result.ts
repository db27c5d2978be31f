import { type ExecutionResult, GraphQLError } from 'graphql';

/** A GraphQL result with one error that was found in the browser. */
export function errorResult(message: string, extensions?: Record<string, unknown>): ExecutionResult {
  return { errors: [new GraphQLError(message, { extensions })] };
}
