import type { EventLink, EventResult, EventStream } from '../../types/pubsub.ts';
import { resultOf } from './cursor.ts';

/** The services that the topics of one `createPubSub` share. */
export interface TopicServices {
  readonly maxBufferedBytes: number;
  readonly slowReaders: SlowReaders;
  /** Called when a topic is not used any more: its last stream has ended, or it is closed. */
  emptied(topic: Topic): void;
}

type Queue = EventQueue<unknown>;

/** Milliseconds in which the stream has to be opened for which a topic was made ready. */
const HOLD_MILLISECONDS = 30_000;

/** The streams of one topic in this process. */
export class Topic {
  readonly channel: string;
  protected readonly streams: Set<Queue> = new Set<Queue>();
  /** Whether the streams have positions. */
  protected readonly isRecorded: boolean = false;
  readonly #services: TopicServices;
  /** The callers that wait until the topic is ready. */
  #callers = 0;
  #hold: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(channel: string, services: TopicServices) {
    this.channel = channel;
    this.#services = services;
  }

  get size(): number {
    return this.streams.size;
  }

  /** Whether the topic has streams, or waits for the first one. */
  get isUsed(): boolean {
    if (this.#isClosed) return false;
    return this.streams.size > 0 || this.#callers > 0 || this.#hold !== undefined;
  }

  /** Resolves when later events arrive. Then keeps the subscription for a stream that may be opened soon. */
  async ready(confirmed: Promise<void>): Promise<void> {
    this.#callers++;
    try {
      await confirmed;
      await this.started();
      this.#hold ??= setTimeout(() => this.#release(), HOLD_MILLISECONDS).unref();
      this.#hold.refresh();
    } finally {
      this.#callers--;
      this.#leave();
    }
  }

  /** The id of the last event. Undefined without a history, and until the topic has started. */
  get position(): string | undefined {
    return undefined;
  }

  /** Opens a stream of later events. */
  open(_after?: string): EventStream<unknown> {
    return this.addQueue();
  }

  /** Delivers an event to all streams. */
  receive(payload: unknown, size: () => number, _link?: EventLink): void {
    for (const queue of this.streams) queue.push(payload, size);
  }

  /** The subscription to the channel is confirmed. */
  subscribed(): void {}

  /** Resolves when the position of later events is known. */
  started(): Promise<void> | undefined {
    return undefined;
  }

  /** Delivers stored events whose messages were dropped. */
  catchUp(): void {}

  /** Ends the streams, because events of the time without a connection are missing. */
  reconnected(): void {
    this.end(mayHaveMissedEvents('the connection was lost'));
  }

  /** Ends all streams, with or without an error. */
  end(error?: Error): void {
    for (const queue of [...this.streams]) queue.end(error);
  }

  /** Ends all streams and the subscription. */
  close(error?: Error): void {
    this.#isClosed = true;
    clearTimeout(this.#hold);
    this.#services.emptied(this);
    this.end(error);
  }

  protected addQueue(): Queue {
    const queue: Queue = new EventQueue(
      this.#services.maxBufferedBytes,
      {
        ended: () => this.removeQueue(queue),
        grew: () => this.#services.slowReaders.add(queue),
      },
      this.isRecorded,
    );
    this.streams.add(queue);
    return queue;
  }

  protected removeQueue(queue: Queue): void {
    if (this.streams.delete(queue)) this.#leave();
  }

  #release(): void {
    this.#hold = undefined;
    this.#leave();
  }

  #leave(): void {
    if (!this.isUsed && !this.#isClosed) this.#services.emptied(this);
  }
}

/** Events that may always wait, and are not measured. */
const UNMEASURED = 64;
/** Events that may wait for a consumer that does not read. */
const MAX_UNREAD = 1024;

interface Entry<T> {
  readonly value: T;
  /** 0 for events that are not measured. */
  readonly bytes: number;
  readonly cursor: string | undefined;
}

interface Waiter<T> {
  resolve(result: EventResult<T>): void;
  reject(error: Error): void;
}

/** Consumed entries at the start of the list are removed in steps of this number. */
const COMPACT = 1024;

/**
 * The events of one subscriber: a producer pushes them, a consumer iterates. The queue ends with an error
 * when its measured events exceed `maxBytes`, or when it is longer than `MAX_UNREAD` and the consumer reads nothing
 * between two checks.
 */
export class EventQueue<T> implements EventStream<T> {
  readonly #isRecorded: boolean;
  readonly #maxBytes: number;
  readonly #ended: () => void;
  readonly #grew: () => void;
  #entries: Entry<T>[] = [];
  #first = 0;
  #bytes = 0;
  #readSinceCheck = false;
  #waiters: Waiter<T>[] = [];
  #open = true;
  #failure: Error | undefined;
  #startCursor: string | undefined;
  /** The cursor of the last event that the consumer has taken, and that before its last call of `next`. */
  #taken: string | undefined;
  #position: string | undefined;
  #started: (() => void)[] | undefined;
  /** Called when the queue has ended. */
  onEnd: (() => void) | undefined;

  /**
   * The queue calls `ended` once, when it accepts no more events, and `grew` when it becomes longer than
   * `MAX_UNREAD`. A stream without a history never gets a `startCursor`.
   */
  constructor(
    maxBytes: number,
    { ended, grew }: { ended: () => void; grew: () => void },
    isRecorded = false,
  ) {
    this.#isRecorded = isRecorded;
    this.#maxBytes = maxBytes;
    this.#ended = ended;
    this.#grew = grew;
  }

  get startCursor(): string | undefined {
    return this.#startCursor;
  }

  set startCursor(cursor: string | undefined) {
    this.#startCursor = cursor;
    this.#announceStart();
  }

  get position(): string | undefined {
    return this.#position ?? this.#startCursor;
  }

  get length(): number {
    return this.#entries.length - this.#first;
  }

  get isOpen(): boolean {
    return this.#open;
  }

  push(value: T, size: () => number, cursor?: string): void {
    if (!this.#open) return;
    const waiter = this.#waiters.shift();
    if (waiter !== undefined) {
      this.#readSinceCheck = true;
      this.#taken = cursor ?? this.#taken;
      waiter.resolve(resultOf(value, cursor));
      return;
    }
    if (this.length < UNMEASURED) {
      this.#entries.push({ value, bytes: 0, cursor });
      return;
    }
    const bytes = size();
    this.#bytes += bytes;
    if (this.#bytes > this.#maxBytes) {
      this.#overflow(`more than ${this.#maxBytes} bytes were waiting`);
      return;
    }
    this.#entries.push({ value, bytes, cursor });
    if (this.length === MAX_UNREAD + 1) {
      this.#readSinceCheck = true;
      this.#grew();
    }
  }

  /** Ends the queue of a consumer that has stopped reading. Returns true when the queue needs no further check. */
  check(): boolean {
    if (!this.#open || this.length <= MAX_UNREAD) return true;
    if (!this.#readSinceCheck)
      this.#overflow(`more than ${MAX_UNREAD} events were waiting, and none was read`);
    this.#readSinceCheck = false;
    return !this.#open;
  }

  /** Ends the stream, with or without an error. Events that were pushed earlier are still delivered. */
  end(error?: Error): void {
    if (!this.#open) return;
    this.#open = false;
    this.#failure = error;
    this.#ended();
    this.onEnd?.();
    this.#announceStart();
    for (const waiter of this.#waiters.splice(0)) this.#finish(waiter);
  }

  started(): Promise<void> {
    if (!this.#isRecorded || this.#startCursor !== undefined || !this.#open) return Promise.resolve();
    return new Promise((resolve) => {
      this.#started ??= [];
      this.#started.push(resolve);
    });
  }

  next(): Promise<EventResult<T>> {
    this.#position = this.#taken;
    const entry = this.#take();
    if (entry !== undefined) return Promise.resolve(resultOf(entry.value, entry.cursor));
    return new Promise((resolve, reject) => {
      const waiter = { resolve, reject };
      if (this.#open) this.#waiters.push(waiter);
      else this.#finish(waiter);
    });
  }

  return(): Promise<EventResult<T>> {
    this.#clear();
    this.end();
    return Promise.resolve({ value: undefined, done: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #take(): Entry<T> | undefined {
    if (this.length === 0) return undefined;
    const entry = this.#entries[this.#first++] as Entry<T>;
    this.#bytes -= entry.bytes;
    this.#taken = entry.cursor ?? this.#taken;
    this.#readSinceCheck = true;
    if (this.length === 0) this.#clear();
    else if (this.#first >= COMPACT && this.#first * 2 >= this.#entries.length) {
      this.#entries = this.#entries.slice(this.#first);
      this.#first = 0;
    }
    return entry;
  }

  #announceStart(): void {
    const waiting = this.#started;
    this.#started = undefined;
    for (const resolve of waiting ?? []) resolve();
  }

  #clear(): void {
    this.#entries = [];
    this.#first = 0;
    this.#bytes = 0;
  }

  #overflow(reason: string): void {
    this.#clear();
    this.end(mayHaveMissedEvents(reason));
  }

  /** Settles a waiting `next()`. An error rejects one `next()`; the stream is then done. */
  #finish(waiter: Waiter<T>): void {
    const error = this.#failure;
    this.#failure = undefined;
    if (error === undefined) waiter.resolve({ value: undefined, done: true });
    else waiter.reject(error);
  }
}

/**
 * Creates the error of a stream that ends because events may be missing. With close code 1013, "try again
 * later", clients reconnect and query the events that they missed.
 */
export function mayHaveMissedEvents(reason: string): Error {
  return Object.assign(new Error(`Events may have been missed: ${reason}.`), {
    code: 'ERR_EVENTS_MISSED',
    closeCode: 1013,
  });
}

/**
 * Ends a stream whose events are not all in the history. It has the form of a GraphQLError, so that clients
 * see it without a dependency of the pubsub on graphql.
 */
class EventsNotStoredError extends Error {
  override readonly name = 'GraphQLError';
  readonly code = 'ERR_EVENTS_MISSED';
  readonly extensions = { code: 'EVENTS_MISSED', refetch: true };

  toJSON(): object {
    return { message: this.message, extensions: this.extensions };
  }
}

/** Creates the error for a cursor that is too old or unknown. */
export function eventsNotStored(): Error {
  return new EventsNotStoredError(
    'Events were missed that are no longer stored. Query the current state again.',
  );
}

/** A queue with a slow consumer. */
interface Checked {
  /** Returns true when the queue needs no further check. */
  check(): boolean;
}

const INTERVAL_MILLISECONDS = 1000;

/** Checks the queues of slow consumers with one timer, which runs only while there are such queues. */
export class SlowReaders {
  readonly #queues = new Set<Checked>();
  #timer: NodeJS.Timeout | undefined;

  add(queue: Checked): void {
    this.#queues.add(queue);
    this.#timer ??= setInterval(() => this.#check(), INTERVAL_MILLISECONDS).unref();
  }

  #check(): void {
    for (const queue of this.#queues) {
      if (queue.check()) this.#queues.delete(queue);
    }
    if (this.#queues.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
