import type { EventResult, EventStream } from '../../../types/pubsub.ts';
import { resultOf } from '../cursor.ts';
import { mayHaveMissedEvents } from './missed-events.ts';

/** The limits of a queue. */
export interface QueueLimits {
  /** Events that may always wait. */
  readonly bufferSize: number;
  /** Bytes, as JSON, of further events, which may wait while the consumer keeps reading. */
  readonly bufferBytes: number;
}

interface Entry<T> {
  readonly value: T;
  /** 0 for events within `bufferSize`, which are not measured. */
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
 * when the events beyond `bufferSize` exceed `bufferBytes`, or when it is longer than `bufferSize` and the
 * consumer reads nothing between two checks.
 */
export class EventQueue<T> implements EventStream<T> {
  readonly #limits: QueueLimits;
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

  /**
   * The queue calls `ended` once, when it accepts no more events, and `grew` when it becomes longer than
   * `bufferSize`.
   */
  constructor(limits: QueueLimits, { ended, grew }: { ended: () => void; grew: () => void }) {
    this.#limits = limits;
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
    const { bufferSize, bufferBytes } = this.#limits;
    if (this.length < bufferSize) {
      this.#entries.push({ value, bytes: 0, cursor });
      return;
    }
    const bytes = size();
    this.#bytes += bytes;
    if (this.#bytes > bufferBytes) {
      this.#overflow(`more than ${bufferSize} events and ${bufferBytes} bytes were waiting`);
      return;
    }
    this.#entries.push({ value, bytes, cursor });
    if (this.length === bufferSize + 1) {
      this.#readSinceCheck = true;
      this.#grew();
    }
  }

  /**
   * Ends the queue of a consumer that has stopped reading. Returns true when the queue needs no further
   * check.
   */
  check(): boolean {
    const { bufferSize } = this.#limits;
    if (!this.#open || this.length <= bufferSize) return true;
    if (!this.#readSinceCheck)
      this.#overflow(`more than ${bufferSize} events were waiting, and none was read`);
    this.#readSinceCheck = false;
    return !this.#open;
  }

  /** Ends the stream, with or without an error. Events that were pushed earlier are still delivered. */
  end(error?: Error): void {
    if (!this.#open) return;
    this.#open = false;
    this.#failure = error;
    this.#ended();
    this.#announceStart();
    for (const waiter of this.#waiters.splice(0)) this.#finish(waiter);
  }

  started(): Promise<void> {
    if (this.#startCursor !== undefined || !this.#open) return Promise.resolve();
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
