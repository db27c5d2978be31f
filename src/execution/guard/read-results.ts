import type { ExecutionResult, GraphQLError } from 'graphql';

/**
 * Whether every error of a result made only its own field null. graphql-js has read all other values then. An error that
 * has propagated leaves a null above the position that it names.
 */
export function isCompletelyRead({ errors, data }: ExecutionResult): boolean {
  if (errors === undefined) return true;
  // A GraphQLError that several resolvers throw has the path of the first field in all places.
  return new Set(errors).size === errors.length && errors.every((error) => isFieldNull(error, data));
}

function isFieldNull({ path }: GraphQLError, data: unknown): boolean {
  if (path === undefined) return false;
  let parent = data;
  for (const key of path) {
    if (typeof parent !== 'object' || parent === null) return false;
    parent = (parent as Record<string | number, unknown>)[key];
  }
  return true;
}
