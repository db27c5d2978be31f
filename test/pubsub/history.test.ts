/** @tags once slow */

import fc from 'fast-check';
import { buildSchema, type GraphQLField } from 'graphql';
import { attachSubscriptions } from '../../middleware/index.ts';
import {
  createPubSub,
  type EventStream,
  filter,
  map,
  merge,
  type PubSub,
  type PubSubOptions,
  redis,
} from '../../middleware/pubsub.ts';
import { resumeAfter } from '../../src/pubsub/cursor.ts';
import { listen, MODERN, ready } from '../live/client.ts';
import { startRedis } from '../redis.ts';
import { numbers, take } from './events.ts';
import type { RedisPubSubOptions } from './redis-options.ts';
import { useRedis } from './use-redis.ts';

interface Events {
  tick: number;
  tock: number;
  'half \ud800': number;
}

const fixture = useRedis<Events>();

const connect = (options: RedisPubSubOptions = {}): PubSub<Events> =>
  fixture.connect({ history: {}, ...options });

const overRedis = (options: RedisPubSubOptions = {}): PubSub<Events> =>
  connect({ ...fixture.overProxy(), ...options });

/** Takes events and returns the cursor of the last one. */
async function cursorAfter(stream: EventStream<number>, count: number): Promise<string> {
  let cursor: string | undefined;
  for (let taken = 0; taken < count; taken++) ({ cursor } = await stream.next());
  return cursor as string;
}

async function publishAll(events: PubSub<Events>, ticks: readonly number[]): Promise<void> {
  await Promise.all(ticks.map((tick) => events.publish('tick', tick)));
}

describe.each([
  ['in memory', connect],
  ['in Redis', overRedis],
])('a history %s', (_name, create) => {
  it('subscribe({ after }) delivers the events after a cursor, and then live events', async () => {
    const events = create();
    const stream = events.subscribe('tick');
    await events.ready('tick');
    await publishAll(events, numbers(0, 600));
    const cursor = await cursorAfter(stream, 10);
    const resumed = events.subscribe('tick', { after: cursor });
    expect(await take(resumed, 100)).toEqual(numbers(10, 110));
    await publishAll(events, numbers(600, 700));
    expect(await take(resumed, 590)).toEqual(numbers(110, 700));
    const again = events.subscribe('tick', { after: await cursorAfter(stream, 690) });
    await events.publish('tick', 700);
    expect(await take(again, 1)).toEqual([700]);
  });

  it('startCursor of a stream is the cursor before its first event', async () => {
    const events = create();
    await events.publish('tick', 0);
    const stream = events.subscribe('tick');
    await events.ready('tick');
    await events.publish('tick', 1);
    const resumed = events.subscribe('tick', { after: stream.startCursor });
    expect(resumed.startCursor).toBe(stream.startCursor);
    expect(await take(resumed, 1)).toEqual([1]);
  });

  it('the cursor of another topic does not affect a stream', async () => {
    const events = create();
    const ticks = events.subscribe('tick');
    await events.ready('tick');
    await publishAll(events, [0, 1]);
    const tocks = events.subscribe('tock', { after: await cursorAfter(ticks, 1) });
    await events.ready('tock');
    await events.publish('tock', 5);
    expect(await take(tocks, 1)).toEqual([5]);
  });

  it.each(['tick=1', 'tick=1-0%00', 'tick=-', 'tick='])(
    'the malformed cursor %j ends the stream with EVENTS_MISSED',
    async (after) => {
      await expect(create().subscribe('tick', { after }).next()).rejects.toMatchObject({
        extensions: { code: 'EVENTS_MISSED', refetch: true },
      });
    },
  );

  it('a cursor ends the stream of a pubsub without a history with EVENTS_MISSED', async () => {
    await expect(createPubSub().subscribe('tick', { after: 'tick=1-1' }).next()).rejects.toMatchObject({
      code: 'ERR_EVENTS_MISSED',
      extensions: { code: 'EVENTS_MISSED', refetch: true },
    });
  });

  it('an unknown cursor ends the stream with EVENTS_MISSED', async () => {
    const events = create();
    await events.publish('tick', 0);
    const stream = events.subscribe('tick', { after: 'tick=1-1' });
    await expect(stream.next()).rejects.toMatchObject({
      code: 'ERR_EVENTS_MISSED',
      extensions: { code: 'EVENTS_MISSED', refetch: true },
    });
    expect(await stream.next()).toEqual({ value: undefined, done: true });
  });

  it('a topic may contain half of a surrogate pair', async () => {
    const events = create();
    const topic = 'half \ud800';
    const stream = events.subscribe(topic);
    await events.ready(topic);
    expect(events.subscribe(topic, { after: stream.startCursor }).startCursor).toBe(stream.startCursor);
    await events.publish(topic, 1);
    await events.publish(topic, 2);
    const after = await cursorAfter(stream, 1);
    expect(await take(stream, 1)).toEqual([2]);
    expect(await take(events.subscribe(topic, { after }), 1)).toEqual([2]);
  });

  it('ready() may be called before the first stream of a topic', async () => {
    const events = create();
    await events.ready('tick');
    const stream = events.subscribe('tick');
    await events.ready('tick');
    expect(stream.startCursor).toMatch(/^tick=/);
  });

  it('a cursor that is older than the history ends the stream with EVENTS_MISSED', async () => {
    const events = create({ history: { length: 10 } });
    const stream = events.subscribe('tick');
    await events.ready('tick');
    // Redis removes entries in blocks of 100.
    await publishAll(events, numbers(0, 300));
    const cursors: string[] = [];
    for (let i = 0; i < 300; i++) cursors.push((await stream.next()).cursor as string);
    expect(await take(events.subscribe('tick', { after: cursors[289] }), 10)).toEqual(numbers(290, 300));
    await expect(events.subscribe('tick', { after: cursors[0] }).next()).rejects.toMatchObject({
      code: 'ERR_EVENTS_MISSED',
    });
  });

  it('a ttl that is longer than the time since 1970 removes no event', async () => {
    const events = create({ history: { ttl: Number.MAX_SAFE_INTEGER, length: Number.MAX_SAFE_INTEGER } });
    const stream = events.subscribe('tick');
    await events.ready('tick');
    await publishAll(events, [0, 1]);
    const after = await cursorAfter(stream, 1);
    expect(await take(events.subscribe('tick', { after }), 1)).toEqual([1]);
    expect((await events.stats()).topics['tick']?.length).toBe(2);
  });

  it('events older than the ttl are removed, and the newest cursor of an idle topic stays valid', async () => {
    const events = create({ history: { ttl: 50 } });
    const stream = events.subscribe('tick');
    await events.ready('tick');
    await publishAll(events, [0, 1]);
    const first = await cursorAfter(stream, 1);
    const newest = await cursorAfter(stream, 1);
    while ((await events.stats()).topics['tick']?.length !== 0);
    await expect(events.subscribe('tick', { after: first }).next()).rejects.toMatchObject({
      code: 'ERR_EVENTS_MISSED',
    });
    const resumed = events.subscribe('tick', { after: newest });
    await events.publish('tick', 2);
    expect(await take(resumed, 1)).toEqual([2]);
  });

  it('stats() returns the streams, the replays and the extent of each history', async () => {
    const events = create();
    const before = Date.now();
    const stream = events.subscribe('tick');
    await events.ready('tick');
    expect(await events.stats()).toEqual({
      streams: 1,
      replays: 0,
      topics: { tick: { length: 0, oldest: undefined } },
    });
    await publishAll(events, [0, 1, 2]);
    await take(events.subscribe('tick', { after: await cursorAfter(stream, 1) }), 2);
    const stats = await events.stats();
    expect(stats).toEqual({
      streams: 2,
      replays: 1,
      topics: { tick: { length: 3, oldest: expect.any(Number) } },
    });
    expect(stats.topics['tick']?.oldest).toBeGreaterThanOrEqual(before - 5);
    expect(stats.topics['tick']?.oldest).toBeLessThanOrEqual(Date.now());
  });

  it('a stream that is opened after ready() gets the events of the publishes after it', async () => {
    const events = create();
    await Promise.all(
      numbers(0, 40).map(async (number) => {
        const topic = `ready ${number}` as 'tick';
        await events.ready(topic);
        const stream = events.subscribe(topic);
        await events.publish(topic, number);
        expect(await take(stream, 1)).toEqual([number]);
      }),
    );
  });

  it('position of a stream is the cursor of the events that the consumer has taken, or that a filter has left out', async () => {
    const events = create();
    const source = events.subscribe('tick');
    const even = filter(events.subscribe('tick'), (tick) => tick % 2 === 0);
    const both = merge(
      events.subscribe('tick'),
      map(events.subscribe('tock'), (tock) => tock),
    );
    await Promise.all([source, even, both].map((stream) => stream.started?.()));
    for (const stream of [source, even, both]) expect(stream.position).toBe(stream.startCursor);
    await publishAll(events, [0, 1, 3]);
    const cursors = [await source.next(), await source.next(), await source.next()].map(
      ({ cursor }) => cursor,
    );
    // The last event counts when the next one is requested.
    expect(source.position).toBe(cursors[1]);
    const waiting = [source.next(), even.next(), even.next()];
    await waiting[1];
    while (even.position !== cursors[2]) await new Promise(setImmediate);
    expect(source.position).toBe(cursors[2]);
    const replayed = events.subscribe('tick', { after: cursors[0] });
    expect(replayed.position).toBe(cursors[0]);
    await replayed.next();
    expect(replayed.position).toBe(cursors[0]);
    await replayed.next();
    expect(replayed.position).toBe(cursors[1]);
    const last = replayed.next();
    while (replayed.position !== cursors[2]) await new Promise(setImmediate);
    let merged: string | undefined;
    for (let taken = 0; taken < 3; taken++) ({ cursor: merged } = await both.next());
    await events.publish('tick', 4);
    await Promise.all([...waiting, last]);
    expect(await take(events.subscribe('tick', { after: merged }), 1)).toEqual([4]);
  });

  it('filter, map and merge keep the cursors of their sources', async () => {
    const events = create();
    const streams = (after?: string) =>
      merge(
        map(
          filter(events.subscribe('tick', { after }), (tick) => tick % 2 === 0),
          (tick) => `tick ${tick}`,
        ),
        map(events.subscribe('tock', { after }), (tock) => `tock ${tock}`),
      );
    const merged = streams();
    await Promise.all([events.ready('tick'), events.ready('tock')]);
    for (const tick of numbers(0, 4)) {
      await events.publish('tick', tick);
      await events.publish('tock', tick);
    }
    const seen: string[] = [];
    let cursor: string | undefined;
    while (seen.length < 3) {
      const result = await merged.next();
      seen.push(result.value);
      cursor = result.cursor;
    }
    const resumed = streams(cursor);
    while (seen.length < 6) seen.push((await resumed.next()).value);
    expect(seen.toSorted()).toEqual(['tick 0', 'tick 2', 'tock 0', 'tock 1', 'tock 2', 'tock 3']);
  });

  it('streams that are created within resumeAfter continue after its cursor, also after an await', async () => {
    const events = create();
    const stream = events.subscribe('tick');
    await events.ready('tick');
    await publishAll(events, numbers(0, 5));
    const resumed = await resumeAfter(await cursorAfter(stream, 2), async () => {
      await null;
      return { stream: events.subscribe('tick') };
    });
    expect(await take(resumed.stream, 3)).toEqual([2, 3, 4]);
  });

  it('streams deliver consecutive events for all interleavings of publishes, reads and new streams', async () => {
    const operation = fc.oneof(
      fc.record({ kind: fc.constant('publish' as const), count: fc.integer({ min: 1, max: 40 }) }),
      fc.record({ kind: fc.constant('open' as const), from: fc.nat(100) }),
      fc.record({
        kind: fc.constant('read' as const),
        stream: fc.nat(8),
        count: fc.integer({ min: 1, max: 60 }),
      }),
      fc.record({ kind: fc.constant('leave' as const), stream: fc.nat(8) }),
      fc.record({ kind: fc.constant('wait' as const) }),
    );
    let round = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { maxLength: 40 }), async (operations) => {
        const all = [create({ prefix: `model ${round}:` }), create({ prefix: `model ${round++}:` })];
        // In memory the processes share nothing.
        const here = all[0] as PubSub<Events>;
        const there = create === connect ? here : (all[1] as PubSub<Events>);
        const first = here.subscribe('tick');
        await here.ready('tick');
        const cursors = [first.startCursor as string];
        const streams: { stream: EventStream<number>; next: number }[] = [];
        const publishing: Promise<void>[] = [];
        let published = 0;
        const check = async (index: number, count: number): Promise<void> => {
          const entry = streams[index % streams.length];
          if (entry === undefined) return;
          const available = Math.min(count, published - entry.next);
          expect(await take(entry.stream, available)).toEqual(numbers(entry.next, entry.next + available));
          entry.next += available;
        };
        for (const step of operations) {
          if (step.kind === 'publish') {
            const upTo = published + step.count;
            for (; published < upTo; published++) publishing.push(here.publish('tick', published));
            while (cursors.length <= published) cursors.push((await first.next()).cursor as string);
          } else if (step.kind === 'open') {
            const from = step.from % cursors.length;
            const events = step.from % 2 === 0 ? here : there;
            streams.push({ stream: events.subscribe('tick', { after: cursors[from] }), next: from });
          } else if (step.kind === 'read') await check(step.stream, step.count);
          else if (step.kind === 'leave') {
            const [left] = streams.splice(step.stream, 1);
            await left?.stream.return();
          } else await new Promise(setImmediate);
        }
        await Promise.all(publishing);
        for (const [index] of streams.entries()) await check(index, published);
        await here.publish('tick', published++);
        for (const [index] of streams.entries()) await check(index, published);
        await Promise.all(all.map((events) => events.close()));
      }),
      { numRuns: create === connect ? 100 : 25 },
    );
  });
});

describe('a history in Redis', () => {
  it('streams continue without a gap after a lost connection', async () => {
    let gaps = 0;
    const events = overRedis({ onGap: () => gaps++ });
    const stream = events.subscribe('tick');
    await events.ready('tick');
    const direct = connect({ redis: fixture.redis.url });
    await publishAll(direct, numbers(0, 10));
    expect(await take(stream, 10)).toEqual(numbers(0, 10));
    fixture.proxy.stall();
    await publishAll(direct, numbers(10, 20));
    fixture.proxy.heal();
    expect(await take(stream, 10)).toEqual(numbers(10, 20));
    await publishAll(direct, [20]);
    expect(await take(stream, 1)).toEqual([20]);
    expect(gaps).toBe(1);
  });

  it('a stream without an event yet continues without a gap after a lost connection', async () => {
    const events = overRedis();
    const stream = events.subscribe('tick');
    await events.ready('tick');
    const direct = connect({ redis: fixture.redis.url });
    fixture.proxy.stall();
    await publishAll(direct, numbers(0, 3));
    fixture.proxy.heal();
    expect(await take(stream, 3)).toEqual([0, 1, 2]);
  });

  it('a message that does not arrive is read from the history', async () => {
    const events = overRedis();
    const stream = events.subscribe('tick');
    await events.ready('tick');
    await publishAll(events, [0, 1]);
    expect(await take(stream, 2)).toEqual([0, 1]);
    await fixture.admin.xadd('{espalier:tick}:events', '*', 'p', await newestId(), 'e', '2');
    const id = await lastEntry();
    await fixture.admin.set('{espalier:tick}:newest', id);
    await events.publish('tick', 3);
    expect(await take(stream, 2)).toEqual([2, 3]);
  });

  it('a restart of Redis with empty data ends the streams with EVENTS_MISSED', async () => {
    const own = await startRedis();
    const events = connect({ redis: own.url });
    const stream = events.subscribe('tick');
    await events.ready('tick');
    await publishAll(events, [0]);
    const cursor = await cursorAfter(stream, 1);
    const ended = expect(stream.next()).rejects.toMatchObject({
      extensions: { code: 'EVENTS_MISSED', refetch: true },
    });
    await own.kill();
    await own.start();
    await ended;
    await expect(events.subscribe('tick', { after: cursor }).next()).rejects.toMatchObject({
      code: 'ERR_EVENTS_MISSED',
    });
    await events.close();
    await own.kill();
  });

  it.each(['all data', 'the keys of the topic', 'the newest id of the topic'])(
    'a client that continues before the first event of a topic learns that Redis has lost %s',
    async (loss) => {
      const events = connect({ redis: fixture.redis.url });
      const client = events.subscribe('tick');
      await client.started?.();
      const { startCursor } = client;
      await client.return();
      await publishAll(events, [1, 2]);
      const keys = ['{espalier:tick}:newest', '{espalier:tick}:events'];
      if (loss === 'all data') await fixture.admin.flushall();
      else await fixture.admin.del(...(loss.includes('keys') ? keys : keys.slice(0, 1)));
      const missed = { extensions: { code: 'EVENTS_MISSED', refetch: true } };
      // Without the newest id the two events are still stored.
      const resumed = (): Promise<number[]> => take(events.subscribe('tick', { after: startCursor }), 3);
      await expect(resumed()).rejects.toMatchObject(missed);
      await events.publish('tick', 3);
      await expect(resumed()).rejects.toMatchObject(missed);
    },
  );

  it('a stream that is opened after ready() gets the events of later publishes although replies are slow', async () => {
    fixture.proxy.delay(40);
    const [events, other] = [overRedis(), connect({ redis: fixture.redis.url })];
    await Promise.all(
      numbers(0, 60).map(async (number) => {
        const topic = `ready ${number}` as 'tick';
        await events.ready(topic);
        const stream = events.subscribe(topic);
        await other.publish(topic, number);
        expect(await take(stream, 1)).toEqual([number]);
      }),
    );
  });

  it('a read of large events has a limited number of bytes', async () => {
    const transport = redis(fixture.redis.url);
    const listener = { message() {}, gap() {}, lost() {}, refused() {}, error() {} };
    transport.open(listener, { length: 1000, ttl: 300_000 });
    const start = (await transport.history?.newest('large', '0-1234567890')) ?? '';
    for (let number = 0; number < 12; number++) await transport.publish('large', 'x'.repeat(1e6));
    const page = await transport.history?.read('large', start, 256);
    expect(page).toHaveLength(4);
    await transport.close();
  });

  it("streams of processes with and without a history receive each other's events", async () => {
    const [plain, recorded] = [overRedis({ history: undefined }), overRedis()];
    const streams = [plain.subscribe('tick'), recorded.subscribe('tick')];
    await Promise.all([plain.ready('tick'), recorded.ready('tick')]);
    await plain.publish('tick', 1);
    await recorded.publish('tick', 2);
    for (const stream of streams) expect((await take(stream, 2)).toSorted()).toEqual([1, 2]);
  });

  it('many streams after one cursor cost one read, and a publish costs one command', async () => {
    const [events, other] = [overRedis(), overRedis()];
    const stream = events.subscribe('tick');
    await events.ready('tick');
    await other.ready('tick');
    await events.publish('tick', -1);
    await cursorAfter(stream, 1);
    await fixture.admin.config('RESETSTAT');
    await publishAll(events, numbers(0, 100));
    const cursor = await cursorAfter(stream, 1);
    expect([await fixture.commandCalls('eval'), await fixture.commandCalls('evalsha')]).toEqual([0, 100]);
    const streams = numbers(0, 100).map(() => other.subscribe('tick', { after: cursor }));
    for (const each of streams) expect(await take(each, 99)).toEqual(numbers(1, 100));
    expect([await fixture.commandCalls('eval'), await fixture.commandCalls('evalsha')]).toEqual([1, 100]);
  });

  it('a replay reads few large events at a time', async () => {
    const [events, other] = [
      createPubSub<{ text: string }>(large()),
      createPubSub<{ text: string }>(large()),
    ];
    const texts = numbers(0, 40).map((number) => `${number} `.padEnd(200_000, 'x'));
    const stream = events.subscribe('text');
    await events.ready('text');
    for (const text of texts) await events.publish('text', text);
    await other.ready('text');
    await fixture.admin.config('RESETSTAT');
    const replayed = other.subscribe('text', { after: stream.startCursor });
    for (const text of texts) expect((await replayed.next()).value).toBe(text);
    // 16 events of 200 kB exceed the limit of a read.
    expect(await fixture.commandCalls('eval')).toBe(3);
    await Promise.all([events.close(), other.close()]);

    function large(): PubSubOptions {
      return { transport: fixture.redis.url, history: {}, onError: false };
    }
  });

  it('createPubSub without a history sends PUBLISH only and gives no cursors', async () => {
    const events = overRedis({ history: undefined });
    const stream = events.subscribe('tick');
    await events.ready('tick');
    await fixture.admin.config('RESETSTAT');
    await events.publish('tick', 1);
    expect(await stream.next()).toEqual({ value: 1, done: false });
    expect(await fixture.commandCalls('eval')).toBe(0);
    expect(await fixture.admin.keys('*')).toEqual([]);
    expect(await events.stats()).toEqual({ streams: 1, replays: 0, topics: {} });
  });

  it('close() of createPubSub ends streams that are replaying while Redis does not reply', async () => {
    const events = overRedis();
    fixture.proxy.stall();
    const stream = events.subscribe('tick', { after: 'tick=1-1' });
    const next = stream.next();
    await new Promise(setImmediate);
    await events.close();
    expect(await next).toEqual({ value: undefined, done: true });
  });

  async function newestId(): Promise<string> {
    return (await fixture.admin.get('{espalier:tick}:newest')) as string;
  }

  async function lastEntry(): Promise<string> {
    const [entry] = await fixture.admin.xrevrange('{espalier:tick}:events', '+', '-', 'COUNT', 1);
    return entry?.[0] as string;
  }
});

describe('a fault between two events', () => {
  const EVENTS = 12;

  /** Faults after which nothing is lost; Redis and the network work again when they resolve. */
  const faults: Record<string, () => Promise<unknown>> = {
    'closed connections': async () => fixture.proxy.drop(),
    'CLIENT KILL TYPE pubsub': () => fixture.admin.client('KILL', 'TYPE', 'PUBSUB'),
    'CLIENT KILL TYPE normal': () => fixture.admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'),
    'a stalled network': async () => {
      fixture.proxy.stall();
      await new Promise((resolve) => setTimeout(resolve, 750));
      fixture.proxy.heal();
    },
  };

  it.each(Object.keys(faults))('%s at any event causes no gap and no duplicate', async (name) => {
    for (let index = 0; index <= EVENTS; index++) {
      const prefix = `${name} ${index}:`;
      const [here, there] = [overRedis({ prefix }), connect({ redis: fixture.redis.url, prefix })];
      const streams = [here.subscribe('tick'), here.subscribe('tick')];
      await here.ready('tick');
      const received: number[][] = [[], []];
      const reading = Promise.all(
        streams.map(async (stream, at) => {
          for (let count = 0; count < EVENTS; count++) {
            // The client of the second stream disconnects at each event and resumes.
            const { value, cursor } = await stream.next();
            received[at]?.push(value);
            if (at === 0) continue;
            await stream.return();
            stream = here.subscribe('tick', { after: cursor });
          }
        }),
      );
      for (let tick = 0; tick < EVENTS; tick++) {
        if (tick === index) void faults[name]?.();
        await publishUntilSent(there, tick);
      }
      if (index === EVENTS) await faults[name]?.();
      await reading;
      // A publish whose reply was lost is repeated here, so the same number may be published twice.
      const published = (await fixture.admin.xrange(`{${prefix}tick}:events`, '-', '+')).map(([, fields]) =>
        Number(fields[3]),
      );
      expect([...new Set(published)]).toEqual(numbers(0, EVENTS));
      expect(received).toEqual([published.slice(0, EVENTS), published.slice(0, EVENTS)]);
      await Promise.all([here.close(), there.close()]);
    }
  });

  /** A publish that was rejected because the connection was lost before it was sent. */
  async function publishUntilSent(events: PubSub<Events>, tick: number): Promise<void> {
    for (;;) {
      const sent = await events.publish('tick', tick).then(
        () => true,
        () => false,
      );
      if (sent) return;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
});

it('the cursor of another process ends a stream with EVENTS_MISSED, also before the first event of a topic', async () => {
  const before = createPubSub<Events>({ history: {} });
  const stream = before.subscribe('tick');
  await before.ready('tick');
  const { startCursor } = stream;
  await before.publish('tick', 0);
  await before.close();
  // The id of a history contains the time of its creation.
  await new Promise((resolve) => setTimeout(resolve, 2));
  const after = createPubSub<Events>({ history: {} });
  await after.publish('tick', 1);
  for (const topic of ['tick', 'tock'] as const) {
    const resumed = after.subscribe(topic, { after: startCursor?.replace('tick', topic) });
    await expect(resumed.next()).rejects.toMatchObject({ code: 'ERR_EVENTS_MISSED' });
  }
  await after.close();
});

it('attachSubscriptions sends EVENTS_MISSED to the client and keeps the socket open', async () => {
  const events = connect();
  await events.publish('tick', 0);
  const schema = buildSchema('type Query { one: Int } type Subscription { tick(after: String): Int }');
  const tick = schema.getSubscriptionType()?.getFields()['tick'] as GraphQLField<unknown, unknown>;
  tick.subscribe = (_source, { after }) => events.subscribe('tick', { after });
  tick.resolve = (value) => value;
  const { server, url } = await listen();
  const subscriptions = attachSubscriptions(server, schema);
  const client = await ready(url, MODERN);
  const payload = { query: 'subscription { tick(after: "tick=1-1") }' };
  client.send({ id: 'a', type: 'subscribe', payload });
  expect((await client.until(({ type }) => type === 'error')).at(-1)).toMatchObject({
    id: 'a',
    payload: [{ extensions: { code: 'EVENTS_MISSED', refetch: true } }],
  });
  client.send({ type: 'ping' });
  await client.until(({ type }) => type === 'pong');
  await client.close();
  await subscriptions.close();
  await new Promise((resolve) => server.close(resolve));
});

it('createPubSub in memory does not accept a cursor of another process that started at the same time', async () => {
  const all = Array.from({ length: 10 }, () => createPubSub<{ tick: number }>({ history: {} }));
  const cursors = all.map(async (events) => {
    const stream = events.subscribe('tick');
    await stream.started?.();
    return stream.startCursor;
  });
  expect(new Set(await Promise.all(cursors)).size).toBe(10);
  await Promise.all(all.map((events) => events.close()));
});
