import { createHash } from 'node:crypto';
import type { Cluster } from 'ioredis';
import type {
  CacheEntry,
  CacheLookup,
  RedisStore as PublicStore,
  RedisStoreOptions,
} from '../../../types/response-cache.ts';
import { createErrorListener } from '../../diagnostics/logging.ts';
import {
  isEither,
  isFunction,
  isOneOf,
  isString,
  positive,
  type Rules,
  resolveOptions,
  rule,
  wrongOption,
} from '../../options/rules.ts';
import { REDIS_STORE_OPTIONS } from '../../options/scopes.ts';
import { connectClient, type RedisTarget, redisRule } from '../../redis/connect.ts';
import { isReplyError, type RedisCommands, RedisConnection } from '../../redis/connection.ts';
import { InvalidationQueue } from '../tags/invalidation-queue.ts';
import { ALL_TAGS } from '../tags/tags.ts';
import { GET, INVALIDATE, SET } from './scripts.ts';

interface RedisStoreSettings {
  readonly redis: RedisTarget['redis'] | undefined;
  readonly prefix: string;
  readonly maxEntryBytes: number;
  readonly onError: ((error: Error) => void) | false | undefined;
}

const RULES: Rules<RedisStoreSettings> = {
  redis: redisRule,
  prefix: rule('espalier:cache', isString, 'a string'),
  maxEntryBytes: positive(1024 * 1024, 'bytes'),
  onError: rule<RedisStoreSettings['onError']>(
    undefined,
    isEither(isFunction, isOneOf(false)),
    'a function, or false',
  ),
};

const UNAVAILABLE: CacheLookup = { entry: undefined, version: undefined };
const WARNINGS = { owner: 'redisStore', type: 'CacheWarning', code: 'ESPALIER_CACHE' };

/** Redis refuses numbers with an exponent. */
const MAX_MILLISECONDS = 1e12;
/** A silent connection is closed and opened again after these times. */
const TIMEOUTS = { heartbeat: 2000, commandTimeout: 2000 };

/** Checks the options and creates the store. */
export function createRedisStore(options: RedisStoreOptions): PublicStore {
  const settings = resolveOptions<RedisStoreSettings>(REDIS_STORE_OPTIONS, options, RULES);
  if (settings.redis === undefined) {
    throw wrongOption(REDIS_STORE_OPTIONS, 'redis', undefined, redisRule.accepted);
  }
  return new RedisStore({ ...settings, redis: settings.redis });
}

/**
 * Responses in Redis. Each operation is one atomic script, so an invalidation has effect in all processes when
 * Redis has executed it.
 */
class RedisStore implements PublicStore {
  readonly #prefix: string;
  readonly #maxEntryBytes: number;
  readonly #onError: (error: Error) => void;
  readonly #connection: Promise<RedisConnection>;
  readonly #queue: InvalidationQueue;
  /**
   * Part of every key: the id of the running Redis server. After a restart or a failover Redis may have lost
   * invalidations, so the entries from before are not used. Undefined while Redis is not connected.
   */
  #server: string | undefined;

  constructor({ redis, prefix, maxEntryBytes, onError }: RedisStoreSettings & Pick<RedisTarget, 'redis'>) {
    this.#prefix = prefix;
    this.#maxEntryBytes = maxEntryBytes;
    this.#onError = createErrorListener(onError, WARNINGS);
    this.#connection = this.#connect({ redis, ...TIMEOUTS, owner: 'redisStore' });
    this.#connection.catch(this.#onError);
    this.#queue = new InvalidationQueue((tags) => this.#remove(tags));
  }

  async get(key: string): Promise<CacheLookup> {
    const server = this.#server;
    const reply = await this.#run(GET, { key, tags: [] }, []);
    if (reply === undefined) return UNAVAILABLE;
    const [counter, meta, body] = reply as [Buffer, Buffer?, Buffer?];
    // The counters of two servers cannot be compared.
    const version = `${server} ${counter}`;
    if (meta === undefined || body === undefined) return { entry: undefined, version };
    const parsed: Omit<CacheEntry, 'body'> = JSON.parse(meta.toString());
    // An invalidation that Redis has not confirmed has effect in this process.
    const entry = this.#queue.isPending(parsed.policy.tags) ? undefined : { ...parsed, body };
    return { entry, version };
  }

  async set(key: string, { body, ...meta }: CacheEntry, version: number | string): Promise<boolean> {
    const { tags } = meta.policy;
    const [server, counter = ''] = String(version).split(' ');
    const milliseconds = Math.min(Math.ceil(meta.expires - Date.now()), MAX_MILLISECONDS);
    if (server !== this.#server || milliseconds <= 0) return false;
    if (body.length > this.#maxEntryBytes || this.#queue.isPending(tags)) return false;
    const values = [counter, milliseconds, JSON.stringify(meta), body];
    return (await this.#run(SET, { key, tags: [...new Set([...tags, ALL_TAGS])] }, values))?.[0] === 1;
  }

  invalidate(tags: readonly string[]): Promise<void> {
    return this.#queue.add(tags);
  }

  async close(): Promise<void> {
    this.#queue.close(new Error('The Redis store was closed'));
    this.#server = undefined;
    const connection = await this.#connection.catch(() => undefined);
    await connection?.close();
  }

  /** @throws Error if Redis has not executed it. */
  async #remove(tags: readonly string[]): Promise<void> {
    const records = tags.map((tag) => this.#tagKey(tag));
    const reply = await this.#evaluate(INVALIDATE, [this.#key('counter'), ...records], []);
    // The next attempt has the id of the node that has replied.
    if (reply === undefined) throw new Error('The node has another id');
  }

  /** Runs a script for an entry; undefined if that is not possible now. Errors of the connection are reported once. */
  async #run(
    script: string,
    { key, tags }: { readonly key: string; readonly tags: readonly string[] },
    values: readonly (string | number | Buffer)[],
  ): Promise<readonly unknown[] | undefined> {
    if (this.#server === undefined) return undefined;
    try {
      const records = tags.map((tag) => this.#tagKey(tag));
      return await this.#evaluate(script, [this.#key('counter'), this.#entryKey(key), ...records], values);
    } catch (error) {
      if (isReplyError(error)) this.#onError(error);
      return undefined;
    }
  }

  /** Returns the reply after the id of the server; undefined if the node of a cluster has another id than the keys. */
  async #evaluate(
    script: string,
    keys: readonly string[],
    values: readonly (string | number | Buffer)[],
  ): Promise<readonly unknown[] | undefined> {
    const server = this.#server;
    const connection = await this.#connection;
    const reply = await connection.send((client) => {
      const compared = isCluster(client) ? (server ?? '') : '';
      return client.callBuffer('eval', [script, keys.length, ...keys, compared, ...values]);
    });
    const [id, ...rest] = reply as [Buffer, ...unknown[]];
    if (id.length === 0 || id.toString() === server) return rest;
    if (this.#server !== undefined) this.#server = id.toString();
    return undefined;
  }

  /** @throws Error while Redis is not connected. */
  #key(name: string): string {
    if (this.#server === undefined) throw new Error('Redis is not connected');
    // The braces are the hash tag, which keeps all keys on one node of a cluster.
    return `{${this.#prefix}}:${this.#server}:${name}`;
  }

  #entryKey(key: string): string {
    return this.#key(`response:${createHash('sha256').update(key).digest('base64url')}`);
  }

  #tagKey(tag: string): string {
    return this.#key(`tag:${tag}`);
  }

  async #connect(target: RedisTarget): Promise<RedisConnection> {
    const client = await connectClient(target);
    const connection: RedisConnection = new RedisConnection(client, target, {
      ready: () => void this.#identify(connection),
      closed: () => {
        this.#server = undefined;
      },
      error: this.#onError,
    });
    return connection;
  }

  async #identify(connection: RedisConnection): Promise<void> {
    try {
      this.#server = await connection.send(serverId);
    } catch (error) {
      // A user without the permission for INFO; otherwise the next connection tries again.
      if (isReplyError(error)) this.#server = '';
    }
  }
}

/** The id of a server changes with each start. The id of a cluster's node comes with the first reply. */
async function serverId(client: RedisCommands): Promise<string> {
  if (isCluster(client)) return 'cluster';
  return /run_id:(\w+)/.exec(await client.info('server'))?.[1] ?? '';
}

const isCluster = (client: RedisCommands): client is Cluster => 'nodes' in client;
