import type { CacheInvalidator } from '../../../types/response-cache.ts';
import { invalidateTags } from '../../cache/invalidator.ts';
import type { GraphQLCore } from '../../core/core.ts';
import { optionError } from '../../options/rules.ts';
import { GRAPHQL_OPTIONS } from '../../options/scopes.ts';

/** Creates the method `invalidate` of a handler. */
export function createInvalidate({ cacheStore }: GraphQLCore): CacheInvalidator['invalidate'] {
  return (tags) =>
    invalidateTags(GRAPHQL_OPTIONS, tags, (list) => {
      if (cacheStore === undefined) {
        throw optionError(GRAPHQL_OPTIONS, 'invalidate: the option "cache" is off; set it to store results');
      }
      return cacheStore.invalidate(list);
    });
}
