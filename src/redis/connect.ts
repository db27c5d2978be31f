import { lookup } from 'node:dns';
import nodeModule from 'node:module';
import type { Socket } from 'node:net';
import type { Cluster, Redis, RedisOptions } from 'ioredis';
import type { RedisCredentials, RedisLogin, RedisSource } from '../../types/redis.ts';
import { codeOf } from '../http/reply.ts';
import { isObject, isString } from '../options/values.ts';
import {
  type Ioredis,
  isLogin,
  isNodeCluster,
  isNodeRedis,
  isReplyError,
  type NodeRedisClient,
  type RedisCommand,
  type RedisCommands,
  refusedOnce,
  sendToIoredis,
} from './clients.ts';
import { type ClusterLine, ClusterSubscriber, nodeFor } from './cluster.ts';
import {
  type ConnectionTimeouts,
  type LineEvents,
  type LineOptions,
  RedisConnection,
  type RedisLine,
  TIMEOUTS,
} from './connection.ts';
import { NodeRedisLine } from './node-redis.ts';

/** The server to connect to, and the public function that has the option, for errors. */
export interface RedisTarget extends ConnectionTimeouts {
  readonly redis: RedisSource;
  readonly owner: string;
}

/** The settings that every connection has, whatever those of the client are. */
type ConnectionOptions = RedisOptions & { readonly replyMapping: 'legacy' };

export async function createLine(target: RedisTarget): Promise<RedisLine> {
  const { redis, commandTimeout } = target;
  if (isString(redis) || isLogin(redis)) return lineToUrl(redis, target);
  if (isNodeRedis(redis)) return new NodeRedisLine({ client: redis, commandTimeout });
  const settings = connectionOptions(target);
  return new IoredisLine(duplicateOf(redis as Ioredis, settings), { settings });
}

/** Creates the line for messages, beside that for commands. */
export async function createMessageLine(
  target: RedisTarget,
  publisher: RedisLine,
  options: LineOptions,
): Promise<RedisLine> {
  const { redis, commandTimeout } = target;
  if (isString(redis) || isLogin(redis)) return lineToUrl(redis, target, options);
  if (publisher.isCluster)
    return new ClusterSubscriber({ ...options, commandTimeout, publisher: publisher as ClusterLine });
  if (isNodeRedis(redis)) return new NodeRedisLine({ ...options, client: redis, commandTimeout });
  return new IoredisLine(duplicateOf(redis as Ioredis, connectionOptions(target)), options);
}

/** Opens the connection to a URL that all handlers share. It is never closed, and does not keep the process running. */
export async function connectShared(redis: string | RedisLogin): Promise<RedisCommands> {
  const line = await lineToUrl(redis, { owner: 'graphqlHTTP', ...TIMEOUTS }, { isShared: true });
  const ignore = (): void => undefined;
  const connection = new RedisConnection(line, TIMEOUTS, { ready: ignore, closed: ignore, error: ignore });
  await connection.firstAttempt;
  return connection;
}

async function lineToUrl(
  redis: string | RedisLogin,
  target: Omit<RedisTarget, 'redis'>,
  options: LineOptions & { readonly isShared?: boolean } = {},
): Promise<RedisLine> {
  const login = isString(redis) ? { url: redis, credentials: undefined } : redis;
  for await (const found of installedPackages()) {
    if (isIoredisPackage(found)) {
      const client = adapted(new found.Redis(login.url, connectionOptions(target)));
      return new IoredisLine(client, { ...options, credentials: login.credentials });
    }
    const client = isNodeRedisPackage(found) ? createNodeRedis(found, login) : undefined;
    if (client !== undefined)
      return new NodeRedisLine({ ...options, client, commandTimeout: target.commandTimeout });
  }
  throw new Error(
    `${target.owner}: a URL of a Redis needs the package "redis" (version 5 or later): run npm install redis. ` +
      'The packages ioredis and iovalkey work too; or pass a client',
  );
}

interface IoredisPackage {
  readonly Redis: typeof Redis;
}
interface NodeRedisPackage {
  createClient(options: object): unknown;
}

const isIoredisPackage = (found: object): found is IoredisPackage => 'Redis' in found;
const isNodeRedisPackage = (found: object): found is NodeRedisPackage => 'createClient' in found;

/** The packages that can connect to a URL, the preferred one first. */
async function* installedPackages(): AsyncGenerator<object> {
  const require = nodeModule.createRequire(import.meta.url);
  for (const name of ['redis', 'ioredis', 'iovalkey']) {
    let found: object | undefined;
    try {
      found = require(name);
    } catch (error) {
      if (codeOf(error) !== 'MODULE_NOT_FOUND') throw error;
    }
    if (found !== undefined) yield found;
  }
  // In a bundle. Each `try` lets bundlers build an application that does not have the package.
  try {
    yield await import('redis');
  } catch {}
  try {
    yield await import('ioredis');
  } catch {}
  try {
    yield await import('iovalkey');
  } catch {}
}

/** Returns a client of node-redis that is not connected; undefined for a version before 5. */
function createNodeRedis(
  { createClient }: NodeRedisPackage,
  { url, credentials }: { readonly url: string; readonly credentials: RedisLogin['credentials'] | undefined },
): NodeRedisClient | undefined {
  const address = new URL(url);
  const keyPrefix = address.searchParams.get('keyPrefix') ?? undefined;
  const user = address.username === '' ? undefined : decodeURIComponent(address.username);
  let credentialsProvider: object | undefined;
  if (credentials !== undefined) {
    Object.assign(address, { username: '', password: '' });
    credentialsProvider = {
      type: 'async-credentials-provider',
      credentials: async () => ({ username: user, ...(await passwordOf(credentials)) }),
    };
  }
  const client = createClient({ url: address.href, keyPrefix, credentialsProvider });
  return isObject(client) && isNodeRedis(client) && !isNodeCluster(client) ? client : undefined;
}

/** Calls the function of the application. */
async function passwordOf(credentials: RedisLogin['credentials']): Promise<RedisCredentials> {
  const login = await credentials();
  if (!isString(login?.password)) throw new TypeError('credentials() returned no password');
  const { username, password } = login;
  return username === undefined ? { password } : { username, password };
}

const isCluster = (client: Ioredis): client is Cluster => client.isCluster;

const RECONNECT_MILLISECONDS = 2000;

interface IoredisOptions extends LineOptions {
  readonly credentials?: RedisLogin['credentials'] | undefined;
  /** The settings of the lines to the nodes of a cluster. */
  readonly settings?: ConnectionOptions;
  /** Whether the connection does not keep the process running. */
  readonly isShared?: boolean;
}

const addressOf = ({ options }: Redis): string => `${options.host}:${options.port}`;

/** A connection over ioredis, which connects again by itself. */
class IoredisLine implements ClusterLine {
  readonly isCluster: boolean;
  readonly keyPrefix: string;
  readonly #client: Ioredis;
  readonly #options: IoredisOptions;
  #isClosed = false;
  #reconnect: NodeJS.Timeout | undefined;

  constructor(client: Ioredis, options: IoredisOptions = {}) {
    this.#client = client;
    this.#options = options;
    this.isCluster = isCluster(client);
    this.keyPrefix = client.options.keyPrefix ?? '';
    const { onMessage, isShared } = options;
    if (onMessage !== undefined) client.on('message', onMessage).on('smessage', onMessage);
    if (isShared !== true || isCluster(client)) return;
    client.on('connect', () => client.stream.unref());
    // A timer of ioredis would keep the process running.
    client.options.retryStrategy = () => null;
  }

  get isReady(): boolean {
    return this.#client.status === 'ready';
  }

  get isStarting(): boolean {
    return this.#client.status === 'connect';
  }

  open(events: LineEvents): void {
    const client = this.#client;
    const { credentials } = this.#options;
    client.on('error', (cause: Error) => {
      // ioredis rejects its own AUTH with this error when the connection closes.
      const closed = cause.name === 'MaxRetriesPerRequestError';
      if (closed) events.error(new Error('The connection was closed during AUTH', { cause }));
      else events.error(credentials !== undefined && isReplyError(cause) ? refusedOnce(cause) : cause);
    });
    client.on('connect', events.accepted);
    client.on('ready', events.ready);
    client.on('close', events.closed);
    client.on('moved', events.closed);
    client.on('end', () => this.#ended());
    if (credentials !== undefined && !isCluster(client)) this.#authenticate(client, credentials, events);
    if (client.status === 'wait') void client.connect().catch(() => undefined);
  }

  /** Calls the function of the application before each attempt to connect, also those of ioredis. */
  #authenticate(client: Redis, credentials: RedisLogin['credentials'], events: LineEvents): void {
    const connect = client.connect.bind(client);
    client.connect = async () => {
      try {
        Object.assign(client.options, await passwordOf(credentials));
      } catch (error) {
        events.error(error as Error);
        return this.#ended();
      }
      if (!this.#isClosed) await connect();
    };
  }

  send(command: RedisCommand): Promise<unknown> {
    const node = this.isCluster ? nodeFor(this.#masters, command) : undefined;
    return sendToIoredis(node ?? this.#client, command);
  }

  masters(): readonly string[] {
    return this.#masters.map(addressOf);
  }

  ownerOf(slot: number): string | undefined {
    return isCluster(this.#client) ? this.#client.slots[slot]?.[0] : undefined;
  }

  lineTo(address: string, options: LineOptions): RedisLine {
    const node = this.#masters.find((each) => addressOf(each) === address);
    if (node === undefined) throw new Error('The master does not exist any more');
    const own = { ...this.#options.settings, retryStrategy: () => null };
    return new IoredisLine(adapted(node.duplicate(own)), options);
  }

  get #masters(): readonly Redis[] {
    return isCluster(this.#client) ? this.#client.nodes('master') : [];
  }

  close(): Promise<void> {
    clearTimeout(this.#reconnect);
    this.#isClosed = true;
    // ioredis listens to the first error of a socket. A TLS handshake that is closed may have two: of the certificate,
    // and the server's alert.
    for (const { stream } of this.#clients) stream?.on('error', () => undefined);
    return new Promise((resolve) => {
      if (this.#client.status === 'end') return resolve();
      this.#client.once('end', () => resolve());
      // Between two attempts there is no connection that could emit `end`, and none of a cluster without
      // known nodes.
      const isUnconnected = isCluster(this.#client) && this.#client.nodes().length === 0;
      if (this.#client.status === 'reconnecting' || isUnconnected) resolve();
      this.#client.disconnect();
    });
  }

  /** Connects again where ioredis gives up: after `sentinelRetryStrategy`, or an exception for `tls` or `port`. */
  #ended(): void {
    if (this.#isClosed) return;
    const connect = (): Promise<unknown> => this.#client.connect().catch(() => undefined);
    this.#reconnect = setTimeout(connect, RECONNECT_MILLISECONDS);
    if (this.#options.isShared) this.#reconnect.unref();
  }

  /** The client of a cluster sends commands to any node that it still knows after lost connections, also to replicas. */
  leaveReplica(): void {
    if (isCluster(this.#client)) this.#client.refreshSlotsCache();
    else if (this.isReady) this.#client.disconnect(true);
  }

  reset(): void {
    for (const { stream } of this.#clients) {
      if (stream !== undefined) resetSocket(stream);
    }
  }

  get #clients(): readonly Redis[] {
    return isCluster(this.#client) ? this.#client.nodes() : [this.#client];
  }
}

/**
 * Closes a socket with RST, which discards unsent bytes in the kernel. Otherwise the kernel would send them as soon
 * as the network works again. Node has no RST for TLS, nor for the socket of a `path`.
 */
function resetSocket(socket: Socket): void {
  if ('encrypted' in socket || socket.remoteAddress === undefined) socket.destroy();
  else socket.resetAndDestroy();
}

const duplicateOf = (client: Ioredis, options: ConnectionOptions): Ioredis =>
  isCluster(client) ? duplicateCluster(client, options) : duplicate(client, options);

function duplicate(client: Redis, options: ConnectionOptions): Redis {
  const copy = client.duplicate(options);
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
    redisOptions: Object.assign(shared, {
      // As soon as the cluster knows a node.
      lazyConnect: false,
      // The copy keeps the settings of the original that are not replaced. See `adapted`.
      commandTimeout: undefined,
      // The replies of one node prove nothing about another: each has a limit of its own.
      socketTimeout: options.connectTimeout,
    }),
    lazyConnect: true,
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

/** The options of ioredis. A command that cannot be sent now fails: a later event could be outdated. */
function connectionOptions({ commandTimeout }: ConnectionTimeouts): ConnectionOptions {
  return {
    // `open` connects: an earlier connection could be ready before something listens to its events.
    lazyConnect: true,
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
