/** @tags node */
import { createPubSub, filter, map, merge, type PubSub } from '../../middleware/pubsub.ts';
import { memoryInUse } from '../heap.ts';
import { take } from './events.ts';

interface Events {
  tick: number;
  word: string;
}

let events: PubSub<Events>;
beforeEach(() => {
  events = createPubSub<Events>();
});
afterEach(() => events.close());

const tick = (): AsyncIterableIterator<number> => events.subscribe('tick');
const even = (value: number): boolean => value % 2 === 0;
const DONE = { value: undefined, done: true };

/** A source that counts how often it was released. */
function released(stream: AsyncIterableIterator<number>): {
  stream: AsyncIterableIterator<number>;
  count: number;
} {
  const watched = {
    count: 0,
    stream: {
      next: () => stream.next(),
      return: () => {
        watched.count++;
        return stream.return?.() ?? Promise.resolve({ value: undefined, done: true as const });
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    },
  };
  return watched;
}

describe('streams made from other streams', () => {
  it('filter() delivers the events that pass, in order, with a test that may be async', async () => {
    const stream = filter(tick(), async (value) => even(value));
    for (const value of [1, 2, 3, 4]) void events.publish('tick', value);
    expect(await take(stream, 2)).toEqual([2, 4]);
  });

  it('filter narrows the type of events with a type predicate', async () => {
    const mixed: AsyncIterableIterator<number | string> = merge<number | string>(
      tick(),
      events.subscribe('word'),
    );
    const words = filter(mixed, (event): event is string => typeof event === 'string');
    const lengths = map(words, (word) => word.length);
    await events.publish('tick', 1);
    await events.publish('word', 'four');
    expect((await lengths.next()).value).toBe(4);
  });

  it('map() keeps the order of events with an async function', async () => {
    const stream = map(tick(), async (value) => {
      await new Promise((resolve) => setTimeout(resolve, value === 1 ? 20 : 0));
      return value * 10;
    });
    const results = Promise.all([stream.next(), stream.next()]);
    for (const value of [1, 2]) await events.publish('tick', value);
    expect((await results).map(({ value }) => value)).toEqual([10, 20]);
  });

  it('merge() delivers the events of all streams and ends after the last', async () => {
    const [one, two] = [events.subscribe('tick'), events.subscribe('tick')];
    const stream = merge(one, two);
    await events.publish('tick', 1);
    expect(await take(stream, 2)).toEqual([1, 1]);
    await one.return?.();
    await events.publish('tick', 2);
    expect(await take(stream, 1)).toEqual([2]);
    await two.return?.();
    expect(await stream.next()).toEqual(DONE);
  });

  it.each([
    ['filter', (source: AsyncIterable<number>) => filter(source, even)],
    ['map', (source: AsyncIterable<number>) => map(source, (value) => value)],
    ['merge', (source: AsyncIterable<number>) => merge(source, tick())],
  ])('%s releases its source immediately, also while it waits for an event', async (_, derive) => {
    const source = released(tick());
    const stream = derive(source.stream);
    const pending = stream.next();
    expect(await stream.return?.()).toEqual(DONE);
    expect(await pending).toEqual(DONE);
    expect(source.count).toBe(1);
    expect(await stream.next()).toEqual(DONE);
  });

  it.each([
    ['filter', (source: AsyncIterable<number>, fail: () => never) => filter(source, fail)],
    ['map', (source: AsyncIterable<number>, fail: () => never) => map(source, fail)],
  ])('%s rejects with the error of its function and releases its source', async (_, derive) => {
    const source = released(tick());
    const stream = derive(source.stream, () => {
      throw new Error('broken');
    });
    void events.publish('tick', 1);
    await expect(stream.next()).rejects.toThrow('broken');
    expect(source.count).toBe(1);
    expect(await stream.next()).toEqual(DONE);
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('secret');
      },
    ],
    ['returns no promise', () => ({ done: true, value: undefined })],
  ])('a derived stream ends if "return" of its source %s', async (_, onReturn) => {
    const source: object = { next: () => Promise.reject(new Error('broken')), return: onReturn };
    const stream = map({ [Symbol.asyncIterator]: () => source as AsyncIterator<number> }, (value) => value);
    await expect(stream.next()).rejects.toThrow('broken');
    expect(await stream.next()).toEqual(DONE);
  });

  it('merge keeps no memory per event while one of its streams is idle', async () => {
    const stream = merge<number | string>(tick(), events.subscribe('word'));
    const read = async (count: number): Promise<number> => {
      for (let value = 0; value < count; value++) {
        const next = stream.next();
        await events.publish('tick', value);
        expect((await next).value).toBe(value);
      }
      return memoryInUse().heapUsed;
    };
    const before = await read(1000);
    // Each event kept about 390 bytes.
    expect((await read(20_000)) - before).toBeLessThan(2_000_000);
  });

  it('merge rejects with the error of one stream and releases the others', async () => {
    const source = released(tick());
    const broken = map(tick(), () => {
      throw new Error('broken');
    });
    const stream = merge(source.stream, broken);
    const pending = expect(take(stream, 2)).rejects.toThrow('broken');
    await events.publish('tick', 1);
    await pending;
    expect(source.count).toBe(1);
  });
});
