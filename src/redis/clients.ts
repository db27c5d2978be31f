import type { Cluster, Redis } from 'ioredis';
import type { RedisClient, RedisLogin, RedisSource } from '../../types/redis.ts';
import { type Rule, rule } from '../options/rules.ts';
import { isFunction, isObject, isString } from '../options/values.ts';

type Word = string | number | Buffer;

/** A command. Its keys get the key prefix of the client, and the first one chooses the node of a cluster. */
export interface RedisCommand {
  readonly name: string;
  /** The text of `eval`, or the hash of `evalsha`. */
  readonly script?: string;
  readonly keys?: readonly string[];
  readonly args?: readonly Word[];
  /** Chooses the node of a cluster for a command without keys: one node keeps the order of its commands. */
  readonly route?: string;
  /** Whether the strings of the reply are bytes. */
  readonly isBinary?: boolean;
}

/** Sends commands to Redis. */
export interface RedisCommands {
  /** Why no command can be sent: a client would queue it, and Redis execute it long after the response. */
  readonly problem: Error | undefined;
  send(command: RedisCommand): Promise<unknown>;
}

/** A client or cluster of ioredis or iovalkey. */
export type Ioredis = Redis | Cluster;

type Words = readonly (string | Buffer)[];
type Subscribe = (channel: string, listener: (text: string, channel: string) => void) => Promise<unknown>;

/** The members of a client of node-redis that this package uses. */
export interface NodeRedisClient extends RedisClient {
  readonly isReady: boolean;
  readonly options?: {
    readonly keyPrefix?: string;
    readonly password?: string;
    readonly credentialsProvider?: object;
    readonly socket?: object;
  };
  connect(): Promise<unknown>;
  destroy(): void;
  unref(): void;
  on(event: 'error' | 'sharded-channel-moved', listener: (error: Error) => void): unknown;
  duplicate(override?: object): NodeRedisClient;
  sendCommand(words: Words, options: object): Promise<unknown>;
  subscribe: Subscribe;
  unsubscribe: Subscribe;
  sSubscribe: Subscribe;
  sUnsubscribe: Subscribe;
}

interface NodeRedisMaster {
  readonly address: string;
}

/** The members of a cluster of node-redis. */
export interface NodeRedisCluster extends Pick<NodeRedisClient, 'connect' | 'destroy' | 'on'> {
  readonly isOpen: boolean;
  readonly masters: readonly NodeRedisMaster[];
  readonly slots: readonly { readonly master: NodeRedisMaster }[];
  nodeClient(node: NodeRedisMaster): NodeRedisClient | Promise<NodeRedisClient>;
  duplicate(override?: object): NodeRedisCluster;
  sendCommand(key: string | undefined, isReadonly: boolean, words: Words, options: object): Promise<unknown>;
}

export type NodeRedis = NodeRedisClient | NodeRedisCluster;

/** Whether a client is one of node-redis 5 or later, or its cluster; not its pool or Sentinel. */
export const isNodeRedis = (client: object): client is NodeRedis =>
  'destroy' in client && ('isPubSubActive' in client || isNodeCluster(client));

export const isNodeCluster = (client: object): client is NodeRedisCluster => 'nodeClient' in client;

export const isClusterSource = (redis: RedisSource): boolean =>
  isObject(redis) && (isNodeCluster(redis) || redis['isCluster'] === true);

export const isLogin = (redis: RedisSource): redis is RedisLogin => isObject(redis) && 'credentials' in redis;

/**
 * Whether every client understands a URL in the same way. ioredis takes any option from the query, and node-redis none. A
 * database that is not a number would cause an unhandled rejection in ioredis.
 */
function isRedisUrl(text: unknown): boolean {
  if (!isString(text) || !/^rediss?:\/\//.test(text)) return false;
  try {
    const { username, password, pathname, searchParams } = new URL(text);
    decodeURIComponent(username + password);
    return /^\/?\d*$/.test(pathname) && [...searchParams.keys()].every((name) => QUERY.has(name));
  } catch {
    return false;
  }
}

/** `family` is for ioredis, which otherwise looks for one kind of address only. */
const QUERY = new Set(['keyPrefix', 'family']);

export function isRedis(value: unknown): value is RedisSource {
  if (!isObject(value)) return isRedisUrl(value);
  if (isFunction(value['credentials'])) return isRedisUrl(value['url']);
  return isFunction(value['duplicate']) && (isNodeRedis(value) || isString(value['status']));
}

/** The rule of every option that takes a Redis. */
export const redisRule: Rule<RedisSource | undefined> = rule<RedisSource | undefined>(
  undefined,
  isRedis,
  'a redis:// or rediss:// URL (user:password@host:port/database?keyPrefix=name:, percent-encoded), { url, credentials }, or a client or cluster of ioredis, iovalkey, or "redis" (version 5 or later)',
);

/** Sends a command over a client of ioredis. With `enableAutoPipelining`, its method `call` would fail. */
export function sendToIoredis(client: Ioredis, command: RedisCommand): Promise<unknown> {
  const { name, script, keys = [], args = [], isBinary } = command;
  const method: (...words: readonly Word[]) => Promise<unknown> = Reflect.get(
    client,
    isBinary ? `${name}Buffer` : name,
  );
  return Reflect.apply(method, client, [
    ...(script === undefined ? [] : [script, keys.length]),
    ...keys,
    ...args,
  ]);
}

/** The type of strings in RESP. Other types may be mapped by the settings of the client, which do not apply here. */
const BYTES = { typeMapping: { 36: Buffer } };
const STRINGS = { typeMapping: {} };

/** Sends a command over a client of node-redis, whose `sendCommand` does not apply its key prefix. */
export async function sendToNodeRedis(client: NodeRedis, command: RedisCommand): Promise<unknown> {
  const { name, script, args = [], isBinary } = command;
  const prefix = keyPrefixOf(client);
  const keys = (command.keys ?? []).map((key) => prefix + key);
  const words = [
    name.toUpperCase(),
    ...(script === undefined ? [] : [script, keys.length]),
    ...keys,
    ...args,
  ].map((word) => (typeof word === 'object' ? word : String(word)));
  const options = { ...(isBinary ? BYTES : STRINGS) };
  try {
    if (!isNodeCluster(client)) return await client.sendCommand(words, options);
    return await client.sendCommand(keys[0], false, words, options);
  } catch (error) {
    throw withName(error as Error);
  }
}

/** The key prefix of a client. Clusters of node-redis do not tell theirs. */
export const keyPrefixOf = (client: NodeRedis): string =>
  (isNodeCluster(client) ? undefined : client.options?.keyPrefix) ?? '';

/** Gives replies with an error the name that they have in ioredis. They begin with a code, such as `NOSCRIPT`. */
export function withName(error: Error): Error {
  if (/^[A-Z][A-Z0-9_]+ /.test(error.message)) error.name = 'ReplyError';
  return error;
}

/** Whether Redis has replied with an error, such as NOPERM or WRONGPASS. */
export function isReplyError(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

/** An error of AUTH that is not final: the next attempt to connect has another password. */
export const refusedOnce = (cause: Error): Error =>
  new Error(`Redis refused the credentials: ${cause.message}`, { cause });
