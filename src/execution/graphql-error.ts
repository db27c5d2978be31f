import { GraphQLError } from 'graphql';
import { toError } from '../http/reply.ts';
import type { RequestError } from './types.ts';

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

/** The GraphQLErrors that executors of this package create about values of the server. */
const serverErrors = new WeakSet<object>();

export function markServerError(error: GraphQLError): GraphQLError {
  serverErrors.add(error);
  return error;
}

/** The GraphQLErrors about documents of clients, also those that wrap what a scalar has thrown for a literal. */
const clientErrors = new WeakSet<object>();

export const markClientError = (error: GraphQLError): void => void clientErrors.add(error);

export const isClientError = (error: GraphQLError): boolean => clientErrors.has(error);

/** The GraphQLErrors that the application threw or returned in an execution of this package. */
const thrownByApplication = new WeakSet<object>();

/** Notes what a function of the application threw. An error with a path comes from another execution. */
export function noteThrown(reason: unknown): void {
  if (isGraphQLError(reason) && reason.path === undefined) thrownByApplication.add(reason);
}

/**
 * The messages of graphql-js about values of resolvers, which they contain. They tell such errors of other executions,
 * which marked none: a function of the option `engine`, or a local subschema.
 */
const SERVER_VALUE =
  /^(?:(?:Int|Float|String|Boolean|ID|Enum "\w+") cannot represent |Expected value of type "|Expected Iterable, |Abstract type "|Runtime Object type "|Support for returning GraphQLObjectType |Subscription field must return Async Iterable\.)/;

/** Whether a GraphQLError of an execution is about a value of the server: neither thrown for clients, nor about their arguments. */
export const isServerError = (thrown: GraphQLError): boolean =>
  serverErrors.has(thrown) || (!thrownByApplication.has(thrown) && SERVER_VALUE.test(thrown.message));

/** Creates the error of a refused request, with a stable code in its extensions. */
export function refusalError(message: string, code: string): GraphQLError {
  return new GraphQLError(message, { extensions: { code } });
}

/** Refuses a request with one error. */
export const refuse = (message: string, code: string, status = 400): RequestError => ({
  kind: 'error',
  errors: [refusalError(message, code)],
  status,
});
