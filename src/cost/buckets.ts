import type { RedisCommands } from '../redis/clients.ts';
import { RedisScript } from '../redis/commands.ts';

/** The size of a bucket and how fast it fills. */
interface BucketSettings {
  /** The tokens of a full bucket. */
  readonly limit: number;
  /** Milliseconds in which an empty bucket becomes full. */
  readonly window: number;
}

/** The state of a bucket after an operation took tokens from it, or could not. */
export interface Taken {
  readonly allowed: boolean;
  /** The tokens that are left. */
  readonly left: number;
}

/** Takes tokens from the bucket of a key. */
export interface BucketStore {
  take(key: string, tokens: number): Taken | Promise<Taken>;
}

/** Buckets of one process. More are possible, but then the oldest ones start again with all their tokens. */
const MAX_BUCKETS = 100_000;
/** Old buckets that each new one removes if they are full again. */
const CHECKED_PER_NEW = 2;

interface Bucket {
  left: number;
  /** The time of `left` in milliseconds. */
  at: number;
}

/** Creates the buckets of one process. `now` returns milliseconds of a clock that never goes back. */
export function createLocalBuckets(
  { limit, window }: BucketSettings,
  now: () => number = () => performance.now(),
): BucketStore {
  const buckets = new Map<string, Bucket>();
  const tokensPerMillisecond = limit / window;

  /** Removes the oldest buckets if they are full or too many. */
  function removeOld(time: number): void {
    let checked = 0;
    for (const [key, { at }] of buckets) {
      if (time - at < window && buckets.size <= MAX_BUCKETS) return;
      buckets.delete(key);
      checked += 1;
      if (checked === CHECKED_PER_NEW) return;
    }
  }

  return {
    take(key, tokens) {
      const time = now();
      const bucket = buckets.get(key) ?? { left: limit, at: time };
      bucket.left = Math.min(limit, bucket.left + (time - bucket.at) * tokensPerMillisecond);
      bucket.at = time;
      const allowed = tokens <= bucket.left;
      if (allowed) bucket.left -= tokens;
      // The last position, so that the first buckets are those that were not used for the longest time.
      buckets.delete(key);
      buckets.set(key, bucket);
      removeOld(time);
      return { allowed, left: bucket.left };
    },
  };
}

/**
 * Takes tokens in one step, by the clock of Redis. The numbers have 17 digits, which is the exact value of a
 * double. A refused operation changes nothing, unless the clock was set back: the bucket then fills from the
 * new time, and not from a time in the future.
 */
const TAKE = new RedisScript(`
local clock = redis.call('TIME')
local now = clock[1] * 1000 + clock[2] / 1000
local limit, window, tokens = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local left, at = limit, now
local stored = redis.call('GET', KEYS[1])
if stored then
  local first, second = string.match(stored, '^(%S+) (%S+)$')
  left, at = tonumber(first), tonumber(second)
  left = math.min(limit, left + math.max(0, now - at) * limit / window)
end
local allowed = tokens <= left
if allowed then left = left - tokens end
if allowed or at > now then
  local full = math.ceil((limit - left) * window / limit)
  redis.call('SET', KEYS[1], string.format('%.17g %.17g', left, now), 'PX', math.max(1, full))
end
return {allowed and 1 or 0, string.format('%.17g', left)}
`);

/** Creates buckets in Redis, which all processes share. `take` rejects if Redis is unavailable or slow. */
export function createRedisBuckets(
  redis: RedisCommands,
  { limit, window, prefix, timeout }: BucketSettings & { readonly prefix: string; readonly timeout: number },
): BucketStore {
  return {
    async take(key, tokens) {
      const reply = await TAKE.run(redis, timeout, `${prefix}${key}`, limit, window, tokens);
      // The number is a string if the client has the option `stringNumbers`.
      const [allowed, left] = reply as [number | string, string];
      return { allowed: Number(allowed) === 1, left: Number(left) };
    },
  };
}
