/** @tags once slow */
// A message that Redis drops on a topic that then stays idle.

import { setTimeout as pause } from 'node:timers/promises';
import type { Redis as Client, Cluster } from 'ioredis';
import type { EventStream, PubSub } from '../../middleware/pubsub.ts';
import { freePort } from '../programs.ts';
import { startCluster } from '../redis-cluster.ts';
import { until } from '../until.ts';
import { numbers, publishWhenConnected, take } from './events.ts';
import type { RedisPubSubOptions } from './redis-options.ts';
import { HEARTBEAT, useRedis } from './use-redis.ts';

interface Events {
  [topic: string]: number;
}

const fixture = useRedis<Events>();

const connect = (options: RedisPubSubOptions = {}): PubSub<Events> =>
  fixture.connect({ ...fixture.overProxy(), history: {}, ...options });

const keysOf = (topic: string): [string, string] => [
  `{espalier:${topic}}:events`,
  `{espalier:${topic}}:newest`,
];

/** Does what a publish does, except for PUBLISH. Returns the message. */
const STORE = `
local previous = redis.call('GET', KEYS[2]) or '0-0'
local id = redis.call('XADD', KEYS[1], '*', 'p', previous, 'e', ARGV[1])
redis.call('SET', KEYS[2], id)
return '@' .. id .. ' ' .. previous .. ' ' .. ARGV[1]
`;

/** Stores an event whose message Redis drops. Returns the function that delivers the message late. */
async function storeOnly(
  client: Client | Cluster,
  topic: string,
  tick: number,
): Promise<() => Promise<unknown>> {
  const message = (await client.eval(STORE, 2, ...keysOf(topic), `${tick}`)) as string;
  return () => client.publish(`espalier:${topic}`, message);
}

/** Resolves when Redis has executed a number of further commands. */
async function further(count: number, name: string): Promise<void> {
  const target = (await fixture.commandCalls(name)) + count;
  while ((await fixture.commandCalls(name)) < target) await pause(10);
}

/** Resolves after a number of further checks of a topic. */
const checks = (count: number): Promise<void> => further(count, 'get');

beforeEach(() => fixture.admin.config('RESETSTAT'));

describe('a message that Redis drops on a topic without further events', () => {
  it('createPubSub with a history reads the event from the history', async () => {
    const events = connect();
    const stream = events.subscribe('tick');
    await events.ready('tick');
    await storeOnly(fixture.admin, 'tick', 0);
    expect(await take(stream, 1)).toEqual([0]);
    await events.publish('tick', 1);
    expect(await take(stream, 1)).toEqual([1]);
    for (const tick of [2, 3, 4]) await storeOnly(fixture.admin, 'tick', tick);
    expect(await take(stream, 3)).toEqual([2, 3, 4]);
  });

  it('createPubSub with a history does so for topics on every node of a Redis Cluster', async () => {
    const cluster = await startCluster();
    const client = cluster.client();
    try {
      const events = connect({ redis: client });
      const topics = numbers(0, 8).map((number) => `topic ${number}`);
      const streams = topics.map((topic) => events.subscribe(topic));
      for (const topic of topics) await events.ready(topic);
      const writer = cluster.client();
      await writer.connect();
      for (const topic of topics) await publishWhenConnected(() => events.publish(topic, 0));
      for (const stream of streams) expect(await take(stream, 1)).toEqual([0]);
      for (const topic of topics) await storeOnly(writer, topic, 1);
      for (const stream of streams) expect(await take(stream, 1)).toEqual([1]);
      await events.close();
    } finally {
      await cluster.stop();
    }
  });

  it('createPubSub delivers the event once when the message arrives after all', async () => {
    const events = connect();
    const stream = events.subscribe('tick');
    await events.ready('tick');
    const late = [];
    for (const tick of [0, 1]) late.push(await storeOnly(fixture.admin, 'tick', tick));
    expect(await take(stream, 2)).toEqual([0, 1]);
    for (const deliver of late) await deliver();
    await events.publish('tick', 2);
    expect(await take(stream, 1)).toEqual([2]);
    for (const deliver of late) await deliver();
    await events.publish('tick', 3);
    expect(await take(stream, 1)).toEqual([3]);
  });

  it('createPubSub delivers each event once and in order when messages are dropped or late at random', async () => {
    const count = 300;
    const events = connect({ heartbeat: 20 });
    const streams = [events.subscribe('tick'), events.subscribe('tick')];
    await events.ready('tick');
    const received = Promise.all(streams.map((stream) => take(stream, count)));
    const late: Promise<unknown>[] = [];
    for (const tick of numbers(0, count)) {
      const deliver = await storeOnly(fixture.admin, 'tick', tick);
      const fate = Math.random();
      if (fate < 0.4) await deliver();
      else if (fate < 0.7) late.push(pause(Math.random() * 100).then(deliver));
      if (Math.random() < 0.05) await pause(Math.random() * 150);
    }
    for (const ticks of await received) expect(ticks).toEqual(numbers(0, count));
    await Promise.all(late);
    await events.publish('tick', count);
    for (const stream of streams) expect(await take(stream, 1)).toEqual([count]);
  });

  it('createPubSub delivers each of 25 000 events once when all their messages arrive late', async () => {
    const count = 25_000;
    const events = connect({ commandTimeout: 5000 });
    const stream = events.subscribe('tick');
    await events.ready('tick');
    const late = await Promise.all(numbers(0, count).map((tick) => storeOnly(fixture.admin, 'tick', tick)));
    expect(await take(stream, count)).toEqual(numbers(0, count));
    await Promise.all(late.map((deliver) => deliver()));
    await events.publish('tick', count);
    expect(await take(stream, 1)).toEqual([count]);
  });

  it('createPubSub delivers the events of the affected topics only', async () => {
    const events = connect();
    const topics = numbers(0, 20).map((number) => `topic ${number}`);
    const streams = topics.map((topic) => events.subscribe(topic));
    for (const topic of topics) await events.ready(topic);
    for (const topic of topics) await events.publish(topic, 0);
    for (const stream of streams) expect(await take(stream, 1)).toEqual([0]);
    const isAffected = (_: unknown, index: number): boolean => index % 3 === 0;
    for (const topic of topics.filter(isAffected)) await storeOnly(fixture.admin, topic, 1);
    for (const stream of streams.filter(isAffected)) expect(await take(stream, 1)).toEqual([1]);
    for (const topic of topics) await events.publish(topic, 2);
    for (const stream of streams) expect(await take(stream, 1)).toEqual([2]);
  });

  it('a stream continues after the cursor of an event that was read from the history', async () => {
    const [events, other] = [connect(), connect()];
    const stream = events.subscribe('tick');
    await events.ready('tick');
    await storeOnly(fixture.admin, 'tick', 0);
    const { value, cursor } = await stream.next();
    expect(value).toBe(0);
    // In the other process the topic has not reached the cursor yet.
    const resumed = [events, other].map((each) => each.subscribe('tick', { after: cursor }));
    await storeOnly(fixture.admin, 'tick', 1);
    await storeOnly(fixture.admin, 'tick', 2);
    for (const each of [stream, ...resumed]) expect(await take(each, 2)).toEqual([1, 2]);
    await events.publish('tick', 3);
    for (const each of [stream, ...resumed]) expect(await take(each, 1)).toEqual([3]);
  });
});

describe('the check of idle topics', () => {
  it('createPubSub without a history does not read from Redis', async () => {
    const events = connect({ history: undefined });
    events.subscribe('tick');
    await events.ready('tick');
    // The connections are idle for several heartbeats.
    await further(6, 'ping');
    expect(await fixture.commandCalls('get')).toBe(0);
  });

  it('createPubSub checks a limited number of topics per heartbeat, and all of them in turn', async () => {
    const limit = 1000;
    const count = 2500;
    const events = connect({ commandTimeout: 5000 });
    const topics = numbers(0, count).map((number) => `topic ${number}`);
    const streams = topics.map((topic) => events.subscribe(topic));
    await Promise.all(topics.map((topic) => events.ready(topic)));
    await fixture.admin.config('RESETSTAT');
    const began = performance.now();
    await checks(2 * count);
    const calls = await fixture.commandCalls('get');
    const heartbeats = (performance.now() - began) / HEARTBEAT;
    expect(calls).toBeLessThanOrEqual(limit * (heartbeats + 1));
    for (const topic of topics) await storeOnly(fixture.admin, topic, 1);
    for (const stream of streams) expect(await take(stream, 1)).toEqual([1]);
  });

  it('createPubSub does not read for topics that receive events', async () => {
    const events = connect();
    const [busy, idle] = [events.subscribe('busy'), events.subscribe('idle')];
    await Promise.all([events.ready('busy'), events.ready('idle')]);
    const monitor = await fixture.admin.monitor();
    const read: string[] = [];
    monitor.on('monitor', (_time, [name, key]: string[], source: string) => {
      if (name?.toLowerCase() === 'get' && source !== 'lua') read.push(key as string);
    });
    let isBusy = true;
    const publishing = (async () => {
      for (let tick = 0; isBusy; tick++) {
        await events.publish('busy', tick);
        await busy.next();
      }
    })();
    await until(() => read.length >= 5);
    isBusy = false;
    await publishing;
    monitor.disconnect();
    expect(new Set(read)).toEqual(new Set([keysOf('idle')[1]]));
    await idle.return();
  });

  it('createPubSub does not check while the subscription is not confirmed after a lost connection', async () => {
    const events = connect();
    const stream = events.subscribe('tick');
    await events.ready('tick');
    await checks(1);
    fixture.proxy.stallAt('subscribe');
    await fixture.admin.client('KILL', 'TYPE', 'PUBSUB');
    // The other connection is idle.
    await further(2, 'ping');
    const before = await fixture.commandCalls('get');
    await further(4, 'ping');
    expect(await fixture.commandCalls('get')).toBe(before);
    await storeOnly(fixture.admin, 'tick', 0);
    fixture.proxy.stallAt('no command');
    expect(await take(stream, 1)).toEqual([0]);
  });

  it.each(['expired', 'lost with all data'])(
    'createPubSub keeps the streams when the newest id is %s',
    async (kind) => {
      const [events, other] = [connect(), connect()];
      const stream = events.subscribe('tick');
      await events.ready('tick');
      await events.publish('tick', 0);
      const { cursor } = await stream.next();
      await checks(1);
      if (kind === 'expired') await fixture.admin.del(...keysOf('tick'));
      else await fixture.admin.flushall();
      await checks(4);
      expect((await events.stats()).streams).toBe(1);
      await expect(other.subscribe('tick', { after: cursor }).next()).rejects.toMatchObject({
        code: 'ERR_EVENTS_MISSED',
      });
      const ended = expect(stream.next()).rejects.toMatchObject({ code: 'ERR_EVENTS_MISSED' });
      await events.publish('tick', 1);
      await ended;
    },
  );

  it('createPubSub ends streams with EVENTS_MISSED when the missing event is not stored any more', async () => {
    const events = connect();
    const stream = events.subscribe('tick');
    await events.ready('tick');
    await events.publish('tick', 0);
    expect(await take(stream, 1)).toEqual([0]);
    const ended = expect(stream.next()).rejects.toMatchObject({
      extensions: { code: 'EVENTS_MISSED', refetch: true },
    });
    for (const tick of [1, 2]) await storeOnly(fixture.admin, 'tick', tick);
    await fixture.admin.xtrim(keysOf('tick')[0], 'MAXLEN', 1);
    await ended;
  });

  it('createPubSub ends streams with EVENTS_MISSED when a replica without their last event has taken over', async () => {
    const events = connect();
    const stream = events.subscribe('tick');
    await events.ready('tick');
    await events.publish('tick', 0);
    const [id] = (await fixture.admin.xrange(keysOf('tick')[0], '-', '+'))[0] as [string, string[]];
    await events.publish('tick', 1);
    expect(await take(stream, 2)).toEqual([0, 1]);
    const ended = expect(stream.next()).rejects.toMatchObject({ code: 'ERR_EVENTS_MISSED' });
    const [, newest] = keysOf('tick');
    const last = (await fixture.admin.get(newest)) as string;
    await fixture.admin.multi().xdel(keysOf('tick')[0], last).set(newest, id).exec();
    await ended;
  });

  it('createPubSub continues after Redis has stopped during a check, and reports no error of the check', async () => {
    const errors: string[] = [];
    const events = connect({ onError: ({ message }) => errors.push(message) });
    const stream = events.subscribe('tick');
    await events.ready('tick');
    for (const tick of numbers(0, 3)) {
      const held = fixture.proxy.hold('get');
      await held.arrived(1);
      fixture.redis.signal('SIGSTOP');
      held.sendAll();
      await pause(HEARTBEAT * 5);
      fixture.redis.signal('SIGCONT');
      await storeOnly(fixture.admin, 'tick', tick);
      expect(await take(stream, 1)).toEqual([tick]);
    }
    expect(errors.filter((message) => !/timed out|ETIMEDOUT|closed/.test(message))).toEqual([]);
  });

  it('createPubSub reports once that Redis refuses the check, and delivers live events', async () => {
    await fixture.admin.call('ACL', 'SETUSER', 'limited', 'on', '>secret', '+@all', '~*', '&*');
    const errors: string[] = [];
    const port = new URL(fixture.redis.url).port;
    const events = connect({
      redis: `redis://limited:secret@127.0.0.1:${port}`,
      onError: ({ message }) => errors.push(message),
    });
    const streams = [events.subscribe('tick'), events.subscribe('tock')];
    await Promise.all([events.ready('tick'), events.ready('tock')]);
    await fixture.admin.call('ACL', 'SETUSER', 'limited', '-get');
    await until(() => errors.length > 0);
    await further(6, 'ping');
    expect(errors).toEqual([expect.stringMatching(/^Cannot check for dropped messages: NOPERM/)]);
    const message = await storeOnly(fixture.admin, 'tick', 1);
    await message();
    expect(await take(streams[0] as EventStream<number>, 1)).toEqual([1]);
  });

  it('close() of createPubSub during a check ends the streams, and no later command is sent', async () => {
    const events = connect();
    const stream = events.subscribe('tick');
    await events.ready('tick');
    const held = fixture.proxy.hold('get');
    await held.arrived(1);
    await storeOnly(fixture.admin, 'tick', 0);
    const next = stream.next();
    await events.close();
    expect(await next).toEqual({ value: undefined, done: true });
    held.sendAll();
    const calls = await fixture.commandCalls('get');
    await pause(HEARTBEAT * 4);
    // Redis may still get the command that was held.
    expect((await fixture.commandCalls('get')) - calls).toBeLessThanOrEqual(1);
  });

  it('createPubSub with a history can be used and closed without Redis', async () => {
    const errors: string[] = [];
    const events = connect({
      redis: `redis://127.0.0.1:${await freePort()}`,
      onError: ({ message }) => errors.push(message),
    });
    const stream = events.subscribe('tick');
    await until(() => errors.length >= 5);
    await events.close();
    expect(await stream.next()).toEqual({ value: undefined, done: true });
    expect(errors.filter((message) => !message.includes('ECONNREFUSED'))).toEqual([]);
  });
});
