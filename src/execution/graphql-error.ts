import { GraphQLError } from 'graphql';
import { toError } from '../http/reply.ts';

/** Compares the name too, since an application may have a second copy of graphql. Never throws. */
export function isGraphQLError(error: unknown): error is GraphQLError {
  try {
    return error instanceof GraphQLError || (error instanceof Error && error.name === 'GraphQLError');
  } catch {
    return false; // a revoked proxy, or a getter that throws
  }
}

/** Converts a thrown value to an error that can be formatted. Never throws. */
export function toGraphQLError(thrown: unknown): GraphQLError {
  if (isGraphQLError(thrown)) return thrown;
  try {
    const originalError = toError(thrown);
    return new GraphQLError(originalError.message, { originalError });
  } catch (cause) {
    return toGraphQLError(new Error('An error was thrown whose properties cannot be read', { cause }));
  }
}

/** Creates the error of a refused request, with a stable code in its extensions. */
export function refusalError(message: string, code: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code } });
}
