import type { Duplex } from 'node:stream';
import { setImmediate } from 'node:timers';
import type { WebSocketLike } from '../../types/subscriptions.ts';
import { FORBIDDEN, INIT_TIMEOUT, type Session } from './protocols.ts';
import { CHUNK_SIZE, type SendQueue, STREAM_CHUNK_SIZE, type StreamQueue } from './queue.ts';

/** One timer for all deadlines of an endpoint. */
export interface IntervalTimer {
  /** Milliseconds since the timer was created. */
  now(): number;
  /** Starts the timer if it is stopped. */
  start(): void;
  stop(): void;
}

/**
 * Calls `tick` every `period` milliseconds while it returns true, which means that deadlines are left.
 * Received data is handled before each tick: after a blocked event loop it may show that a deadline was met.
 * The timer never keeps the process alive.
 */
export function createIntervalTimer(period: number, tick: (now: number) => boolean): IntervalTimer {
  const created = performance.now();
  let timer: NodeJS.Timeout | undefined;
  const now = (): number => Math.floor(performance.now() - created);
  const stop = (): void => {
    clearInterval(timer);
    timer = undefined;
  };
  const run = (): void => {
    if (timer !== undefined && !tick(now())) stop();
  };
  return {
    now,
    stop,
    start() {
      // The event loop polls for data between its timers and its immediates.
      timer ??= setInterval(() => setImmediate(run), period).unref();
    },
  };
}

/** Milliseconds that a closing handshake may take. */
const CLOSE_TIMEOUT = 5000;
/** Milliseconds that a slow client has to read the reason of its close. */
const SLOW_CLOSE_TIMEOUT = 1000;
/** Milliseconds in which a slow client has to read one chunk. */
const SLOW_READER_TIMEOUT = 5000;
const NEVER = Number.POSITIVE_INFINITY;

/** The options that set deadlines, in milliseconds. */
export interface DeadlineSettings {
  readonly connectionInitWaitTimeout: number;
  readonly keepAlive: number;
}

/** The connection whose deadlines are watched. */
export interface TimedConnection {
  readonly websocket: WebSocketLike;
  readonly queue: SendQueue;
  readonly session: Session;
  /** Sends `ka`. */
  sendKeepAlive(): void;
  closeSocket(code: number, reason: string): void;
  closeSlowClient(): void;
}

/** The deadlines of one connection. The endpoint's timer checks them, so that a connection needs no timer. */
export class ConnectionDeadlines {
  readonly #connection: TimedConnection;
  readonly #socket: Duplex | undefined;
  readonly #timer: IntervalTimer;
  readonly #keepAlive: number;
  #initBy: number;
  #pingAt: number;
  #keepAliveAt = NEVER;
  #expiresAt = NEVER;
  #terminateAt = NEVER;
  /** Bytes received and drains at the last ping; -1 before the first. */
  #activity = -1;
  #slowSince = NEVER;
  #drains = 0;

  constructor(
    connection: TimedConnection,
    socket: Duplex | undefined,
    timer: IntervalTimer,
    { keepAlive, connectionInitWaitTimeout }: DeadlineSettings,
  ) {
    this.#connection = connection;
    this.#socket = socket;
    this.#timer = timer;
    this.#keepAlive = keepAlive;
    const now = timer.now();
    this.#initBy = now + connectionInitWaitTimeout;
    // Spread at random: all clients reconnect together after a restart and would always be pinged together.
    this.#pingAt = keepAlive === 0 ? NEVER : now + Math.ceil(keepAlive * (0.5 + Math.random() / 2));
  }

  /** Called when `connection_init` has arrived. */
  onInit(): void {
    this.#initBy = NEVER;
  }

  /** Closes the connection at a time in milliseconds since 1970. */
  expireAt(time: number): void {
    this.#expiresAt = time;
  }

  /** Sends `ka` now and at intervals: a legacy client that has received one expects the next. */
  startKeepAlive(): void {
    if (this.#keepAlive === 0) return;
    this.#connection.sendKeepAlive();
    this.#keepAliveAt = this.#timer.now() + this.#keepAlive;
  }

  /** Called when a close frame was sent. */
  onClosing(): void {
    this.#terminateAt = this.#timer.now() + CLOSE_TIMEOUT;
  }

  /** Called when a close frame was sent to a slow client. */
  onClosingSlowClient(): void {
    this.#terminateAt = this.#timer.now() + SLOW_CLOSE_TIMEOUT;
  }

  check(now: number): void {
    const { websocket, session } = this.#connection;
    if (now >= this.#terminateAt) websocket.terminate();
    else if (session.state === 'closed') return;
    else if (now >= this.#initBy) session.refuse(INIT_TIMEOUT);
    else if (Date.now() >= this.#expiresAt) {
      this.#connection.closeSocket(FORBIDDEN.code, FORBIDDEN.reason);
    } else {
      if (now >= this.#pingAt) this.#ping(now);
      if (now >= this.#keepAliveAt) this.startKeepAlive();
      this.#checkReader(now);
    }
  }

  /**
   * Data received or drained since the last ping also proves that the client is alive: large messages delay
   * its pong.
   */
  #ping(now: number): void {
    const { websocket, queue, session } = this.#connection;
    const activity = hasByteCount(this.#socket) ? this.#socket.bytesRead + queue.drains : -1;
    if (activity !== -1 && activity === this.#activity) {
      websocket.terminate();
      return;
    }
    this.#activity = activity;
    this.#pingAt = now + this.#keepAlive;
    websocket.ping();
    session.sendPositions();
  }

  /** Closes a client that makes producers wait too long. */
  #checkReader(now: number): void {
    const { queue } = this.#connection;
    if (!queue.hasWaiters) {
      this.#slowSince = NEVER;
      return;
    }
    if (this.#slowSince === NEVER || queue.drains !== this.#drains) this.#slowSince = now;
    this.#drains = queue.drains;
    const chunks = Math.max(1, queue.pendingBytes / CHUNK_SIZE);
    if (now - this.#slowSince >= SLOW_READER_TIMEOUT * chunks) this.#connection.closeSlowClient();
  }
}

/** Whether the socket counts the bytes that it has received, as those of `node:net` do. */
const hasByteCount = (socket: Duplex | undefined): socket is Duplex & { readonly bytesRead: number } =>
  socket !== undefined && 'bytesRead' in socket;

/** Milliseconds in which a client has to read the end of a stream. */
const STREAM_CLOSE_TIMEOUT = 5000;
/** Milliseconds in which a slow client has to read one chunk. */
const SLOW_STREAM_TIMEOUT = 5000;
const NO_DEADLINE = Number.POSITIVE_INFINITY;

/** The state of one event stream. */
interface StreamState {
  readonly queue: StreamQueue;
  /** True when the response has been ended. */
  readonly isClosing: boolean;
}

/** The deadlines of a client that reads slowly. The endpoint's timer checks them. */
export class StreamDeadlines {
  #slowSince = NO_DEADLINE;
  #closingSince = NO_DEADLINE;
  #drains = 0;

  /** Whether the client makes sources wait too long, or does not read the end of its stream. */
  isLate(now: number, { queue, isClosing }: StreamState): boolean {
    if (isClosing) {
      this.#closingSince = Math.min(this.#closingSince, now);
      return now - this.#closingSince >= STREAM_CLOSE_TIMEOUT;
    }
    if (!queue.hasWaiters) {
      this.#slowSince = NO_DEADLINE;
      return false;
    }
    if (this.#slowSince === NO_DEADLINE || queue.drains !== this.#drains) this.#slowSince = now;
    this.#drains = queue.drains;
    const chunks = Math.max(1, queue.pendingBytes / STREAM_CHUNK_SIZE);
    return now - this.#slowSince >= SLOW_STREAM_TIMEOUT * chunks;
  }
}
