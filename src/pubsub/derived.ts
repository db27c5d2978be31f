import type { Duration, MaybePromise } from '../../types/connect.ts';
import type { EventResult, EventStream } from '../../types/pubsub.ts';
import { delay, type OptionScope, resolveOptions, stepOf, wrongArgument } from '../options/rules.ts';
import { PUBSUB_OPTIONS } from '../options/scopes.ts';
import { isFunction, isString } from '../options/values.ts';
import { joinCursors, Progress, resultOf, returnSource, type Source } from './cursor.ts';

/**
 * Returns the events of a stream that pass a test. The test may return a promise.
 *
 * @throws the errors of `test`, from `next()`; the stream has ended then.
 */
export function filter<T, S extends T>(
  stream: AsyncIterable<T>,
  test: (event: T) => event is S,
): EventStream<S>;
export function filter<T>(
  stream: AsyncIterable<T>,
  test: (event: T) => MaybePromise<boolean>,
): EventStream<T>;
export function filter<T>(
  stream: AsyncIterable<T>,
  test: (event: T) => MaybePromise<boolean>,
): EventStream<T> {
  const source = openStream('filter', 'stream', stream);
  assertFunction('filter', 'test', test);
  const pull = async (): Promise<EventResult<T>> => {
    for (;;) {
      const result = stepOf(await source.next());
      if (result.done || (await test(result.value))) return result;
    }
  };
  return new DerivedStream([source], pull, positionsOf(source));
}

/**
 * Returns the results of a function for each event of a stream. The function may return a promise.
 *
 * @throws the errors of `transform`, from `next()`; the stream has ended then.
 */
export function map<T, R>(
  stream: AsyncIterable<T>,
  transform: (event: T) => MaybePromise<R>,
): EventStream<R> {
  const source = openStream('map', 'stream', stream);
  assertFunction('map', 'transform', transform);
  const pull = async (): Promise<EventResult<R>> => {
    const result: EventResult<T> = stepOf(await source.next());
    return result.done ? result : resultOf(await transform(result.value), result.cursor);
  };
  return new DerivedStream([source], pull, positionsOf(source));
}

/**
 * Returns the events of a stream without those that a newer one with the same key replaces within a time: prices, cursors
 * and other states of which only the newest one matters. The first event after a pause leaves at once. Those within the
 * time after it wait, and leave in the order in which the newest ones have arrived; also at the end of the stream, before
 * its error.
 *
 * @param time milliseconds, or a string such as '100ms'
 * @throws the errors of `key`, from `next()`; the stream has ended then.
 */
export function latest<T>(
  stream: AsyncIterable<T>,
  time: Duration,
  key: (event: T) => unknown = () => undefined,
): EventStream<T> {
  const source = openStream('latest', 'stream', stream);
  const { time: wait } = resolveOptions<{ time: number }>(LATEST, { time }, LATEST_RULES);
  assertFunction('latest', 'key', key);
  /** The newest event of each key, in the order of arrival, and how many of them may leave. */
  const waiting = new Map<unknown, EventResult<T>>();
  let due = 0;
  let timer: NodeJS.Timeout | undefined;
  let end: (() => EventResult<T>) | undefined;
  let wake = (): void => undefined;
  let [taken, acknowledged]: (string | undefined)[] = [];
  let isReading = false;

  const leave = (): void => {
    clearTimeout(timer);
    due = waiting.size;
    timer = due === 0 || end !== undefined ? undefined : setTimeout(leave, wait);
    wake();
  };
  /** Reads also while the consumer does not: a slow client gets the newest events, and never too many. */
  const read = async (): Promise<void> => {
    while (end === undefined) {
      try {
        const result = stepOf(await source.next());
        if (result.done) end = () => result;
        else {
          const name = key(result.value);
          waiting.delete(name);
          waiting.set(name, result);
          if (timer === undefined) leave();
        }
      } catch (error) {
        end = () => {
          throw error;
        };
      }
    }
    leave();
  };
  const pull = async (): Promise<EventResult<T>> => {
    acknowledged = taken;
    if (!isReading) void read();
    isReading = true;
    while (due === 0) {
      if (end !== undefined) return end();
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    const [name, result] = waiting.entries().next().value as [unknown, EventResult<T>];
    waiting.delete(name);
    due--;
    taken = result.cursor ?? taken;
    return result;
  };
  const startCursor = (): string | undefined => source.startCursor;
  return new DerivedStream([source], pull, {
    startCursor,
    position: () => acknowledged ?? startCursor(),
  });
}

/**
 * Returns the events of several streams in order of arrival. Ends when all streams have ended; if one fails,
 * all end. The events have cursors if those of all streams have them, and the topics of the streams are
 * different.
 */
export function merge<T>(...streams: readonly AsyncIterable<T>[]): EventStream<T> {
  const sources: readonly Source<T>[] = streams.map((stream) => openStream('merge', 'streams', stream));
  const progress = new Map(sources.map((source) => [source, new Progress(source)]));
  const positions: Positions = {
    startCursor: () => joinCursors(sources.map(({ startCursor }) => startCursor)),
    position: () => joinCursors(sources.map(({ position }) => position)),
  };
  const arrivals = new Arrivals(sources);
  let started: Promise<unknown> | undefined;

  const pull = async (): Promise<EventResult<T>> => {
    for (;;) {
      const arrival = await arrivals.next();
      if (arrival === undefined) return { value: undefined, done: true };
      const { source, result } = arrival;
      if (result.done) continue;
      if (result.cursor === undefined) return result;
      // Before the start of another stream the event would have no cursor.
      started ??= Promise.allSettled(sources.map((each) => each.started?.()));
      await started;
      progress.get(source)?.deliver(result.cursor);
      const cursors = sources.map((each) => progress.get(each)?.cursor);
      return resultOf(result.value, joinCursors(cursors));
    }
  };
  return new DerivedStream(sources, pull, positions);
}

export function assertTopic(scope: OptionScope, topic: unknown): void {
  if (!isString(topic)) throw wrongArgument(scope, 'topic', topic, 'the name of a topic, a string');
}

const LATEST = { ...PUBSUB_OPTIONS, name: 'latest', example: "latest(stream, '100ms', key)" };
const LATEST_RULES = { time: delay(100) };

const STREAM = 'a stream, such as events.subscribe(topic), or another async iterable';

/** Opens a stream. Other packages take a function that returns it, or a list of streams. */
export function openStream<T>(name: string, argument: string, stream: AsyncIterable<T>): Source<T> {
  if (isFunction((stream as Partial<AsyncIterable<T>> | undefined | null)?.[Symbol.asyncIterator]))
    return stream[Symbol.asyncIterator]();
  const hint = isFunction(stream)
    ? '. Call the function, and pass what it returns'
    : Array.isArray(stream)
      ? '. Pass the streams one by one: merge(...streams)'
      : '';
  throw wrongArgument({ ...PUBSUB_OPTIONS, name }, argument, stream, STREAM + hint);
}

function assertFunction(name: string, argument: string, value: unknown): void {
  if (!isFunction(value)) throw wrongArgument({ ...PUBSUB_OPTIONS, name }, argument, value, 'a function');
}

export const positionsOf = (source: Source<unknown>): Positions => ({
  startCursor: () => source.startCursor,
  position: () => source.position,
});

interface Arrival<T> {
  readonly source: Source<T>;
  readonly result: EventResult<T>;
}

/**
 * The results of several sources in order of arrival. `Promise.race` would add a reaction to the promise of an
 * idle source with each event of another one.
 */
class Arrivals<T> {
  /** The sources whose next result was not requested. */
  #ready: Source<T>[];
  #running: number;
  readonly #queue: (() => Arrival<T>)[] = [];
  #wake: (() => void) | undefined;

  constructor(sources: readonly Source<T>[]) {
    this.#ready = [...sources];
    this.#running = sources.length;
  }

  /** Resolves to undefined when all sources have ended. Rejects if one fails. Called again when it has settled. */
  async next(): Promise<Arrival<T> | undefined> {
    const ready = this.#ready;
    this.#ready = [];
    for (const source of ready) void this.#request(source);
    while (this.#queue.length === 0 && this.#running > 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const arrival = this.#queue.shift()?.();
    if (arrival !== undefined && !arrival.result.done) this.#ready.push(arrival.source);
    return arrival;
  }

  async #request(source: Source<T>): Promise<void> {
    try {
      const result = stepOf(await source.next());
      if (result.done) this.#running--;
      this.#queue.push(() => ({ source, result }));
    } catch (error) {
      this.#queue.push(() => {
        throw error;
      });
    }
    this.#wake?.();
  }
}

interface Waiter<T> {
  resolve(result: EventResult<T>): void;
  reject(error: unknown): void;
}

/** The cursors of a derived stream. */
interface Positions {
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
  readonly #ended: () => void;
  readonly #waiting = new Set<Waiter<T>>();
  #last: Promise<unknown> = Promise.resolve();
  #done = false;

  /** `ended` is called once. */
  constructor(
    sources: readonly Source<unknown>[],
    pull: () => Promise<EventResult<T>>,
    positions: Positions,
    ended: () => void = () => undefined,
  ) {
    this.#sources = sources;
    this.#pull = pull;
    this.#positions = positions;
    this.#ended = ended;
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
      if (result.done) this.#end();
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
    this.#ended();
  }
}
