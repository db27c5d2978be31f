import type { UserOptions } from './caller.ts';
import type { ContextSource, Duration } from './connect.ts';
import type { RedisSource } from './redis.ts';

/**
 * Options of idempotent mutations. A client that repeats a mutation with the same key gets the stored result, with the
 * header `Idempotency-Replayed: true`. The key is the argument of `@idempotent(key:)` at a root field, or the header
 * `Idempotency-Key`. Each user has keys of their own; anonymous ones share theirs.
 */
export interface IdempotencyOptions<Source = ContextSource, Context = unknown>
  extends UserOptions<Source, Context> {
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
  /** How long a result is kept, and how long a key stays unknown after a crash. @default 86400000, a day */
  ttl?: Duration | undefined;
}
