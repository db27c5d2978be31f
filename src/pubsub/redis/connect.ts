import type { Cluster, Redis, RedisOptions } from 'ioredis';
import type { RedisClient } from '../../../types/pubsub.ts';
import type { ConnectionTimeouts, RedisCommands } from './connection.ts';

/** The two clients that Redis pub/sub needs. */
export interface RedisClients {
  readonly publisher: RedisCommands;
  readonly subscriber: Redis;
}

/** Creates clients for a URL, or with the settings of a client. They connect in the background. */
export async function connectClients(
  redis: string | RedisClient,
  timeouts: ConnectionTimeouts,
): Promise<RedisClients> {
  const options = connectionOptions(timeouts);
  if (typeof redis !== 'string') {
    if (isCluster(redis)) return connectCluster(redis, options);
    return { publisher: duplicate(redis, options), subscriber: duplicate(redis, options) };
  }
  const Client = await loadClient();
  return {
    publisher: named(new Client(redis, options)),
    subscriber: named(new Client(redis, options)),
  };
}

async function loadClient(): Promise<typeof Redis> {
  // The `try` lets bundlers build an application that has no ioredis because it uses no Redis.
  try {
    return (await import('ioredis')).Redis;
  } catch (cause) {
    throw new Error('createPubSub: the option "redis" needs the package "ioredis"; install it', { cause });
  }
}

const isCluster = (client: RedisClient): client is Cluster =>
  'isCluster' in client && client.isCluster === true;

const duplicate = (client: RedisClient, options: RedisOptions): Redis =>
  named(client.duplicate(options) as Redis);

/**
 * Sets the name of a connection when it is ready. In ioredis itself it has the defect of CLIENT SETINFO, see
 * below.
 */
function named(client: Redis): Redis {
  const { connectionName } = client.options;
  if (connectionName === undefined) return client;
  delete client.options.connectionName;
  client.on('ready', () => void client.client('SETNAME', connectionName).catch(() => undefined));
  return client;
}

/**
 * Commands go to the node of their key. Redis sends every message to all nodes, so the subscriber needs one
 * node; after a lost connection it uses another one.
 */
async function connectCluster(cluster: Cluster, options: RedisOptions): Promise<RedisClients> {
  const Client = await loadClient();
  const { enableOfflineQueue: _, ...shared } = { ...cluster.options.redisOptions, ...options };
  const publisher = cluster.duplicate([], {
    redisOptions: shared,
    lazyConnect: false,
    enableOfflineQueue: false,
    // A command whose connection was lost is not sent again.
    retryDelayOnFailover: 0,
  });
  function selectNode(): void {
    const nodes = publisher.nodes('master');
    const node = nodes[Math.floor(Math.random() * nodes.length)];
    if (node === undefined) return;
    const { host, port, username, password, tls } = node.options;
    Object.assign(subscriber.options, { host, port, username, password, tls });
  }
  const subscriber = new Client({
    ...cluster.options.redisOptions,
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
  return { publisher, subscriber: named(subscriber) };
}

/** The options of ioredis. A command that cannot be sent now fails: a later event could be outdated. */
function connectionOptions({ commandTimeout }: ConnectionTimeouts): RedisOptions {
  return {
    lazyConnect: false,
    connectTimeout: commandTimeout,
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
  };
}
