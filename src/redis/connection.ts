import type { Socket } from 'node:net';
import type { Cluster, Redis } from 'ioredis';
import { messageOf } from '../diagnostics/logging.ts';

/** The times, in milliseconds, after which a silent connection counts as lost. */
export interface ConnectionTimeouts {
  readonly heartbeat: number;
  readonly commandTimeout: number;
}

/** The client of one Redis server, or of a cluster. */
export type RedisCommands = Redis | Cluster;

interface ConnectionEvents {
  /** The connection accepts commands. */
  ready(): void;
  closed(): void;
  error(error: Error): void;
}

/** Whether commands go to the nodes of a cluster. */
export const isCluster = (client: RedisCommands): client is Cluster => 'nodes' in client;

/** Returns what ioredis puts before the keys of a command: the option `keyPrefix` of the client. */
export const keyPrefixOf = (client: RedisCommands): string => client.options.keyPrefix ?? '';

const RECONNECT_MILLISECONDS = 2000;

/** Checks per interval; a timeout is noticed at most one check late. */
const CHECKS = 5;

/**
 * One connection to Redis that detects a silent server or network. It pings an idle connection. When a reply
 * does not arrive in time, it resets the connection, rejects its commands, and ioredis connects again.
 */
export class RedisConnection {
  /** Resolves when the first attempt to connect has succeeded or failed. */
  readonly firstAttempt: Promise<void>;

  readonly #client: RedisCommands;
  readonly #timeouts: ConnectionTimeouts;
  readonly #period: number;
  readonly #timer: NodeJS.Timeout;
  #inFlight = 0;
  /**
   * Checks without an expected reply. A count of checks does not mistake a blocked event loop for a silent
   * Redis.
   */
  #silentChecks = 0;
  #idleChecks = 0;
  #timedOut = false;
  #isClosed = false;
  #reconnect: NodeJS.Timeout | undefined;
  #lastError: Error | undefined;

  constructor(client: RedisCommands, timeouts: ConnectionTimeouts, events: ConnectionEvents) {
    this.#client = client;
    this.#timeouts = timeouts;
    this.#period = Math.min(timeouts.heartbeat, timeouts.commandTimeout) / CHECKS;
    this.#timer = setInterval(() => this.#check(), Math.max(1, this.#period)).unref();
    this.firstAttempt = new Promise((resolve) => {
      // While no Sentinel replies, and after an exception in `connect`, there is no `close`.
      for (const event of ['ready', 'close', 'error']) client.once(event, () => resolve());
    });
    client.on('error', (cause: Error) => {
      // ioredis rejects its own AUTH with this error when the connection closes.
      const closed = cause.name === 'MaxRetriesPerRequestError';
      const error = closed ? new Error('The connection was closed during AUTH', { cause }) : cause;
      this.#lastError = error;
      events.error(error);
    });
    client.on('connect', () => this.#heard());
    client.on('ready', () => {
      this.#timedOut = false;
      events.ready();
    });
    client.on('close', () => {
      this.#heard();
      events.closed();
    });
    client.on('end', () => this.#ended());
  }

  get isReady(): boolean {
    return this.#client.status === 'ready';
  }

  /** Sends a command. Rejects when the connection is lost or too slow; the command is not sent again. */
  async send<T>(command: (client: RedisCommands) => Promise<T>): Promise<T> {
    if (!this.isReady) throw this.#notConnected();
    this.#inFlight++;
    const sent = performance.now();
    try {
      const reply = await command(this.#client);
      this.#lastError = undefined;
      return reply;
    } catch (error) {
      if (isReadOnly(error)) this.#leaveReplica();
      if (isReplyError(error)) throw error;
      // ioredis closes the connection to a silent node of a cluster (`socketTimeout`).
      throw this.#notConnected(error, performance.now() - sent >= this.#timeouts.commandTimeout);
    } finally {
      this.#inFlight--;
      this.#heard();
    }
  }

  /** Whether Redis replies; an error proves that too. */
  async replies(): Promise<boolean> {
    try {
      await this.send((client) => client.ping());
      return true;
    } catch (error) {
      return isReplyError(error);
    }
  }

  /** Closes the connection. Works while Redis is down, unlike QUIT, which would wait for Redis. */
  close(): Promise<void> {
    clearInterval(this.#timer);
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
    this.#reconnect = setTimeout(() => this.#client.connect().catch(() => undefined), RECONNECT_MILLISECONDS);
  }

  #heard(): void {
    this.#silentChecks = 0;
    this.#idleChecks = 0;
  }

  #check(): void {
    const { heartbeat, commandTimeout } = this.#timeouts;
    // In the status `connect` ioredis itself waits for replies, to AUTH for example.
    if (this.#inFlight > 0 || this.#client.status === 'connect') {
      this.#silentChecks++;
      if (this.#silentChecks * this.#period > commandTimeout) this.#reset();
      return;
    }
    this.#idleChecks++;
    if (!this.isReady || this.#idleChecks * this.#period < heartbeat) return;
    // Redis replies even if the user may not call PING: with an error.
    this.send((client) => client.ping()).catch(() => undefined);
  }

  /**
   * Connects again, because the server has become a replica: its address leads to the new master. The client
   * of a cluster sends commands to any node that it still knows after lost connections, also to replicas.
   */
  #leaveReplica(): void {
    if (isCluster(this.#client)) this.#client.refreshSlotsCache();
    else if (this.isReady) this.#client.disconnect(true);
  }

  get #clients(): readonly Redis[] {
    return isCluster(this.#client) ? this.#client.nodes() : [this.#client];
  }

  /** Closes connections so that Redis does not receive unsent commands later. */
  #reset(): void {
    this.#heard();
    this.#timedOut = true;
    for (const { stream } of this.#clients) {
      if (stream !== undefined) resetSocket(stream);
    }
  }

  #notConnected(cause?: unknown, isLate = false): Error {
    const { commandTimeout } = this.#timeouts;
    if (isLate || this.#timedOut) {
      return Object.assign(new Error(`Redis did not reply within ${commandTimeout} ms`, { cause }), {
        code: 'ERR_REDIS_TIMEOUT',
      });
    }
    const reason = this.#lastError === undefined ? '' : `: ${messageOf(this.#lastError)}`;
    return new Error(`Redis is not connected${reason}`, { cause: this.#lastError ?? cause });
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

/** Whether Redis has replied with an error, such as NOPERM or WRONGPASS. */
export function isReplyError(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

/** Whether a replica has refused to write. */
const isReadOnly = (error: unknown): boolean => isReplyError(error) && error.message.startsWith('READONLY');

/** Whether Redis will reply with this error again, unlike LOADING, CLUSTERDOWN or a reached `maxclients`. */
export function isRefusal(error: unknown): error is Error {
  if (!isReplyError(error) || error.message.startsWith('ERR max number of clients')) return false;
  return /^(?:DENIED|ERR|NOAUTH|NOPERM|WRONGPASS|WRONGTYPE)\b/.test(error.message);
}
