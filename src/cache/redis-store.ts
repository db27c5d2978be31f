import { createHash } from 'node:crypto';
import type {
  CacheEntry,
  CacheLookup,
  RedisStore as PublicStore,
  RedisStoreOptions,
} from '../../types/response-cache.ts';
import { createWarningLog } from '../diagnostics/logging.ts';
import { resolveOptions, wrongOption } from '../options/rules.ts';
import { REDIS_STORE_OPTIONS } from '../options/scopes.ts';
import { isReplyError, redisRule } from '../redis/clients.ts';
import { createLine, type RedisTarget } from '../redis/connect.ts';
import { RedisConnection, TIMEOUTS } from '../redis/connection.ts';
import { ALL_TAGS, delay, normalTag } from './invalidations.ts';
import { byteStores } from './store.ts';

/** What every key begins with: the hash tag, which keeps all keys on one node of a cluster. */
const PREFIX = '{espalier:cache:}';

const UNAVAILABLE: CacheLookup = { entry: undefined, version: undefined };
const WARNINGS = { owner: 'redisStore', type: 'CacheWarning', code: 'ESPALIER_CACHE' };

/** The largest response in bytes. */
const MAX_ENTRY_BYTES = 1024 * 1024;
const NO_TAGS: ReadonlySet<string> = new Set();
const TAGS_PER_COMMAND = 1000;
/** Above this number of waiting tags everything is invalidated, which bounds the memory. */
const MAX_WAITING = 100_000;
const RETRY_MILLISECONDS = 100;
const MAX_RETRY_MILLISECONDS = 2000;

/** Redis refuses numbers with an exponent. */
const MAX_MILLISECONDS = 1e12;

export function createRedisStore(options: RedisStoreOptions): PublicStore {
  const { redis } = resolveOptions(REDIS_STORE_OPTIONS, options, { redis: redisRule });
  if (redis === undefined) throw wrongOption(REDIS_STORE_OPTIONS, 'redis', undefined, redisRule.accepted);
  const store = new RedisStore(redis);
  byteStores.add(store);
  return store;
}

/**
 * Responses in Redis. Each operation is one atomic script, so an invalidation has effect in all processes when
 * Redis has executed it.
 */
class RedisStore implements PublicStore {
  readonly #warn: (error: Error) => void = createWarningLog(WARNINGS);
  readonly #connection: Promise<RedisConnection>;
  /** The tags that the next command invalidates, and those of the command that Redis has not confirmed. */
  #waiting = new Set<string>();
  #sending: ReadonlySet<string> = NO_TAGS;
  /** The promises of those commands. */
  #next: Promise<void> | undefined;
  #last: Promise<void> = Promise.resolve();
  #isClosed = false;
  /**
   * Part of every key: the id of the running Redis server. After a restart or a failover Redis may have lost
   * invalidations, so the entries from before are not used. Undefined while Redis is not connected.
   */
  #server: string | undefined;

  constructor(redis: RedisTarget['redis']) {
    this.#connection = this.#connect({ redis, ...TIMEOUTS, owner: 'redisStore' });
    this.#connection.catch(this.#warn);
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
    const entry = this.#isPending(parsed.policy.tags) ? undefined : { ...parsed, body };
    return { entry, version };
  }

  async set(key: string, { body, ...meta }: CacheEntry, version: number | string): Promise<boolean> {
    const { tags } = meta.policy;
    const [server, counter = ''] = String(version).split(' ');
    const milliseconds = Math.min(Math.ceil(meta.expires - Date.now()), MAX_MILLISECONDS);
    if (server !== this.#server || milliseconds <= 0) return false;
    if (body.length > MAX_ENTRY_BYTES || this.#isPending(tags)) return false;
    const values = [counter, milliseconds, JSON.stringify(meta), body];
    return (await this.#run(SET, { key, tags: [...new Set([...tags, ALL_TAGS])] }, values))?.[0] === 1;
  }

  /** Commands are sent one after the other; a command has the tags of all calls since the one before. */
  invalidate(tags: readonly string[]): Promise<void> {
    for (const tag of tags) this.#waiting.add(normalTag(tag));
    if (this.#waiting.size > MAX_WAITING) this.#waiting = new Set([ALL_TAGS]);
    if (this.#next === undefined) {
      this.#next = this.#last.then(() => this.#sendWaiting());
      // A caller may have stopped waiting.
      this.#next.catch(() => undefined);
    }
    return this.#next;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#server = undefined;
    const connection = await this.#connection.catch(() => undefined);
    await connection?.close();
  }

  /** Repeats the command until Redis has executed it: an entry must not survive its invalidation. */
  async #sendWaiting(): Promise<void> {
    const tags = [...this.#waiting];
    this.#sending = this.#waiting;
    this.#waiting = new Set();
    this.#last = (this.#next as Promise<void>).catch(() => undefined);
    this.#next = undefined;
    for (let sent = 0, wait = RETRY_MILLISECONDS; sent < tags.length; ) {
      if (this.#isClosed) throw new Error('The Redis store was closed');
      try {
        await this.#remove(tags.slice(sent, sent + TAGS_PER_COMMAND));
        sent += TAGS_PER_COMMAND;
      } catch {
        await delay(wait);
        wait = Math.min(wait * 2, MAX_RETRY_MILLISECONDS);
      }
    }
    this.#sending = NO_TAGS;
  }

  /** Whether Redis has not confirmed an invalidation of one of these tags. */
  #isPending(tags: readonly string[]): boolean {
    const isIn = (pending: ReadonlySet<string>): boolean =>
      pending.size > 0 && (pending.has(ALL_TAGS) || tags.some((tag) => pending.has(tag)));
    return isIn(this.#sending) || isIn(this.#waiting);
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
      if (isReplyError(error)) this.#warn(error);
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
    const compared = connection.line.isCluster ? (server ?? '') : '';
    const args = [compared, ...values];
    const reply = await connection.send({ name: 'eval', script, keys, args, isBinary: true });
    const [id, ...rest] = reply as [Buffer, ...unknown[]];
    if (id.length === 0 || id.toString() === server) return rest;
    if (this.#server !== undefined) this.#server = id.toString();
    return undefined;
  }

  /** @throws Error while Redis is not connected. */
  #key(name: string): string {
    if (this.#server === undefined) throw new Error('Redis is not connected');
    return `${PREFIX}${this.#server}:${name}`;
  }

  #entryKey(key: string): string {
    return this.#key(`response:${createHash('sha256').update(key).digest('base64url')}`);
  }

  #tagKey(tag: string): string {
    return this.#key(`tag:${tag}`);
  }

  async #connect(target: RedisTarget): Promise<RedisConnection> {
    const connection: RedisConnection = new RedisConnection(await createLine(target), target, {
      ready: () => void this.#identify(connection),
      closed: () => {
        this.#server = undefined;
      },
      error: this.#warn,
    });
    return connection;
  }

  async #identify(connection: RedisConnection): Promise<void> {
    try {
      this.#server = await serverId(connection);
    } catch (error) {
      // A user without the permission for INFO; otherwise the next connection tries again.
      if (isReplyError(error)) this.#server = '';
    }
  }
}

/** The id of a server changes with each start. The id of a cluster's node comes with the first reply. */
async function serverId(connection: RedisConnection): Promise<string> {
  if (connection.line.isCluster) return 'cluster';
  const info = await connection.send({ name: 'info', args: ['server'] });
  return /run_id:(\w+)/.exec(String(info))?.[1] ?? '';
}

// The scripts of the Redis store. All keys have the prefix as hash tag, so that a cluster keeps them together.
//
// A counter increases with each invalidation. The record of a tag has the counter at its creation. An entry has
// the counter at the start of its execution; it is valid as long as the records of all its tags exist and are not
// newer. Invalidating a tag increases the counter and deletes the record. A record that Redis evicts therefore
// invalidates entries, and never makes an old one valid again.
//
// The keys contain the id of the running server, because a restart or a failover may lose invalidations. The commands
// of a cluster may reach another node at any time, so the scripts compare the id. A node with another id executes
// nothing, and its reply contains its id.

/**
 * Begins each script. ARGV[1] is the id in the keys, or empty where it need not be compared. The reply begins with the
 * id of the server.
 */
const CHECK_SERVER = `
local server = ARGV[1]
if server ~= '' then
  local info = redis.pcall('INFO', 'server')
  if type(info) == 'string' then server = string.match(info, 'run_id:(%w+)') or server end
  if server ~= ARGV[1] then return {server} end
end
`;

/** A new counter starts with the time, so that it exceeds an earlier one that was lost or has expired. */
const READ_COUNTER = `
local counter = redis.call('GET', KEYS[1])
if not counter then
  local time = redis.call('TIME')
  counter = string.format('%.0f', time[1] * 1000000 + time[2])
  redis.call('SET', KEYS[1], counter, 'EX', 604800)
end
`;

const BEGIN = `${CHECK_SERVER}${READ_COUNTER}`;

/** KEYS: counter, entry. Returns the counter and, for a valid entry, its meta data and body. */
const GET: string = `${BEGIN}
local entry = redis.call('HMGET', KEYS[2], 'version', 'tags', 'meta', 'body')
if not entry[1] then return {server, counter} end
for _, key in ipairs(cjson.decode(entry[2])) do
  local record = redis.call('GET', key)
  if not record or tonumber(record) > tonumber(entry[1]) then
    redis.call('UNLINK', KEYS[2])
    return {server, counter}
  end
end
return {server, counter, entry[3], entry[4]}
`;

/**
 * KEYS: counter, entry, records of tags. ARGV: version, milliseconds to live, meta data, body. Returns 1 if it was
 * stored. An entry has the names of the records as Redis knows them, with the key prefix of the client.
 */
const SET: string = `${BEGIN}
local stored, tags = 1, {}
for index = 3, #KEYS do
  local key = KEYS[index]
  tags[#tags + 1] = key
  local record = redis.call('GET', key)
  if not record then
    record = counter
    redis.call('SET', key, record, 'PX', ARGV[3])
  elseif redis.call('PTTL', key) < tonumber(ARGV[3]) then
    redis.call('PEXPIRE', key, ARGV[3])
  end
  if tonumber(record) > tonumber(ARGV[2]) then stored = 0 end
end
if stored == 1 then
  redis.call('HSET', KEYS[2], 'version', ARGV[2], 'tags', cjson.encode(tags), 'meta', ARGV[4], 'body', ARGV[5])
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
end
return {server, stored}
`;

/**
 * KEYS: counter, records of tags. The deletions come first: Redis without free memory refuses to begin a script with a
 * command that may need some, and allows it after another write.
 */
const INVALIDATE: string = `${CHECK_SERVER}
for index = 2, #KEYS do redis.call('UNLINK', KEYS[index]) end
${READ_COUNTER}
redis.call('INCR', KEYS[1])
return {server}
`;
