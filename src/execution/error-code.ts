import type { GraphQLError } from 'graphql';

/** Sets `extensions.code` of an error, unless it has one. */
export function setErrorCode(error: GraphQLError, code: string): void {
  // Extensions may be frozen, since they are those of an error that the application threw.
  if (error.extensions['code'] === undefined) Reflect.set(error.extensions, 'code', code);
}
