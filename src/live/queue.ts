// From the module: fake timers of a test must not delay events.
import { setImmediate, setTimeout } from 'node:timers';

/** When a message is written: `'soon'` if the client waits for it, `'batched'` together with other events. */
export type FlushMode = 'soon' | 'batched';

/** Milliseconds of a burst: related events often arrive in successive iterations of the event loop. */
const BURST_TIME = 1;
/** Queues flushed before the scheduler yields, so that a huge fan-out does not delay pings and handshakes. */
const MAX_FLUSHES = 512;
/** The number of queued messages from which producers have to yield. */
const MAX_MESSAGES = 32_768;

/** What sends messages to a client. */
interface Producer {
  /** Whether it waits for a slow client, which is then not closed. */
  readonly appliesBackpressure: boolean;
}

/** A queue of messages that can be written. */
interface Flushable {
  flush(): void;
}

/** Flushes the queues of an endpoint, each once per burst, however many messages it has. */
export class FlushScheduler {
  #batched: Flushable[] = [];
  #urgent: Flushable[] = [];
  #isScheduled = false;
  #messages = 0;

  /** Flushes the queue after a millisecond, together with messages that have arrived until then. */
  flushBatched(queue: Flushable): void {
    this.#batched.push(queue);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    // Executing the first events of a burst may take longer than the time of the burst. The event loop then reads
    // the other events, which have arrived meanwhile, before the sockets are written.
    setTimeout(() => setImmediate(this.#flushBurst), BURST_TIME);
  }

  /** Flushes the queue at the end of this iteration of the event loop: the client waits for a response. */
  flushSoon(queue: Flushable): void {
    if (this.#urgent.push(queue) === 1) setImmediate(this.#flushUrgent);
  }

  /** Counts a queued message, for `isBackpressured`. */
  countMessage(): void {
    this.#messages++;
  }

  /** True if so many messages are queued that a producer should await `yield()`. */
  isBackpressured(): boolean {
    return this.#messages > MAX_MESSAGES;
  }

  /** Flushes all queues and yields to the event loop. */
  yield(): Promise<void> {
    this.#flushBurst();
    return new Promise((resolve) => setImmediate(resolve));
  }

  readonly #flushBurst = (): void => {
    const queues = this.#batched;
    this.#batched = queues.length > MAX_FLUSHES ? queues.splice(MAX_FLUSHES) : [];
    this.#isScheduled = this.#batched.length > 0;
    if (this.#isScheduled) setImmediate(this.#flushBurst);
    else this.#messages = 0;
    for (const queue of queues) queue.flush();
  };

  readonly #flushUrgent = (): void => {
    const queues = this.#urgent;
    this.#urgent = [];
    for (const queue of queues) queue.flush();
  };
}

/**
 * The text around the body of a message, one character per UTF-8 byte, so that many clients can share the body: events
 * of shared subscriptions have the same body for all of them.
 */
export interface Envelope {
  readonly before: string;
  readonly after: string;
  /** The first byte of the frame of a WebSocket; that of a text message without it. */
  readonly firstByte?: number;
}

/** The envelope of a message that is complete. */
export const NO_ENVELOPE: Envelope = { before: '', after: '' };

/** Bytes of one message. */
export const lengthOf = ({ before, after }: Envelope, body: Buffer): number =>
  before.length + body.length + after.length;

/** Messages of one client, in order. Parallel lists take less memory than a list of objects. */
export class Messages {
  readonly envelopes: Envelope[] = [];
  readonly bodies: Buffer[] = [];
  /** Bytes of all messages. */
  bytes = 0;

  push(envelope: Envelope, body: Buffer): void {
    this.envelopes.push(envelope);
    this.bodies.push(body);
    this.bytes += lengthOf(envelope, body);
  }

  /** Removes and returns the first messages, about `limit` bytes and at least one message. */
  take(limit: number): Messages {
    const taken = new Messages();
    let count = 0;
    for (; count < this.bodies.length && (count === 0 || taken.bytes < limit); count++) {
      taken.push(this.envelopes[count] as Envelope, this.bodies[count] as Buffer);
    }
    this.envelopes.splice(0, count);
    this.bodies.splice(0, count);
    this.bytes -= taken.bytes;
    return taken;
  }
}

/** Bytes that are written at a time. `drains` grows per chunk. */
export const CHUNK_SIZE: number = 64 * 1024;

/**
 * The messages of one client, in order. Writes once per burst, and pauses while the client does not read. A subclass
 * per transport writes them.
 */
export abstract class OutputQueue implements Flushable {
  readonly #scheduler: FlushScheduler;
  #messages: Messages | undefined;
  /** `sentBytes` when `#messages` was created. */
  #initialBytes = 0;
  #isUrgent = false;
  #waiters: (() => void)[] | undefined;
  /** True while the output is full, until it has drained. */
  protected isPaused = false;
  /** The number of times that a slow client has read all bytes sent to it. */
  drains = 0;

  constructor(scheduler: FlushScheduler) {
    this.#scheduler = scheduler;
  }

  /** Bytes that were written and that the client has not read. */
  protected abstract get sentBytes(): number;
  /** False if the output drops what is written to it, because it is closing or has failed. */
  protected abstract get isWritable(): boolean;
  /** Whether the output is full. Calls `onDrain` when it is empty again. */
  protected abstract isFull(): boolean;
  protected abstract write(messages: Messages): void;

  /** The estimated number of bytes that the client has not read. */
  get pendingBytes(): number {
    return this.sentBytes + (this.#messages?.bytes ?? 0);
  }

  /** True while a producer waits for the client. */
  get hasWaiters(): boolean {
    return this.#waiters !== undefined;
  }

  /** Makes room for a message. Returns false if the client is too slow for this producer, and has to be closed. */
  makeRoom(limit: number, producer: Producer | undefined): boolean {
    if (!this.#exceeds(limit)) return true;
    this.flush();
    return producer?.appliesBackpressure === true || !this.#exceeds(limit);
  }

  push(envelope: Envelope, body: Buffer, mode: FlushMode): void {
    if (this.#messages === undefined) {
      this.#messages = new Messages();
      this.#initialBytes = this.sentBytes;
      if (mode === 'batched') this.#scheduler.flushBatched(this);
    }
    if (mode === 'soon' && !this.#isUrgent) {
      this.#isUrgent = true;
      this.#scheduler.flushSoon(this);
    }
    this.#messages.push(envelope, body);
    this.#scheduler.countMessage();
  }

  /** Drops all messages and resumes all producers. */
  discard(): void {
    this.#messages = undefined;
    this.#resumeProducers();
  }

  /** Writes messages until the client is slow. */
  flush(): void {
    this.#isUrgent = false;
    while (this.#messages !== undefined && !this.isFull()) {
      const messages = this.#messages.bytes > CHUNK_SIZE ? this.#messages.take(CHUNK_SIZE) : this.#messages;
      if (messages === this.#messages || this.#messages.bodies.length === 0) this.#messages = undefined;
      this.write(messages);
    }
  }

  /** Writes all messages even if the client is slow, because its connection is about to close. */
  flushAll(): void {
    if (this.#messages !== undefined) this.write(this.#messages);
    this.discard();
  }

  /**
   * Resolves when the client has read something, or is closed; undefined if it is not slow. An output that is closing
   * or has failed is never full, because it drops messages. A source that is always ready would then run without end,
   * so it waits for the end of the connection.
   */
  waitForDrain(): Promise<void> | undefined {
    if (this.#messages !== undefined) {
      // The output is as it was at the last flush, whose result is known.
      if (this.#messages.bytes <= CHUNK_SIZE && !this.isPaused) return undefined;
      this.flush();
    }
    if (!this.isFull() && this.isWritable) return undefined;
    return new Promise((resolve) => {
      this.#waiters ??= [];
      this.#waiters.push(resolve);
    });
  }

  protected onDrain(): void {
    this.isPaused = false;
    this.drains++;
    this.flush();
    this.#resumeProducers();
  }

  /** Whether `pendingBytes` is over the limit. Reads the output once per burst. */
  #exceeds(limit: number): boolean {
    const messages = this.#messages;
    if (messages !== undefined && !this.isPaused && messages.bytes + this.#initialBytes <= limit)
      return false;
    return this.pendingBytes > limit;
  }

  #resumeProducers(): void {
    const waiters = this.#waiters;
    this.#waiters = undefined;
    for (const resume of waiters ?? []) resume();
  }
}
