import type { MaybePromise } from '../../types/connect.ts';
import type { CacheInvalidator, CachePubSub, CacheStore } from '../../types/response-cache.ts';
import type { GraphQLCore } from '../core/core.ts';
import { withTimeLimit } from '../http/timers.ts';
import {
  isEither,
  isFunction,
  isListOf,
  isObject,
  isString,
  type OptionScope,
  optionError,
  wrongArgument,
} from '../options/rules.ts';
import { GRAPHQL_OPTIONS, INVALIDATOR_OPTIONS } from '../options/scopes.ts';
import { publishInvalidation } from './invalidations.ts';
import { normalTag } from './tags.ts';

/** Milliseconds after which a caller of `invalidate` stops waiting. */
const TIMEOUT_MILLISECONDS = 10_000;

const isTags = isEither(isString, isListOf(isString));

/** Checks the argument of `invalidate` and limits the wait for the acknowledgement. */
async function invalidateTags(
  scope: OptionScope,
  tags: unknown,
  invalidate: (tags: readonly string[]) => MaybePromise<void>,
): Promise<void> {
  if (!isTags(tags)) throw wrongArgument(scope, 'tags', tags, 'a tag, or a list of tags');
  const list = [tags as string | readonly string[]].flat();
  if (list.length === 0) return;
  await withTimeLimit(Promise.resolve(invalidate(list)), TIMEOUT_MILLISECONDS, pendingError);
}

const pendingError = (): Error =>
  Object.assign(
    new Error(
      `The invalidation was not acknowledged within ${TIMEOUT_MILLISECONDS} ms; it is still being sent`,
    ),
    { code: 'ERR_INVALIDATION_PENDING' },
  );

/** Creates an invalidator for a process without a handler. */
export function createCacheInvalidator(target: CachePubSub | CacheStore): CacheInvalidator {
  if (isStore(target)) {
    return {
      invalidate: (tags) =>
        invalidateTags(INVALIDATOR_OPTIONS, tags, (list) => target.invalidate(list.map(normalTag))),
    };
  }
  if (!isPubSub(target)) {
    throw wrongArgument(INVALIDATOR_OPTIONS, 'target', target, 'a pubsub of createPubSub, or a store');
  }
  return {
    invalidate: (tags) =>
      invalidateTags(INVALIDATOR_OPTIONS, tags, (list) => publishInvalidation(target, list.map(normalTag))),
  };
}

/** Accepts a store of responses. */
export const isStore = (value: unknown): value is CacheStore =>
  isObject(value) && ['get', 'set', 'invalidate'].every((name) => isFunction(value[name]));

/** Accepts a pubsub. */
export const isPubSub = (value: unknown): value is CachePubSub =>
  isObject(value) && ['publish', 'subscribe'].every((name) => isFunction(value[name]));

/** Creates the method `invalidate` of a handler. */
export function createInvalidate({ cacheStore }: GraphQLCore): CacheInvalidator['invalidate'] {
  return (tags) =>
    invalidateTags(GRAPHQL_OPTIONS, tags, (list) => {
      if (cacheStore === undefined) {
        throw optionError(
          GRAPHQL_OPTIONS,
          'invalidate: the option "responseCache" is off; set it to store results',
        );
      }
      return cacheStore.invalidate(list);
    });
}
