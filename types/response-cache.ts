import type { CachePolicy } from './caching.ts';
import type { ByteSize, Duration, Hook, MaybePromise } from './connect.ts';
import type { RedisSource } from './redis.ts';

/** A stored response. All members except `body` have a JSON form. */
export interface CacheEntry {
  /** The JSON text of the result: a string of ASCII characters only, or UTF-8 bytes. */
  readonly body: string | Buffer;
  /** The policy of the result, with its tags. Invalidating one of the tags removes the entry. */
  readonly policy: CachePolicy;
  /** Milliseconds since 1970. */
  readonly storedAt: number;
  /** Milliseconds for which the entry is fresh. */
  readonly lifetime: number;
  /** Milliseconds since 1970 after which the entry is not needed any more. */
  readonly expires: number;
}

/** The result of a lookup. */
export interface CacheLookup {
  readonly entry: CacheEntry | undefined;
  /**
   * The state of the store at the time of the lookup, for a later `set`. Undefined if the store is not
   * available; the response is then not stored.
   */
  readonly version: number | string | undefined;
}

/** A store of responses. A response cache calls it for each request that may be cached. */
export interface CacheStore {
  /** Returns the entry of a key, unless it has expired or one of its tags was invalidated. */
  get(key: string): MaybePromise<CacheLookup>;
  /**
   * Stores an entry. Returns false, and stores nothing, if one of its tags was invalidated after the lookup
   * that returned `version`, or if the entry is too large.
   */
  set(key: string, entry: CacheEntry, version: number | string): MaybePromise<boolean>;
  /**
   * Removes all entries with one of these tags; the tag `*` removes all entries. Resolves when this process returns
   * none of them any more, and the others have been told.
   */
  invalidate(tags: readonly string[]): MaybePromise<void>;
}

/** The part of a pubsub that invalidation uses. `createPubSub` of `espalier/pubsub` returns one. */
export interface CachePubSub {
  publish(topic: string, payload: unknown): Promise<void>;
  /** Streams later events. The stream rejects when events may have been missed, and is then opened again. */
  subscribe(topic: string): AsyncIterable<unknown>;
}

/** The option `responseCache` of `graphqlHTTP`: stores results and sends them without an execution. */
export interface ResponseCacheOptions<Req = object, Context = unknown> {
  /** Where responses are stored: a `redisStore`, or another implementation. @default the memory of the process */
  store?: CacheStore | undefined;
  /** Bytes of memory for responses, without `store`. A response may take an eighth of it. @default 67108864 (64 MiB) */
  maxBytes?: ByteSize | undefined;
  /**
   * Distributes invalidations between the processes, without `store`. All processes need the same pubsub.
   * @default none: `invalidate` has effect in this process
   */
  pubsub?: CachePubSub | undefined;
  /**
   * Returns the part of the key that separates users, such as the user's id; `null` for a request whose
   * response must not be stored. Without it and the option `caller`, no request with `Authorization` or `Cookie` uses the
   * cache, and responses with the scope PRIVATE are not stored.
   * @default none for public results, and the id of the option `caller` for private ones
   */
  key?: Hook<[req: Req, context: Context], string | null | undefined> | undefined;
  /** The time for which an expired response is sent while a new one is created. @default 0 */
  staleWhileRevalidate?: Duration | undefined;
  /** The time for which an expired response is sent instead of unexpected errors. @default 0 */
  staleIfError?: Duration | undefined;
}

/** Removes responses from the caches of all processes. */
export interface CacheInvalidator {
  /**
   * Removes the responses with one of these tags; the tag `*` removes all. With `redisStore` it resolves when no
   * process sends one of them any more; with a pubsub when the message is published. Rejects with the code
   * `ERR_INVALIDATION_PENDING` after 10 seconds; a `redisStore` then still sends the invalidation until Redis has
   * executed it.
   */
  invalidate(tags: string | readonly string[]): Promise<void>;
}

/** Options of `redisStore`. */
export interface RedisStoreOptions {
  /**
   * The Redis. A connection with the settings of a client is opened. Handlers with different resolvers, and versions of an
   * application whose responses differ, need a different `keyPrefix` of its URL or client.
   */
  redis: RedisSource;
}

/** A store of responses in Redis, which several processes share. */
export interface RedisStore extends CacheStore {
  /** Disconnects from Redis. */
  close(): Promise<void>;
}
