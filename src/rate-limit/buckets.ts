import { createHash } from 'node:crypto';
import type { MaybePromise } from '../../types/connect.ts';
import type { RedisSource } from '../../types/redis.ts';
import { createWarningLog } from '../diagnostics/logging.ts';
import { toError } from '../http/reply.ts';
import { duration, optionalFunction, type Rules } from '../options/rules.ts';
import { getOrCreate, settle } from '../options/values.ts';
import { BoundedStore } from '../redis/bounded.ts';
import { type RedisCommands, redisRule } from '../redis/clients.ts';
import { commandsOf, RedisScript } from '../redis/commands.ts';

/** What the options `budget` and `clientLimits` have in common, after checks. */
export interface BucketSettings<Key> {
  readonly window: number;
  readonly key: Key | undefined;
  readonly redis: RedisSource | undefined;
}

export const bucketRules: Rules<BucketSettings<never>> = {
  window: duration(60_000),
  key: optionalFunction(),
  redis: redisRule,
};

/** Where buckets are. */
interface BucketPlace<Away> {
  readonly redis: RedisSource | undefined;
  /** The beginning of the keys in Redis. */
  readonly prefix: string;
  readonly warning: Parameters<typeof createWarningLog>[0];
  /** What an operation gets while Redis does not reply; `local` takes its tokens in this process. */
  away(local: () => Taken): Taken | Away;
}

/** Buckets of one size. */
interface Buckets<Away = never> {
  /** Takes `tokens` from the bucket of a key or, if it has less, what it has in whole tokens but not below `least`. */
  take(key: string, tokens: number, least?: number): MaybePromise<Taken | Away>;
}

/** Returns the buckets of a size. */
export type BucketsOf<Away = never> = (size: BucketSize) => Buckets<Away>;

/** Milliseconds that an operation waits for Redis; one per second while Redis is silent. Tests change them. */
export const TIMES = { wait: 500 };

/** Creates buckets of any size in one place: in this process, or in Redis while it replies. */
export function createBuckets<Away>({ redis, prefix, warning, away }: BucketPlace<Away>): BucketsOf<Away> {
  const commands = redis === undefined ? undefined : commandsOf(redis);
  const warn = createWarningLog(warning);
  const store = new BoundedStore({
    timeout: TIMES.wait,
    late: `Redis did not reply within ${TIMES.wait} ms`,
    pausesAfterError: false,
    report: (error) => warn(toError(error)),
  });
  const create = (size: BucketSize): Buckets<Away> => {
    const local = createLocalBuckets(size);
    return {
      take(given, tokens, least = tokens) {
        const key = boundedKey(given);
        const inProcess = (): Taken => local.take(key, tokens, least);
        if (commands === undefined) return inProcess();
        const taken = store.use<Taken | undefined>(
          () => takeFromRedis(commands, prefix + key, size, { tokens, least }),
          undefined,
        );
        return settle(taken, (known) => known ?? away(inProcess));
      },
    };
  };
  const bySize = new Map<string, Buckets<Away>>();
  return (size) => getOrCreate(bySize, `${size.limit} ${size.window}`, () => create(size));
}

/** The maximum length of the name of a bucket. */
const MAX_KEY_LENGTH = 256;

/** Replaces a long key by its hash. The key may be a header of the client, and a hundred thousand of them are kept. */
const boundedKey = (key: string): string =>
  key.length <= MAX_KEY_LENGTH ? key : createHash('sha256').update(key).digest('base64');

/** The whole seconds, at least 1, after which a bucket has this many tokens. */
export const secondsUntil = (tokens: number, { left }: Taken, { limit, window }: BucketSize): number =>
  Math.max(1, Math.ceil(((tokens - left) * window) / limit / 1000));

/** The size of a bucket and how fast it fills. */
export interface BucketSize {
  /** The tokens of a full bucket. */
  readonly limit: number;
  /** Milliseconds in which an empty bucket becomes full. */
  readonly window: number;
}

/** The state of a bucket after an operation took tokens from it, or could not. */
export interface Taken {
  readonly allowed: boolean;
  /** The tokens that were taken. */
  readonly taken: number;
  /** The tokens that are left. */
  readonly left: number;
}

/** Buckets in this process. */
interface LocalBuckets extends Buckets<never> {
  take(key: string, tokens: number, least?: number): Taken;
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
  { limit, window }: BucketSize,
  now: () => number = () => performance.now(),
): LocalBuckets {
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
    take(key, tokens, least = tokens) {
      const time = now();
      const bucket = buckets.get(key) ?? { left: limit, at: time };
      bucket.left = Math.min(limit, bucket.left + (time - bucket.at) * tokensPerMillisecond);
      bucket.at = time;
      const most = tokens <= bucket.left ? tokens : Math.floor(bucket.left);
      const allowed = most >= least;
      const taken = allowed ? most : 0;
      bucket.left -= taken;
      // The last position, so that the first buckets are those that were not used for the longest time.
      buckets.delete(key);
      buckets.set(key, bucket);
      removeOld(time);
      return { allowed, taken, left: bucket.left };
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
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local taken, least = tonumber(ARGV[3]), tonumber(ARGV[4])
local left, at = limit, now
local stored = redis.call('GET', KEYS[1])
if stored then
  local first, second = string.match(stored, '^(%S+) (%S+)$')
  left, at = tonumber(first), tonumber(second)
  left = math.min(limit, left + math.max(0, now - at) * limit / window)
end
if taken > left then taken = math.floor(left) end
local allowed = taken >= least
if not allowed then taken = 0 end
left = left - taken
if allowed or at > now then
  local full = math.ceil((limit - left) * window / limit)
  redis.call('SET', KEYS[1], string.format('%.17g %.17g', left, now), 'PX', math.max(1, full))
end
return {allowed and 1 or 0, string.format('%.17g', taken), string.format('%.17g', left)}
`);

/** Takes tokens from a bucket that all processes share. Rejects if Redis is unavailable. */
async function takeFromRedis(
  redis: RedisCommands,
  key: string,
  { limit, window }: BucketSize,
  { tokens, least }: { readonly tokens: number; readonly least: number },
): Promise<Taken> {
  // The store stops waiting earlier.
  const reply = await TAKE.run(redis, 10 * TIMES.wait, key, limit, window, tokens, least);
  // The number is a string if the client has the option `stringNumbers`.
  const [allowed, taken, left] = reply as [number | string, string, string];
  return { allowed: Number(allowed) === 1, taken: Number(taken), left: Number(left) };
}
