import { setImmediate } from 'node:timers';
import { CHUNK_SIZE, type OutputQueue } from './queue.ts';

export const NEVER: number = Number.POSITIVE_INFINITY;

/**
 * One timer for all deadlines of an endpoint. Calls `tick` every `period` milliseconds while it returns true, which
 * means that deadlines are left. Received data is handled before each tick: after a blocked event loop it may show that
 * a deadline was met. The timer never keeps the process alive.
 */
export class IntervalTimer {
  readonly #created = performance.now();
  readonly #tick: (now: number) => boolean;
  readonly #period: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(period: number, tick: (now: number) => boolean) {
    this.#period = period;
    this.#tick = tick;
  }

  /** Milliseconds since the timer was created. */
  now(): number {
    return Math.floor(performance.now() - this.#created);
  }

  /** Starts the timer if it is stopped. */
  start(): void {
    // The event loop polls for data between its timers and its immediates.
    this.#timer ??= setInterval(() => setImmediate(this.#run), this.#period).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  readonly #run = (): void => {
    if (this.#timer !== undefined && !this.#tick(this.now())) this.stop();
  };
}

/** Milliseconds that a client has to read the end of its connection. */
const CLOSE_TIMEOUT = 5000;
/** Milliseconds that a slow client has to read the reason of its close. */
const SLOW_CLOSE_TIMEOUT = 1000;
/** Milliseconds in which a slow client has to read one chunk. */
const SLOW_READER_TIMEOUT = 5000;

/** The connection whose deadlines are watched. */
interface TimedConnection {
  readonly queue: OutputQueue;
  /** Called at intervals, to keep the connection open and to find out whether the client is alive. */
  ping(): void;
  /** Called when the client makes producers wait too long. */
  closeSlowClient(): void;
  /** Called when the client has not read the end of its connection in time. */
  terminate(): void;
}

/** The deadlines of one connection. The endpoint's timer checks them, so that a connection needs no timer. */
export class Deadlines {
  readonly #timer: IntervalTimer;
  readonly #keepAlive: number;
  #pingAt: number;
  #terminateAt = NEVER;
  #slowSince = NEVER;
  #drains = 0;

  /** `keepAlive`: milliseconds between two pings; 0: none. */
  constructor(timer: IntervalTimer, keepAlive: number) {
    this.#timer = timer;
    this.#keepAlive = keepAlive;
    // Spread at random: all clients reconnect together after a restart and would always be pinged together.
    this.#pingAt = keepAlive === 0 ? NEVER : timer.now() + Math.ceil(keepAlive * (0.5 + Math.random() / 2));
  }

  /** Called when the end of the connection was sent. */
  onClosing({ isSlow }: { readonly isSlow: boolean } = { isSlow: false }): void {
    if (this.#terminateAt === NEVER)
      this.#terminateAt = this.#timer.now() + (isSlow ? SLOW_CLOSE_TIMEOUT : CLOSE_TIMEOUT);
  }

  check(now: number, connection: TimedConnection): void {
    if (now >= this.#terminateAt) connection.terminate();
    if (this.#terminateAt !== NEVER) return;
    if (now >= this.#pingAt) {
      this.#pingAt = now + this.#keepAlive;
      connection.ping();
    }
    if (this.#isTooSlow(now, connection.queue)) connection.closeSlowClient();
  }

  #isTooSlow(now: number, queue: OutputQueue): boolean {
    if (!queue.hasWaiters) {
      this.#slowSince = NEVER;
      return false;
    }
    if (this.#slowSince === NEVER || queue.drains !== this.#drains) this.#slowSince = now;
    this.#drains = queue.drains;
    const chunks = Math.max(1, queue.pendingBytes / CHUNK_SIZE);
    return now - this.#slowSince >= SLOW_READER_TIMEOUT * chunks;
  }
}
