import { createHash } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { GraphQLError } from 'graphql';
import type { ContextSource, MaybePromise } from '../../types/connect.ts';
import type { RedisSource } from '../../types/redis.ts';
import { createWarningLog } from '../diagnostics/logging.ts';
import { refusalError } from '../execution/graphql-error.ts';
import { type RequestError, withNativePromise } from '../execution/types.ts';
import type { Headers } from '../http/reply.ts';
import {
  delay,
  duration,
  isFunction,
  isString,
  oneOf,
  positive,
  type Rules,
  resolveOptions,
  rule,
  settle,
  wrongOption,
  wrongReturnValue,
} from '../options/rules.ts';
import { BUDGET_OPTIONS } from '../options/scopes.ts';
import { type RedisCommands, redisRule } from '../redis/clients.ts';
import { commandsOf, RedisScript } from '../redis/commands.ts';

/** The option `budget` after checks, with defaults filled in. */
interface BudgetSettings {
  readonly limit: number;
  readonly window: number;
  readonly unit: 'cost' | 'operations';
  readonly key: (source: unknown, context: unknown) => MaybePromise<unknown>;
  readonly redis: RedisSource | undefined;
  readonly prefix: string;
  readonly timeout: number;
  readonly onUnavailable: 'local' | 'open' | 'closed';
}

const rules: Rules<BudgetSettings> = {
  // The option is required: its default is refused.
  limit: positive(0, 'tokens'),
  window: duration(60_000),
  unit: oneOf('cost', 'operations'),
  key: rule<BudgetSettings['key']>(
    clientAddress,
    isFunction,
    'a function of the request or WebSocket and the context',
  ),
  redis: redisRule,
  prefix: rule('espalier:budget:', isString, 'a string'),
  timeout: delay(100),
  onUnavailable: oneOf('local', 'open', 'closed'),
};

/**
 * Checks the option `budget`.
 *
 * @throws TypeError (code `ERR_OPTION`).
 */
export function resolveBudget(given: unknown): BudgetSettings {
  const settings = resolveOptions(BUDGET_OPTIONS, given, rules);
  if (settings.limit === 0) throw wrongOption(BUDGET_OPTIONS, 'limit', undefined, rules.limit.accepted);
  return settings;
}

/** The headers of a response whose operation is within the budget. */
interface WithinBudget {
  readonly kind: 'within';
  readonly headers: Headers | undefined;
}

/** Takes the tokens of an operation from the bucket of its key. */
type BudgetCheck = (
  source: unknown,
  context: unknown,
  cost: number,
) => MaybePromise<RequestError | WithinBudget>;

const UNLIMITED: WithinBudget = { kind: 'within', headers: undefined };

export function createBudgetCheck(settings: BudgetSettings): BudgetCheck {
  const { redis, unit, key: keyOf } = settings;
  const local = createLocalBuckets(settings);
  const shared =
    redis === undefined
      ? undefined
      : withFallback(createRedisBuckets(commandsOf(redis), settings), local, settings);
  const buckets: { take(key: string, tokens: number): MaybePromise<Taken | Unavailable> } = shared ?? local;

  function take(key: unknown, cost: number): MaybePromise<RequestError | WithinBudget> {
    if (key === undefined) return UNLIMITED;
    if (!isString(key))
      throw wrongReturnValue(BUDGET_OPTIONS, 'key', key, 'a string, or undefined for no budget');
    const tokens = unit === 'cost' ? cost : 1;
    if (tokens > settings.limit) return tooExpensive(tokens, settings.limit);
    const taken = buckets.take(boundedKey(key), tokens);
    return settle(taken, (settled) => toResult(settled, tokens, settings));
  }

  return (source, context, cost) => {
    return settle(withNativePromise(keyOf(source, context)), (key) => take(key, cost));
  };
}

/** The maximum length of the name of a bucket. */
const MAX_KEY_LENGTH = 256;

/** Replaces a long key by its hash. The key may be a header of the client, and a hundred thousand of them are kept. */
const boundedKey = (key: string): string =>
  key.length <= MAX_KEY_LENGTH ? key : createHash('sha256').update(key).digest('base64');

/** What the option `onUnavailable` says, if Redis does not reply. */
type Unavailable = 'open' | 'closed';

/** Uses Redis while it replies, and applies the option `onUnavailable` otherwise. */
function withFallback(
  shared: BucketStore,
  local: BucketStore,
  { onUnavailable }: BudgetSettings,
): { take(key: string, tokens: number): Promise<Taken | Unavailable> } {
  const warn = createWarningLog({
    owner: 'graphqlHTTP: budget',
    type: 'BudgetWarning',
    code: 'ESPALIER_BUDGET',
  });
  return {
    async take(key, tokens) {
      try {
        return await shared.take(key, tokens);
      } catch (error) {
        warn(error as Error);
        return onUnavailable === 'local' ? local.take(key, tokens) : onUnavailable;
      }
    },
  };
}

const UNAVAILABLE: RequestError = {
  kind: 'error',
  errors: [
    new GraphQLError('The budget cannot be checked at the moment; try again later', {
      extensions: { code: 'BUDGET_UNAVAILABLE', http: { status: 503, headers: { 'retry-after': '1' } } },
    }),
  ],
  status: 503,
};

function toResult(
  taken: Taken | Unavailable,
  tokens: number,
  settings: BudgetSettings,
): RequestError | WithinBudget {
  if (taken === 'open') return UNLIMITED;
  if (taken === 'closed') return UNAVAILABLE;
  const headers = rateLimitHeaders(taken, settings);
  return taken.allowed ? { kind: 'within', headers } : usedUp(taken, tokens, settings, headers);
}

/** draft-ietf-httpapi-ratelimit-headers-10, §3 and §4. */
function rateLimitHeaders({ left }: Taken, { limit, window, unit }: BudgetSettings): Headers {
  const untilFull = Math.ceil(((limit - left) * window) / limit / 1000);
  return {
    'ratelimit-policy': `"${unit}";q=${limit};w=${Math.ceil(window / 1000)}`,
    ratelimit: `"${unit}";r=${Math.floor(left)};t=${untilFull}`,
  };
}

function usedUp(
  { left }: Taken,
  tokens: number,
  { limit, window }: BudgetSettings,
  headers: Headers,
): RequestError {
  const retryAfter = Math.max(1, Math.ceil(((tokens - left) * window) / limit / 1000));
  const message = `The budget of ${limit} per ${window / 1000} s is used up; retry after ${retryAfter} s`;
  const http = { status: 429, headers: { ...headers, 'retry-after': String(retryAfter) } };
  const error = new GraphQLError(message, { extensions: { code: 'RATE_LIMITED', retryAfter, http } });
  return { kind: 'error', errors: [error], status: 429 };
}

const tooExpensive = (cost: number, limit: number): RequestError => ({
  kind: 'error',
  errors: [
    refusalError(
      `The cost ${cost} of the operation exceeds the whole budget of ${limit}; select fewer fields or shorter lists`,
      'COST_LIMIT',
    ),
  ],
  status: 400,
  limit: true,
});

/** The members of a request or WebSocket that have the address of a client. */
interface Source extends Pick<ContextSource, 'socket'> {
  /** Set by Express, which knows its trusted proxies. */
  readonly ip?: unknown;
  /** The upgrade request of a WebSocket. */
  readonly request?: { readonly ip?: unknown } | undefined;
}

/**
 * Returns the address of a client. One client often has all addresses of an IPv6 network of 64 bits, so they
 * count as one.
 */
export function clientAddress(source: unknown): string {
  const { ip, request, socket } = source as Source;
  const address = [ip, request?.ip, socket?.remoteAddress].find((value) => typeof value === 'string');
  if (typeof address !== 'string') return 'unknown';
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  return isIPv6(address) ? `${networkOf(address)}::/64` : address;
}

/** The first four groups of an IPv6 address. */
function networkOf(address: string): string {
  const [before = '', after] = address.split('%')[0]?.split('::') ?? [];
  const first = before === '' ? [] : before.split(':');
  const last = after === undefined || after === '' ? [] : after.split(':');
  const zeros =
    after === undefined ? [] : new Array<string>(Math.max(0, 8 - first.length - last.length)).fill('0');
  return [...first, ...zeros, ...last]
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, '').toLowerCase())
    .join(':');
}

/** The size of a bucket and how fast it fills. */
interface BucketSettings {
  /** The tokens of a full bucket. */
  readonly limit: number;
  /** Milliseconds in which an empty bucket becomes full. */
  readonly window: number;
}

/** The state of a bucket after an operation took tokens from it, or could not. */
interface Taken {
  readonly allowed: boolean;
  /** The tokens that are left. */
  readonly left: number;
}

/** Takes tokens from the bucket of a key. */
interface BucketStore {
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
function createRedisBuckets(
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
