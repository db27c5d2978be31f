import { createHash } from 'node:crypto';
import type { BudgetClient } from '../../../types/graphql.ts';
import { withTimeLimit } from '../../http/timers.ts';
import type { BucketSettings, BucketStore, Taken } from './token-bucket.ts';

/**
 * Takes tokens in one step, by the clock of Redis. The numbers have 17 digits, which is the exact value of a
 * double. A refused operation changes nothing, unless the clock was set back: the bucket then fills from the
 * new time, and not from a time in the future.
 */
const SCRIPT = `
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
`;

const SHA = createHash('sha1').update(SCRIPT).digest('hex');

/** Creates buckets in Redis, which all processes share. `take` rejects if Redis is unavailable or slow. */
export function createRedisBuckets(
  client: BudgetClient,
  { limit, window, prefix, timeout }: BucketSettings & { readonly prefix: string; readonly timeout: number },
): BucketStore {
  async function run(key: string, tokens: number): Promise<Taken> {
    const args = [`${prefix}${key}`, limit, window, tokens];
    const reply = await client.evalsha(SHA, 1, ...args).catch((error: Error) => {
      if (!error.message.startsWith('NOSCRIPT')) throw error;
      return client.eval(SCRIPT, 1, ...args);
    });
    // The reply is QUEUED between MULTI and EXEC.
    if (!Array.isArray(reply)) throw new Error(`Redis replied ${String(reply)}; use a client without MULTI`);
    // The number is a string if the client has the option `stringNumbers`.
    const [allowed, left] = reply as [number | string, string];
    return { allowed: Number(allowed) === 1, left: Number(left) };
  }

  return {
    take(key, tokens) {
      // ioredis would queue the command, and its tokens would be taken much later.
      if (client.status !== 'ready')
        return Promise.reject(new Error(`Redis is not connected: ${client.status}`));
      const late = (): Error => new Error(`Redis did not reply within ${timeout} ms`);
      return withTimeLimit(run(key, tokens), timeout, late);
    },
  };
}
