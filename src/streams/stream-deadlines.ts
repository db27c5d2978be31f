import { CHUNK_SIZE, type StreamQueue } from './stream-queue.ts';

/** Milliseconds in which a client has to read the end of a stream. */
const CLOSE_TIMEOUT = 5000;
/** Milliseconds in which a slow client has to read one chunk. */
const SLOW_READER_TIMEOUT = 5000;
const NEVER = Number.POSITIVE_INFINITY;

/** The state of one event stream. */
interface StreamState {
  readonly queue: StreamQueue;
  /** True when the response has been ended. */
  readonly isClosing: boolean;
  /** True when the response has begun. */
  readonly isOpen: boolean;
}

/** The deadlines of a client that reads slowly. The endpoint's timer checks them. */
export class StreamDeadlines {
  #slowSince = NEVER;
  #closingSince = NEVER;
  #drains = 0;

  /** Whether the client makes sources wait too long, or does not read the end of its stream. */
  isLate(now: number, { queue, isClosing, isOpen }: StreamState): boolean {
    if (isClosing) {
      this.#closingSince = Math.min(this.#closingSince, now);
      return now - this.#closingSince >= CLOSE_TIMEOUT;
    }
    if (!isOpen || !queue.hasWaiters) {
      this.#slowSince = NEVER;
      return false;
    }
    if (this.#slowSince === NEVER || queue.drains !== this.#drains) this.#slowSince = now;
    this.#drains = queue.drains;
    const chunks = Math.max(1, queue.pendingBytes / CHUNK_SIZE);
    return now - this.#slowSince >= SLOW_READER_TIMEOUT * chunks;
  }
}
