import type { ContextSource, Duration, Hook } from './connect.ts';
import type { RedisSource } from './redis.ts';

/**
 * Options of idempotent mutations. A client that repeats a mutation with the same key gets the stored result, with the
 * header `Idempotency-Replayed: true`. The key is the argument of `@idempotent(key:)` at a root field, or the header
 * `Idempotency-Key`.
 */
export interface IdempotencyOptions<Source = ContextSource, Context = unknown> {
  /**
   * Returns the id of the user whose keys these are, such as `req.auth.sub`; null for callers without one, who share
   * their keys. It gets the request or, over sockets, the WebSocket, and the context value.
   * @default the id of the option `caller`, without which the function is required
   */
  user?: Hook<[source: Source, context: Context], string | number | null | undefined> | undefined;
  /**
   * The fields of the mutation type that need a key, or true for all of them. Without one they are refused with 400
   * (`IDEMPOTENCY_KEY_REQUIRED`). @default none
   */
  required?: boolean | readonly string[] | undefined;
  /**
   * The Redis that keeps the keys of all processes. It must not evict keys (`maxmemory-policy noeviction`), or every key is refused with 503.
   * @default the memory of this process, up to 64 MiB: only for a single process, which forgets its keys when it ends
   */
  redis?: RedisSource | undefined;
  /** Prefix of the keys in Redis. @default 'espalier:idempotency:' */
  prefix?: string | undefined;
  /** How long a result is kept, and how long a key stays unknown after a crash. @default 86400000, a day */
  ttl?: Duration | undefined;
  /**
   * How long a mutation counts as running after the last sign of its process, which renews it three times as often. Then
   * its key is unknown: it is refused with 409 (`IDEMPOTENCY_UNKNOWN`) and never executed again.
   * @default 15000
   */
  lease?: Duration | undefined;
  /**
   * How long a repetition waits for the first mutation, or for Redis, before it is refused with 409
   * (`IDEMPOTENCY_IN_PROGRESS`) or 503 (`IDEMPOTENCY_UNAVAILABLE`), and `Retry-After`.
   * @default 5000
   */
  wait?: Duration | undefined;
}
