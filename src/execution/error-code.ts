import type { GraphQLError } from 'graphql';

/** Sets `extensions.code` of an error, unless it has one. */
export function setErrorCode(error: GraphQLError, code: string): void {
  // `Reflect.set` does not throw: the extensions of an error that the application threw may be frozen.
  if (error.extensions['code'] === undefined) Reflect.set(error.extensions, 'code', code);
}
