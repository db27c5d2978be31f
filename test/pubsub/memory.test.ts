/** @tags once */
import { createPubSub, type PubSub } from '../../middleware/pubsub.ts';
import { numbers, take } from './events.ts';

interface Events {
  tick: number;
  other: string;
}

describe('events within one process', () => {
  let events: PubSub<Events>;
  beforeEach(() => {
    events = createPubSub<Events>({ maxBufferedBytes: 1 });
  });
  afterEach(() => events.close());

  it('createPubSub delivers events to every subscriber of their topic, in order', async () => {
    const [one, two, other] = [events.subscribe('tick'), events.subscribe('tick'), events.subscribe('other')];
    for (const tick of [1, 2, 3]) await events.publish('tick', tick);
    await events.publish('other', 'x');
    expect(await take(one, 3)).toEqual([1, 2, 3]);
    expect(await take(two, 3)).toEqual([1, 2, 3]);
    expect(await take(other, 1)).toEqual(['x']);
  });

  it('the functions of createPubSub work after destructuring', async () => {
    const { publish, subscribe, ready, close } = createPubSub<Events>();
    const stream = subscribe('tick');
    await ready('tick');
    await publish('tick', 1);
    expect(await stream.next()).toEqual({ value: 1, done: false });
    await close();
    expect(await stream.next()).toEqual({ value: undefined, done: true });
  });

  it('createPubSub keeps events from the call of subscribe, before the first next()', async () => {
    const stream = events.subscribe('tick');
    void events.publish('tick', 1);
    expect(await stream.next()).toEqual({ value: 1, done: false });
  });

  it('createPubSub resolves concurrent next() calls in order', async () => {
    const stream = events.subscribe('tick');
    const requested = Promise.all([stream.next(), stream.next()]);
    await events.publish('tick', 1);
    await events.publish('tick', 2);
    expect((await requested).map(({ value }) => value)).toEqual([1, 2]);
  });

  it('createPubSub ends only the stream that is returned', async () => {
    const [stays, leaves] = [events.subscribe('tick'), events.subscribe('tick')];
    const pending = leaves.next();
    await leaves.return?.();
    await events.publish('tick', 1);
    expect(await pending).toEqual({ value: undefined, done: true });
    expect(await leaves.next()).toEqual({ value: undefined, done: true });
    expect(await take(stays, 1)).toEqual([1]);
  });

  it('createPubSub ends the stream of a slow subscriber with one error', async () => {
    const [quick, slow] = [events.subscribe('tick'), events.subscribe('tick')];
    const ticks = numbers(0, 70);
    const received = take(quick, ticks.length);
    for (const tick of ticks) await events.publish('tick', tick);
    expect(await received).toEqual(ticks);
    await expect(slow.next()).rejects.toMatchObject({ code: 'ERR_EVENTS_MISSED', closeCode: 1013 });
    expect(await slow.next()).toEqual({ value: undefined, done: true });
  });

  it('createPubSub ends all streams on close(), also later ones', async () => {
    const stream = events.subscribe('tick');
    await events.close();
    expect(await stream.next()).toEqual({ value: undefined, done: true });
    expect(await events.subscribe('tick').next()).toEqual({ value: undefined, done: true });
  });
});

describe('a history within one process', () => {
  afterEach(() => jest.useRealTimers());

  it('a client that continues before the first event of a topic learns that its events were forgotten', async () => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask'] });
    const events = createPubSub<Events>({ history: { ttl: '1h' } });
    const cursors: string[] = [];
    for (let round = 0; round < 3; round++) {
      const stream = events.subscribe('tick');
      await events.ready('tick');
      for (const tick of [1, 2]) await events.publish('tick', tick);
      cursors.push(stream.startCursor as string, (await stream.next()).cursor as string);
      cursors.push((await stream.next()).cursor as string);
      await stream.return();
      // The topic is forgotten a week after its last event has expired.
      jest.advanceTimersByTime(8 * 24 * 60 * 60 * 1000);
    }
    expect(new Set(cursors).size).toBe(9);
    for (const after of cursors) {
      await expect(events.subscribe('tick', { after }).next()).rejects.toMatchObject({
        extensions: { code: 'EVENTS_MISSED', refetch: true },
      });
    }
    await events.close();
  });
});
