import { lookup } from 'node:dns';
import type { Cluster, Redis, RedisOptions } from 'ioredis';
import type { RedisClient } from '../../types/pubsub.ts';
import { type Accepts, isFunction, isObject, isString, type Rule, rule } from '../options/rules.ts';
import type { ConnectionTimeouts, RedisCommands } from './connection.ts';

/** Whether ioredis can parse a URL. A database that is not a number would cause an unhandled rejection in ioredis. */
function isRedisUrl(text: string): boolean {
  if (!/^rediss?:\/\//.test(text)) return false;
  try {
    const { username, password, pathname } = new URL(text);
    decodeURIComponent(username + password);
    return /^\/?(?:\d.*)?$/.test(pathname);
  } catch {
    return false;
  }
}

const isRedis: Accepts = (value) => {
  if (isString(value)) return isRedisUrl(value);
  // The clients of the package "redis" have `duplicate` and `isOpen`.
  return isObject(value) && isFunction(value['duplicate']) && !('isOpen' in value);
};

/** The rule of the option `redis`. */
export const redisRule: Rule<string | RedisClient | undefined> = rule<string | RedisClient | undefined>(
  undefined,
  isRedis,
  'a redis:// or rediss:// URL (user:password@host:port/database, percent-encoded), or an ioredis client',
);

/** The two clients that Redis pub/sub needs. */
interface RedisClients {
  readonly publisher: RedisCommands;
  readonly subscriber: Redis;
}

/** The server to connect to, and the public function that has the option, for errors. */
export interface RedisTarget extends ConnectionTimeouts {
  readonly redis: string | RedisClient;
  readonly owner: string;
}

/** The settings that every connection has, whatever those of the client are. */
type ConnectionOptions = RedisOptions & { readonly replyMapping: 'legacy' };

/** Creates a client for commands, for a URL or with the settings of a client. It connects in the background. */
export async function connectClient(target: RedisTarget): Promise<RedisCommands> {
  const { redis } = target;
  const options = connectionOptions(target);
  if (typeof redis === 'string') return adapted(new (await loadClient(target))(redis, options));
  return isCluster(redis) ? duplicateCluster(redis, options) : duplicate(redis, options);
}

/** Creates both clients for a URL, or with the settings of a client. They connect in the background. */
export async function connectClients(target: RedisTarget): Promise<RedisClients> {
  const { redis } = target;
  const options = connectionOptions(target);
  const Client = typeof redis === 'string' || isCluster(redis) ? await loadClient(target) : undefined;
  const publisher = await connectClient(target);
  if (Client === undefined) return { publisher, subscriber: duplicate(redis as RedisClient, options) };
  if (typeof redis === 'string') return { publisher, subscriber: adapted(new Client(redis, options)) };
  return { publisher, subscriber: subscriberOf(publisher as Cluster, Client, options) };
}

async function loadClient({ owner }: RedisTarget): Promise<typeof Redis> {
  // The `try` lets bundlers build an application that has no ioredis because it uses no Redis.
  try {
    return (await import('ioredis')).Redis;
  } catch (cause) {
    throw new Error(`${owner}: the option "redis" needs the package "ioredis": run npm install ioredis`, {
      cause,
    });
  }
}

const isCluster = (client: RedisClient): client is Cluster =>
  'isCluster' in client && client.isCluster === true;

function duplicate(client: RedisClient, options: ConnectionOptions): Redis {
  const copy = client.duplicate(options) as Redis;
  copy.options.retryStrategy = retrying(copy.options.retryStrategy);
  if (copy.options.sentinels !== undefined) copy.on('ready', () => void requireMaster(copy));
  return adapted(copy);
}

/**
 * Connects again if the server is a replica. During a failover Sentinel names the old master, which may
 * already run as a replica.
 */
async function requireMaster(client: Redis): Promise<void> {
  // Without permission for ROLE the server is trusted.
  const [role] = await client.role().catch(() => ['master']);
  if (role === 'slave') client.disconnect(true);
}

/**
 * Replaces two settings of a client. Its own time limit would reject a command and leave the connection open:
 * no code would wait for the reply to a subscription. If ioredis sets the name, a connection
 * that closes early counts as ready, as with CLIENT SETINFO (see `disableClientInfo`).
 */
function adapted(client: Redis): Redis {
  delete client.options.commandTimeout;
  const { connectionName } = client.options;
  if (connectionName === undefined) return client;
  delete client.options.connectionName;
  client.on('ready', () => void client.client('SETNAME', connectionName).catch(() => undefined));
  return client;
}

/** The delay before an attempt to connect: that of the client's own strategy, unless it gives up. */
function retrying(
  strategy: ((attempt: number, reason?: Error) => unknown) | null | undefined,
): (attempt: number, reason?: Error) => number {
  return (attempt, reason) => {
    const delay = strategy?.(attempt, reason);
    // Without a connection a stream would stay open and never have an event again.
    return typeof delay === 'number' ? delay : Math.min(attempt * 50, 2000);
  };
}

function duplicateCluster(cluster: Cluster, options: ConnectionOptions): Cluster {
  const { enableOfflineQueue: _, ...shared } = { ...cluster.options.redisOptions, ...options };
  return cluster.duplicate([], {
    // The copy keeps the settings of the original that are not replaced. See `adapted`.
    // The replies of one node prove nothing about another: each has a limit of its own.
    redisOptions: Object.assign(shared, { commandTimeout: undefined, socketTimeout: options.connectTimeout }),
    lazyConnect: false,
    enableOfflineQueue: false,
    // Without the queue the check fails until a node is connected: always, if a lookup gives the seeds other names than
    // the nodes have, as for ElastiCache with TLS.
    enableReadyCheck: cluster.options.dnsLookup === lookup && cluster.options.enableReadyCheck,
    // A replica may not have the newest event yet.
    scaleReads: 'master',
    clusterRetryStrategy: retrying(cluster.options.clusterRetryStrategy),
    // A command whose connection was lost is not sent again.
    retryDelayOnFailover: 0,
  });
}

/**
 * Commands go to the node of their key. Redis sends every message to all nodes, so the subscriber needs one
 * node; after a lost connection it uses another one.
 */
function subscriberOf(publisher: Cluster, Client: typeof Redis, options: ConnectionOptions): Redis {
  function selectNode(): void {
    const nodes = publisher.nodes('master');
    const node = nodes[Math.floor(Math.random() * nodes.length)];
    if (node === undefined) return;
    const { host, port, username, password, tls } = node.options;
    Object.assign(subscriber.options, { host, port, username, password, tls });
  }
  const subscriber = new Client({
    ...publisher.options.redisOptions,
    ...options,
    lazyConnect: true,
    retryStrategy(attempt) {
      selectNode();
      return Math.min(attempt * 50, 2000);
    },
  });
  publisher.once('ready', () => {
    selectNode();
    if (subscriber.status === 'wait') void subscriber.connect().catch(() => undefined);
  });
  return adapted(subscriber);
}

/** The options of ioredis. A command that cannot be sent now fails: a later event could be outdated. */
function connectionOptions({ commandTimeout }: ConnectionTimeouts): ConnectionOptions {
  return {
    lazyConnect: false,
    connectTimeout: commandTimeout,
    // Without it, a Sentinel that does not reply is never left for the next one.
    sentinelCommandTimeout: commandTimeout,
    // Events that are published on a replica do not reach the other servers.
    role: 'master',
    // A connection that is closed after NOSCRIPT never stores the script.
    reconnectOnError: null,
    // On disconnect ioredis waits for this timeout even without a connection.
    disconnectTimeout: 250,
    // INFO may be forbidden to the user, and is not allowed after SUBSCRIBE.
    enableReadyCheck: false,
    // When a connection closes before Redis has replied to CLIENT SETINFO, ioredis (5.11) takes it for ready
    // and never reconnects.
    disableClientInfo: true,
    enableOfflineQueue: false,
    autoResubscribe: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    // With it, `callBuffer` throws an exception that nothing can catch.
    enableAutoPipelining: false,
    // The forms of replies that the scripts and their callers expect.
    stringNumbers: false,
    replyMapping: 'legacy',
  };
}
