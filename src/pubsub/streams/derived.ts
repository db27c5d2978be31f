import type { MaybePromise } from '../../../types/connect.ts';
import type { EventResult, EventStream } from '../../../types/pubsub.ts';
import { joinCursors, Progress, resultOf, type Source } from '../cursor.ts';
import { DerivedStream, type Positions } from './derived-stream.ts';

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
  const source: Source<T> = stream[Symbol.asyncIterator]();
  const pull = async (): Promise<EventResult<T>> => {
    for (;;) {
      const result = await source.next();
      if (result.done === true || (await test(result.value))) return result;
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
  const source: Source<T> = stream[Symbol.asyncIterator]();
  const pull = async (): Promise<EventResult<R>> => {
    const result: EventResult<T> = await source.next();
    return result.done === true ? result : resultOf(await transform(result.value), result.cursor);
  };
  return new DerivedStream([source], pull, positionsOf(source));
}

/**
 * Returns the events of several streams in order of arrival. Ends when all streams have ended; if one fails,
 * all end. The events have cursors if those of all streams have them, and the topics of the streams are
 * different.
 */
export function merge<T>(...streams: readonly AsyncIterable<T>[]): EventStream<T> {
  const sources: readonly Source<T>[] = streams.map((stream) => stream[Symbol.asyncIterator]());
  const pending = new Map<Source<T>, Promise<Arrival<T>> | undefined>(
    sources.map((source) => [source, undefined]),
  );
  const progress = new Map(sources.map((source) => [source, new Progress(source)]));
  const positions: Positions = {
    startCursor: () => joinCursors(sources.map(({ startCursor }) => startCursor)),
    position: () => joinCursors(sources.map(({ position }) => position)),
  };

  const pull = async (): Promise<EventResult<T>> => {
    while (pending.size > 0) {
      for (const [source, arrival] of pending) {
        if (arrival === undefined) pending.set(source, arrivalFrom(source));
      }
      const { source, result } = await Promise.race(pending.values() as Iterable<Promise<Arrival<T>>>);
      // The next `Promise.race` prefers the other sources, so that a source with many events does not block
      // them.
      pending.delete(source);
      if (result.done === true) continue;
      pending.set(source, undefined);
      if (result.cursor === undefined) return result;
      progress.get(source)?.deliver(result.cursor);
      const cursors = sources.map((each) => progress.get(each)?.cursor);
      return resultOf(result.value, joinCursors(cursors));
    }
    return { value: undefined, done: true };
  };
  return new DerivedStream(sources, pull, positions);
}

const positionsOf = (source: Source<unknown>): Positions => ({
  startCursor: () => source.startCursor,
  position: () => source.position,
});

interface Arrival<T> {
  readonly source: Source<T>;
  readonly result: EventResult<T>;
}

function arrivalFrom<T>(source: Source<T>): Promise<Arrival<T>> {
  const arrival = source.next().then((result) => ({ source, result }));
  // A later race reports it.
  arrival.catch(() => undefined);
  return arrival;
}
