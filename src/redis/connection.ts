import { messageOf } from '../diagnostics/logging.ts';
import { isReplyError, type RedisCommand, type RedisCommands } from './clients.ts';

/** The times, in milliseconds, after which a silent connection counts as lost. */
export interface ConnectionTimeouts {
  readonly heartbeat: number;
  readonly commandTimeout: number;
}

/** A silent connection for single commands is closed and opened again after these times. */
export const TIMEOUTS: ConnectionTimeouts = { heartbeat: 2000, commandTimeout: 2000 };

/** A connection over the client of a package: to one server, or to the nodes of a cluster. It connects again by itself. */
export interface RedisLine {
  readonly isCluster: boolean;
  /** What the client puts before the keys of commands. */
  readonly keyPrefix: string;
  readonly isReady: boolean;
  /** Whether the client waits for replies before the connection is ready: to AUTH for example. */
  readonly isStarting: boolean;
  /** Connects in the background. */
  open(events: LineEvents): void;
  /** Sends a command; also to subscribe to and unsubscribe from one channel, a sharded one as its key. */
  send(command: RedisCommand): Promise<unknown>;
  /** Closes the connection, so that Redis does not receive unsent commands later. */
  reset(): void;
  /** Looks for the masters again: a server has become a replica, or a slot has moved. */
  leaveReplica(): void;
  /** Closes the connection. Works while Redis is down, unlike QUIT, which would wait for Redis. */
  close(): Promise<void>;
}

interface ConnectionEvents {
  /** The connection accepts commands. */
  ready(): void;
  closed(): void;
  error(error: Error): void;
}

/** What a line for messages needs. */
export interface LineOptions {
  readonly onMessage?: (channel: string, text: string) => void;
  /** Whether the channels of a cluster are sharded. */
  readonly isSharded?: boolean;
}

export interface LineEvents extends ConnectionEvents {
  /** The server has accepted the connection. */
  accepted(): void;
}

/** Checks per interval; a timeout is noticed at most one check late. */
const CHECKS = 5;

/**
 * One connection to Redis that detects a silent server or network. It pings an idle connection. When a reply
 * does not arrive in time, it resets the connection, which rejects its commands and connects again.
 */
export class RedisConnection implements RedisCommands {
  readonly line: RedisLine;
  /** Resolves when the first attempt to connect has succeeded or failed. */
  readonly firstAttempt: Promise<void>;

  readonly #timeouts: ConnectionTimeouts;
  readonly #period: number;
  readonly #timer: NodeJS.Timeout;
  #inFlight = 0;
  /** Checks without an expected reply. A count of checks does not mistake a blocked event loop for a silent Redis. */
  #silentChecks = 0;
  #idleChecks = 0;
  #timedOut = false;
  #lastError: Error | undefined;

  constructor(line: RedisLine, timeouts: ConnectionTimeouts, events: ConnectionEvents) {
    this.line = line;
    this.#timeouts = timeouts;
    this.#period = Math.min(timeouts.heartbeat, timeouts.commandTimeout) / CHECKS;
    this.#timer = setInterval(() => this.#check(), Math.max(1, this.#period));
    this.firstAttempt = new Promise((resolve) => {
      const attempted = (): void => {
        if (this.#inFlight === 0) this.#timer.unref();
        resolve();
      };
      line.open({
        accepted: () => this.#heard(),
        ready: () => {
          this.#timedOut = false;
          attempted();
          events.ready();
        },
        closed: () => {
          this.#heard();
          attempted();
          events.closed();
        },
        // While no Sentinel replies, and after an exception in `connect`, there is no `closed`.
        error: (error) => {
          this.#lastError = error;
          attempted();
          events.error(error);
        },
      });
    });
  }

  get isReady(): boolean {
    return this.line.isReady;
  }

  get problem(): Error | undefined {
    return this.isReady ? undefined : this.#notConnected();
  }

  /** Sends a command. Rejects when the connection is lost or too slow; the command is not sent again. */
  async send(command: RedisCommand): Promise<unknown> {
    if (!this.isReady) throw this.#notConnected();
    // The process does not end before the reply, even if nothing else keeps it running.
    if (this.#inFlight++ === 0) this.#timer.ref();
    const sent = performance.now();
    try {
      const reply = await this.line.send(command);
      this.#lastError = undefined;
      return reply;
    } catch (error) {
      if (isReadOnly(error)) this.line.leaveReplica();
      if (isReplyError(error)) throw error;
      // The connection to a silent node of a cluster is closed by its line.
      throw this.#notConnected(error, performance.now() - sent >= this.#timeouts.commandTimeout);
    } finally {
      if (--this.#inFlight === 0) this.#timer.unref();
      this.#heard();
    }
  }

  /** Whether Redis replies; an error proves that too. */
  async replies(): Promise<boolean> {
    try {
      await this.send({ name: 'ping' });
      return true;
    } catch (error) {
      return isReplyError(error);
    }
  }

  close(): Promise<void> {
    clearInterval(this.#timer);
    return this.line.close();
  }

  #heard(): void {
    this.#silentChecks = 0;
    this.#idleChecks = 0;
  }

  #check(): void {
    const { heartbeat, commandTimeout } = this.#timeouts;
    if (this.#inFlight > 0 || this.line.isStarting) {
      this.#silentChecks++;
      if (this.#silentChecks * this.#period > commandTimeout) this.#reset();
      return;
    }
    this.#idleChecks++;
    if (!this.isReady || this.#idleChecks * this.#period < heartbeat) return;
    // Redis replies even if the user may not call PING: with an error.
    this.send({ name: 'ping' }).catch(() => undefined);
  }

  #reset(): void {
    this.#heard();
    this.#timedOut = true;
    this.line.reset();
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

/** Whether a replica has refused to write. */
const isReadOnly = (error: unknown): boolean => isReplyError(error) && error.message.startsWith('READONLY');

/** Whether Redis will reply with this error again, unlike LOADING, CLUSTERDOWN or a reached `maxclients`. */
export function isRefusal(error: unknown): error is Error {
  if (!isReplyError(error) || error.message.startsWith('ERR max number of clients')) return false;
  return /^(?:DENIED|ERR|NOAUTH|NOPERM|WRONGPASS|WRONGTYPE)\b/.test(error.message);
}
