import type { MaybePromise } from '../../../types/connect.ts';

interface Waiter<T> {
  resolve(result: IteratorResult<T>): void;
  reject(error: unknown): void;
}

/**
 * A stream that is derived from other streams. `return` ends it and its sources immediately, even while `next` waits: an async
 * generator would first wait for the event.
 */
class DerivedStream<T> implements AsyncIterableIterator<T> {
  readonly #sources: readonly AsyncIterator<unknown>[];
  readonly #pull: () => Promise<IteratorResult<T>>;
  readonly #waiting = new Set<Waiter<T>>();
  #last: Promise<unknown> = Promise.resolve();
  #done = false;

  constructor(sources: readonly AsyncIterator<unknown>[], pull: () => Promise<IteratorResult<T>>) {
    this.#sources = sources;
    this.#pull = pull;
  }

  next(): Promise<IteratorResult<T>> {
    if (this.#done) return Promise.resolve({ value: undefined, done: true });
    return new Promise((resolve, reject) => {
      const waiter = { resolve, reject };
      this.#waiting.add(waiter);
      // One at a time, so that events keep their order.
      this.#last = this.#last.then(() => this.#serve(waiter));
    });
  }

  return(): Promise<IteratorResult<T>> {
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
    for (const source of this.#sources) source.return?.().catch(() => undefined);
  }
}

/**
 * Returns the events of a stream that pass a test. The test may return a promise.
 *
 * @throws the errors of `test`, from `next()`; the stream has ended then.
 */
export function filter<T, S extends T>(
  stream: AsyncIterable<T>,
  test: (event: T) => event is S,
): AsyncIterableIterator<S>;
export function filter<T>(
  stream: AsyncIterable<T>,
  test: (event: T) => MaybePromise<boolean>,
): AsyncIterableIterator<T>;
export function filter<T>(
  stream: AsyncIterable<T>,
  test: (event: T) => MaybePromise<boolean>,
): AsyncIterableIterator<T> {
  const source = stream[Symbol.asyncIterator]();
  return new DerivedStream([source], async () => {
    for (;;) {
      const result = await source.next();
      if (result.done === true || (await test(result.value))) return result;
    }
  });
}

/**
 * Returns the results of a function for each event of a stream. The function may return a promise.
 *
 * @throws the errors of `transform`, from `next()`; the stream has ended then.
 */
export function map<T, R>(
  stream: AsyncIterable<T>,
  transform: (event: T) => MaybePromise<R>,
): AsyncIterableIterator<R> {
  const source = stream[Symbol.asyncIterator]();
  return new DerivedStream<R>([source], async () => {
    const result = await source.next();
    return result.done === true ? result : { value: await transform(result.value), done: false };
  });
}

/**
 * Returns the events of several streams in order of arrival. Ends when all streams have ended; if one fails, all end.
 */
export function merge<T>(...streams: readonly AsyncIterable<T>[]): AsyncIterableIterator<T> {
  const sources = streams.map((stream) => stream[Symbol.asyncIterator]());
  const pending = new Map<AsyncIterator<T>, Promise<Arrival<T>> | undefined>(
    sources.map((source) => [source, undefined]),
  );
  return new DerivedStream<T>(sources, async () => {
    while (pending.size > 0) {
      for (const [source, arrival] of pending) {
        if (arrival === undefined) pending.set(source, arrivalFrom(source));
      }
      const { source, result } = await Promise.race(pending.values() as Iterable<Promise<Arrival<T>>>);
      if (result.done !== true) {
        // The next `Promise.race` prefers the other sources, so that a source with many events does not block them.
        pending.delete(source);
        pending.set(source, undefined);
        return result;
      }
      pending.delete(source);
    }
    return { value: undefined, done: true };
  });
}

interface Arrival<T> {
  readonly source: AsyncIterator<T>;
  readonly result: IteratorResult<T>;
}

function arrivalFrom<T>(source: AsyncIterator<T>): Promise<Arrival<T>> {
  const arrival = source.next().then((result) => ({ source, result }));
  // A later race reports it.
  arrival.catch(() => undefined);
  return arrival;
}
