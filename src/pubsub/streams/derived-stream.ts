import type { EventResult, EventStream } from '../../../types/pubsub.ts';
import { returnSource, type Source } from '../cursor.ts';

interface Waiter<T> {
  resolve(result: EventResult<T>): void;
  reject(error: unknown): void;
}

/** The cursors of a derived stream. */
export interface Positions {
  startCursor(): string | undefined;
  position(): string | undefined;
}

/**
 * A stream that is derived from other streams. `return` ends it and its sources immediately, even while
 * `next` waits: an async generator would first wait for the event.
 */
export class DerivedStream<T> implements EventStream<T> {
  readonly #sources: readonly Source<unknown>[];
  readonly #pull: () => Promise<EventResult<T>>;
  readonly #positions: Positions;
  readonly #waiting = new Set<Waiter<T>>();
  #last: Promise<unknown> = Promise.resolve();
  #done = false;

  constructor(
    sources: readonly Source<unknown>[],
    pull: () => Promise<EventResult<T>>,
    positions: Positions,
  ) {
    this.#sources = sources;
    this.#pull = pull;
    this.#positions = positions;
  }

  get startCursor(): string | undefined {
    return this.#positions.startCursor();
  }

  get position(): string | undefined {
    return this.#positions.position();
  }

  /** Resolves for streams with a start only: other iterators have none. */
  async started(): Promise<void> {
    await Promise.all(this.#sources.map((source) => source.started?.()));
  }

  next(): Promise<EventResult<T>> {
    if (this.#done) return Promise.resolve({ value: undefined, done: true });
    return new Promise((resolve, reject) => {
      const waiter = { resolve, reject };
      this.#waiting.add(waiter);
      // One at a time, so that events keep their order.
      this.#last = this.#last.then(() => this.#serve(waiter));
    });
  }

  return(): Promise<EventResult<T>> {
    this.#end();
    return Promise.resolve({ value: undefined, done: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async #serve(waiter: Waiter<T>): Promise<void> {
    if (this.#done) return;
    try {
      const result = await this.#pull();
      this.#waiting.delete(waiter);
      if (result.done === true) this.#end();
      waiter.resolve(result);
    } catch (error) {
      this.#waiting.delete(waiter);
      waiter.reject(error);
      this.#end();
    }
  }

  #end(): void {
    if (this.#done) return;
    this.#done = true;
    for (const waiter of this.#waiting) waiter.resolve({ value: undefined, done: true });
    this.#waiting.clear();
    for (const source of this.#sources) returnSource(source);
  }
}
