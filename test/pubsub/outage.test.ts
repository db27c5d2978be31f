/** @tags once */

import type { EventTransport, PubSub, TransportListener } from '../../middleware/pubsub.ts';
import { createPubSub } from '../../middleware/pubsub.ts';
import { numbers, take } from './events.ts';
import type { RedisPubSubOptions } from './redis-options.ts';
import { MemoryBroker } from './transports.ts';
import { useRedis } from './use-redis.ts';

interface Events {
  tick: number;
}

const fixture = useRedis<Events>();
const connect = (options: RedisPubSubOptions): PubSub<Events> =>
  fixture.connect({ ...fixture.overProxy(), commandTimeout: 200, ...options });

describe('a partition that lasts longer than twelve command timeouts', () => {
  it.each([undefined, {}])('createPubSub ends its streams while it lasts (history %j)', async (history) => {
    let heal = (): void => undefined;
    const healed = new Promise<void>((resolve) => {
      heal = resolve;
    });
    const events = connect({ history, onGap: heal });
    const stream = events.subscribe('tick');
    await events.ready('tick');
    fixture.proxy.stall();
    const started = performance.now();
    await expect(stream.next()).rejects.toMatchObject({ code: 'ERR_EVENTS_MISSED', closeCode: 1013 });
    expect(performance.now() - started).toBeLessThan(6000);
    // Streams that are opened meanwhile are told as well.
    await expect(events.subscribe('tick').next()).rejects.toMatchObject({ code: 'ERR_EVENTS_MISSED' });
    fixture.proxy.heal();
    await healed;
    const later = events.subscribe('tick');
    await events.ready('tick');
    await fixture.admin.publish('espalier:tick', '1');
    expect((await later.next()).value).toBe(1);
  });

  it('a client with a cursor continues after its last event', async () => {
    const other = fixture.connect({ redis: fixture.redis.url, history: {} });
    const events = connect({ history: {} });
    const stream = events.subscribe('tick');
    await events.ready('tick');
    await other.publish('tick', 1);
    const { cursor } = await stream.next();
    fixture.proxy.stall();
    await other.publish('tick', 2);
    await expect(stream.next()).rejects.toMatchObject({ code: 'ERR_EVENTS_MISSED' });
    const resumed = events.subscribe('tick', { after: cursor });
    fixture.proxy.heal();
    expect(await take(resumed, 1)).toEqual([2]);
  });

  it('the position of a stream that ends while it replays does not go back', async () => {
    const other = fixture.connect({ redis: fixture.redis.url, history: {} });
    const events = connect({ history: {} });
    const first = events.subscribe('tick');
    await events.ready('tick');
    // More than one read returns.
    for (let tick = 0; tick < 300; tick++) await other.publish('tick', tick);
    const replayed = events.subscribe('tick', { after: first.startCursor });
    let cursor: string | undefined;
    for (let tick = 0; tick < 256; tick++) ({ cursor } = await replayed.next());
    fixture.proxy.stall();
    await expect(replayed.next()).rejects.toMatchObject({ closeCode: 1013 });
    expect(replayed.position).toBe(cursor);
  });

  it('createPubSub ends streams of a server that was never reached', async () => {
    fixture.proxy.stall();
    const events = connect({});
    await expect(events.subscribe('tick').next()).rejects.toMatchObject({ code: 'ERR_EVENTS_MISSED' });
  });
});

it('createPubSub publishes and resumes over a transport of the application', async () => {
  const broker = new MemoryBroker();
  const [here, there] = [1, 2].map(() => createPubSub<Events>({ transport: broker.create() })) as [
    PubSub<Events>,
    PubSub<Events>,
  ];
  const stream = there.subscribe('tick');
  await there.ready('tick');
  await here.publish('tick', 1);
  const { value, cursor } = await stream.next();
  expect(value).toBe(1);
  const interrupted = broker.interrupt();
  await here.publish('tick', 2);
  await interrupted;
  await here.publish('tick', 3);
  expect(await take(stream, 2)).toEqual([2, 3]);
  expect(await take(here.subscribe('tick', { after: cursor }), 2)).toEqual([2, 3]);
  await expect(here.publish('tick', 1, { client: {} })).rejects.toMatchObject({ code: 'ERR_OPTION' });
  await Promise.all([here.close(), there.close()]);
});

describe('ready() without a stream', () => {
  afterEach(() => jest.useRealTimers());

  it.each([true, false])('keeps the subscription for half a minute (history %j)', async (history) => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask'] });
    const subscribed = new Set<string>();
    const transport = new MemoryBroker({ history }).create();
    const watched: EventTransport = Object.assign(Object.create(transport), {
      history: transport.history,
      open: (listener: TransportListener) => transport.open(listener),
      publish: (channel: string, payload: string) => transport.publish(channel, payload),
      close: () => transport.close(),
      subscribe(channel: string) {
        subscribed.add(channel);
        return transport.subscribe(channel);
      },
      unsubscribe(channel: string) {
        subscribed.delete(channel);
        transport.unsubscribe(channel);
      },
    });
    const events = createPubSub<Record<string, number>>({ transport: watched });
    const topics = numbers(0, 100).map((number) => `user:${number}`);
    await Promise.all(topics.map((topic) => events.ready(topic)));
    const stream = events.subscribe('user:7');
    const left = events.subscribe('user:8');
    await left.return();
    expect(subscribed.size).toBe(100);
    expect((await events.stats()).streams).toBe(1);
    jest.advanceTimersByTime(20_000);
    await events.ready('user:9');
    jest.advanceTimersByTime(20_000);
    expect([...subscribed]).toEqual(['user:7', 'user:9']);
    jest.advanceTimersByTime(20_000);
    expect([...subscribed]).toEqual(['user:7']);
    await events.publish('user:7', 1);
    expect(await take(stream, 1)).toEqual([1]);
    const later = events.subscribe('user:10');
    await events.ready('user:10');
    await events.publish('user:10', 2);
    expect(await take(later, 1)).toEqual([2]);
    await events.close();
    expect(subscribed.size).toBe(0);
  });
});

it('createPubSub refuses a history that its transport does not have, and closes the transport', async () => {
  const transport = new MemoryBroker({ history: false }).create();
  expect(() => createPubSub({ transport, history: {} })).toThrow(
    /"history" has no effect with this transport/,
  );
  await expect(transport.publish('tick', '1')).rejects.toThrow();
});

it('createPubSub refuses a transport that another pubsub has', async () => {
  const transport = new MemoryBroker().create();
  const events = createPubSub({ transport });
  expect(() => createPubSub({ transport })).toThrow(/belongs to another pubsub/);
  await events.close();
});
