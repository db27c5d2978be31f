import { type ExecutionResult, GraphQLError } from 'graphql';

/** Creates a GraphQL result with one error that was detected in the browser. */
export function errorResult(message: string, extensions?: Record<string, unknown>): ExecutionResult {
  return { errors: [new GraphQLError(message, { extensions })] };
}
