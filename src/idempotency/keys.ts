import { LRUCache } from 'lru-cache';
import type { MaybePromise } from '../../types/connect.ts';
import type { RedisSource } from '../../types/redis.ts';
import type { RedisCommands } from '../redis/clients.ts';
import { commandsOf, RedisScript } from '../redis/commands.ts';
import type { IdempotencySettings } from './options.ts';

/** The use of a key by one operation. */
export interface KeyUse {
  /** Where the key is stored: a hash of the key, its user and its field. */
  readonly id: string;
  /** The fingerprint of what was requested with the key. */
  readonly print: string;
  /** A random value, so that no other process stores a result for this one. */
  readonly owner: string;
}

/**
 * The state of a key. `free`: it belongs to the caller from now on. `done`: it has a result. `running`: another operation
 * has it. `unknown`: that operation gives no sign of life, and may have had an effect. `other`: it was used for another
 * request.
 */
export type Claim =
  | { readonly kind: 'free' | 'running' | 'unknown' | 'other' }
  | { readonly kind: 'done'; readonly result: string };

/** Keeps keys. Every call may be repeated. A promise rejects if the store is unavailable. */
export interface KeyStore {
  /** Undefined, or the reason why a call cannot even be sent. */
  readonly problem: Error | undefined;
  /** Takes a key that is free. */
  claim(use: KeyUse): MaybePromise<Claim>;
  /** Says that the operation is running. */
  renew(use: KeyUse): MaybePromise<unknown>;
  /** Stores the result. Without one the key is unknown from now on. */
  complete(use: KeyUse, result: string | undefined): MaybePromise<unknown>;
  /** Makes the key of an operation free that was not executed. */
  release(use: KeyUse): MaybePromise<unknown>;
}

interface Ended {
  readonly print: string;
  readonly result: string | undefined;
}

const MAX_BYTES = 64 * 1024 * 1024;
/** An estimate of the bytes of an entry without its result. */
const ENTRY_BYTES = 500;

/** The keys of one process. Above the limit of bytes the oldest results are removed, never a running operation. */
export class MemoryKeys implements KeyStore {
  readonly problem = undefined;
  readonly #running = new Map<string, KeyUse>();
  readonly #ended: LRUCache<string, Ended>;

  constructor(retention: number) {
    const sizeCalculation = ({ result = '' }: Ended): number => ENTRY_BYTES + result.length;
    this.#ended = new LRUCache({ maxSize: MAX_BYTES, ttl: retention, sizeCalculation });
  }

  claim(use: KeyUse): Claim {
    const running = this.#running.get(use.id);
    // `peek`: a repetition does not make a key younger than the others.
    const known = running ?? this.#ended.peek(use.id);
    if (known === undefined) {
      this.#running.set(use.id, use);
      return { kind: 'free' };
    }
    if (known.print !== use.print) return { kind: 'other' };
    if ('owner' in known) return { kind: 'running' };
    return known.result === undefined ? { kind: 'unknown' } : { kind: 'done', result: known.result };
  }

  renew(): void {}

  complete({ id, print }: KeyUse, result: string | undefined): void {
    this.#running.delete(id);
    this.#ended.set(id, { print, result });
  }

  release({ id }: KeyUse): void {
    this.#running.delete(id);
  }
}

const TIMEOUT_MILLISECONDS = 2000;

/** The keys of all processes, in Redis. */
export class RedisKeys implements KeyStore {
  readonly #redis: RedisCommands;
  readonly #settings: IdempotencySettings;

  constructor(redis: RedisSource, settings: IdempotencySettings) {
    this.#redis = commandsOf(redis);
    this.#settings = settings;
  }

  get problem(): Error | undefined {
    const { problem } = this.#redis;
    return problem && named(problem);
  }

  async claim(use: KeyUse): Promise<Claim> {
    const [kind, detail = ''] = await this.#run(CLAIM, use, '');
    if (kind === 'evicts') {
      throw new Error(
        `idempotency: Redis may evict keys (maxmemory-policy ${detail}), and a repeated mutation would be executed twice; set maxmemory-policy to noeviction`,
      );
    }
    return kind === 'done' ? { kind, result: detail } : { kind: kind as Exclude<Claim['kind'], 'done'> };
  }

  async renew(use: KeyUse): Promise<void> {
    await this.#run(RENEW, use, '');
  }

  async complete(use: KeyUse, result: string | undefined): Promise<void> {
    await (result === undefined ? this.#run(ABANDON, use, '') : this.#run(COMPLETE, use, result));
  }

  async release(use: KeyUse): Promise<void> {
    await this.#run(RELEASE, use, '');
  }

  async #run(script: RedisScript, { id, print, owner }: KeyUse, result: string): Promise<readonly string[]> {
    const { prefix, lease, retention } = this.#settings;
    const inputs = [print, owner, lease, Math.ceil(retention), result] as const;
    try {
      const reply = await script.run(this.#redis, TIMEOUT_MILLISECONDS, `${prefix}${id}`, ...inputs);
      return reply as string[];
    } catch (error) {
      throw named(error as Error);
    }
  }
}

/** Says which option an error of Redis belongs to. */
const named = (cause: Error): Error => new Error(`idempotency: ${cause.message}`, { cause });

/**
 * Creates a script. A record has the fingerprint, the owner, the time until which the owner counts as running, and the
 * result. If Redis has lost the record of a running operation, its owner writes it again.
 */
const script = (body: string): RedisScript =>
  new RedisScript(`
local key, print, owner, lease, retention, result = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local known = redis.call('HMGET', key, 'print', 'owner', 'until', 'result')
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local function write(...)
  redis.call('HSET', key, 'print', print, 'owner', owner, ...)
  redis.call('PEXPIRE', key, retention)
end
local isOwn = not known[1] or known[2] == owner
${body}`);

const CLAIM = script(`
local info = redis.pcall('INFO', 'memory')
local policy = type(info) == 'string' and string.match(info, 'maxmemory_policy:([%w-]+)')
if policy and policy ~= 'noeviction' then return {'evicts', policy} end
if known[1] and known[1] ~= print then return {'other'} end
if known[4] then return {'done', known[4]} end
if isOwn then
  write('until', string.format('%.0f', now + lease))
  return {'free'}
end
return {tonumber(known[3]) > now and 'running' or 'unknown'}`);

const RENEW = script(`
if isOwn and not known[4] then write('until', string.format('%.0f', now + lease)) end
return {'ok'}`);

const COMPLETE = script(`
if isOwn then write('result', result) end
return {'ok'}`);

const ABANDON = script(`
if isOwn and not known[4] then write('until', '0') end
return {'ok'}`);

const RELEASE = script(`
if known[2] == owner and not known[4] then redis.call('DEL', key) end
return {'ok'}`);
