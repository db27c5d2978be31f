/** @tags once */
import { createPubSub, latest, type PubSub } from '../../middleware/pubsub.ts';
import { atEnd } from '../kit.ts';
import { take } from './events.ts';

interface Events {
  price: [name: string, price: number];
}

const nameOf = ([name]: Events['price']): string => name;

function open(options = {}): PubSub<Events> {
  const events = createPubSub<Events>(options);
  atEnd(() => events.close());
  return events;
}

async function* prices(...names: string[]): AsyncGenerator<Events['price']> {
  for (const [index, name] of names.entries()) {
    if (name === 'error') throw new Error('no more prices');
    yield [name, index];
  }
}

async function all<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const value of stream) found.push(value);
  return found;
}

it('latest sends the first event at once', async () => {
  const events = open();
  const stream = latest(events.subscribe('price'), '1h', nameOf);
  const first = stream.next();
  await events.publish('price', ['a', 1]);
  expect((await first).value).toEqual(['a', 1]);
  await stream.return();
});

it('latest then sends the newest event of each key in order of arrival, and what waits at the end of the stream', async () => {
  expect(await all(latest(prices('a', 'b', 'a', 'c', 'b'), '1h', nameOf))).toEqual([
    ['a', 0],
    ['a', 2],
    ['c', 3],
    ['b', 4],
  ]);
  expect(await all(latest(prices('a', 'b', 'c'), '1h'))).toEqual([
    ['a', 0],
    ['c', 2],
  ]);
  expect(await all(latest(prices(), 10, nameOf))).toEqual([]);
});

it('latest sends what waits before the error of the stream', async () => {
  const stream = latest(prices('a', 'b', 'a', 'error'), '1h', nameOf);
  expect(await take(stream, 3)).toEqual([
    ['a', 0],
    ['b', 1],
    ['a', 2],
  ]);
  await expect(stream.next()).rejects.toThrow('no more prices');
  expect(await stream.next()).toEqual({ value: undefined, done: true });
});

it('latest sends after its time while the stream goes on', async () => {
  const events = open();
  const stream = latest(events.subscribe('price'), '5ms', nameOf);
  for (const price of [1, 2, 3]) {
    const next = stream.next();
    await events.publish('price', ['a', price]);
    expect((await next).value).toEqual(['a', price]);
  }
});

it('latest keeps the stream of a client open that reads nothing for long, and then sends the newest events', async () => {
  const events = open({ maxBufferedBytes: 1 });
  const stream = latest(events.subscribe('price'), 1, nameOf);
  const first = stream.next();
  await events.publish('price', ['a', 0]);
  await first;
  for (let price = 1; price <= 100; price++) {
    await events.publish('price', [price % 2 === 0 ? 'even' : 'odd', price]);
    await new Promise(setImmediate);
  }
  const last = [(await stream.next()).value, (await stream.next()).value];
  expect(last).toEqual([
    ['odd', 99],
    ['even', 100],
  ]);
});

it('latest keeps cursors: a client that continues gets the newest event of each key', async () => {
  const events = open({ history: {} });
  const stream = latest(events.subscribe('price'), 1, nameOf);
  expect(stream.position).toBe(stream.startCursor);
  const names = ['first', 'a', 'b', 'a', 'c'];
  for (const [index, name] of names.entries()) await events.publish('price', [name, index]);
  expect((await stream.next()).value).toEqual(['first', 0]);
  expect(stream.position).toBe(stream.startCursor);
  const { value, cursor } = await stream.next();
  expect(value).toEqual(['b', 2]);
  const resumed = latest(events.subscribe('price', cursor === undefined ? {} : { after: cursor }), 1, nameOf);
  expect(await take(resumed, 2)).toEqual([
    ['a', 3],
    ['c', 4],
  ]);
  await stream.next();
  expect(stream.position).toBe(cursor);
});

it('latest releases its source immediately, and ends a waiting next', async () => {
  const events = open();
  const stream = latest(events.subscribe('price'), '1h');
  const next = stream.next();
  await events.publish('price', ['a', 1]);
  await stream.return();
  expect(await next).toEqual({ value: undefined, done: true });
  expect((await events.stats()).streams).toBe(0);
});

it('latest passes the error of its key function on', async () => {
  const stream = latest(prices('a'), '1h', () => {
    throw new Error('no key');
  });
  await expect(stream.next()).rejects.toThrow('no key');
});

it.each([
  ['a time that is none', () => latest(prices(), 'soon')],
  ['a key that is no function', () => latest(prices(), 10, nameOf.name as never)],
  ['no stream', () => latest(Reflect.get({}, 'stream'), 10)],
])('latest throws a TypeError for %s', (_, call) => {
  expect(call).toThrow(expect.objectContaining({ name: 'TypeError', code: 'ERR_OPTION' }));
});
