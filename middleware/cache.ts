import { createCacheInvalidator } from '../src/cache/invalidations.ts';
import { createRedisStore } from '../src/cache/redis-store.ts';
import type {
  CacheInvalidator,
  CachePubSub,
  CacheStore,
  RedisStore,
  RedisStoreOptions,
} from '../types/response-cache.ts';

export type * from '../types/redis.ts';
export type * from '../types/response-cache.ts';

/**
 * Creates a store of responses in Redis, for `responseCache.store` of `graphqlHTTP`. Processes with the same Redis
 * and prefix share it.
 *
 * @throws TypeError (code `ERR_OPTION`) for an unknown option or a wrong value.
 */
export function redisStore(options: RedisStoreOptions): RedisStore {
  return createRedisStore(options);
}

/**
 * Creates an invalidator for a process without a handler, such as a worker.
 *
 * @param target - the pubsub of the handlers' option `responseCache.pubsub`, or their store
 * @throws TypeError (code `ERR_OPTION`) for a value that is neither.
 */
export function createInvalidator(target: CachePubSub | CacheStore): CacheInvalidator {
  return createCacheInvalidator(target);
}
