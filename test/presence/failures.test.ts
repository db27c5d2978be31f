/** @tags once slow */

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { type PresenceChange, presence } from '../../middleware/presence.ts';
import { createPubSub, file, type PubSub } from '../../middleware/pubsub.ts';
import { atEnd, makeFolder } from '../kit.ts';
import { take } from '../pubsub/events.ts';
import { type StallingProxy, startProxy } from '../pubsub/proxy.ts';
import { type RedisPubSubOptions, withRedis } from '../pubsub/redis-options.ts';
import { type RedisServer, startRedis } from '../redis.ts';
import { until } from '../until.ts';
import { fold, seen } from './stores.ts';

const TTL = 1000;
const SETTINGS = { heartbeat: 100, commandTimeout: 300, onError: false } as const;

let redis: RedisServer;
beforeEach(async () => {
  redis = await startRedis();
});
afterEach(() => redis.kill());

function open(options: RedisPubSubOptions): PubSub<object> {
  const events = createPubSub<object>(withRedis(options));
  atEnd(() => events.close());
  return events;
}

const roomOf = (options: RedisPubSubOptions = {}) =>
  presence<string>(open({ redis: redis.url, ...SETTINGS, ...options }), { ttl: TTL });

/** Collects the changes of a stream. */
function collect(stream: AsyncIterable<PresenceChange<string>>): PresenceChange<string>[] {
  const changes: PresenceChange<string>[] = [];
  void (async () => {
    for await (const change of stream) changes.push(change);
  })().catch(() => undefined);
  return changes;
}

async function startProcess(): Promise<ChildProcess> {
  const words = [redis.url, `${TTL}`];
  const child = fork(join(__dirname, 'process.ts'), words, { execArgv: ['--import', 'tsx'] });
  atEnd(() => child.kill('SIGKILL'));
  await once(child, 'message');
  return child;
}

it('the members of a killed process leave, and the others stay', async () => {
  const room = roomOf();
  const changes = collect(room.changes('photo'));
  await room.members('photo');
  room.join('photo', { id: 'here', data: 'Ada' });
  const child = await startProcess();
  await until(() => 'crashing' in fold(changes));
  child.kill('SIGKILL');
  await until(() => !('crashing' in fold(changes)));
  expect(fold(changes)).toEqual({ here: 'Ada' });
  await seen(room, 'photo', { here: 'Ada' });
});

it('a process that starts after all others have crashed does not name their members', async () => {
  const child = await startProcess();
  child.kill('SIGKILL');
  await once(child, 'exit');
  await seen(roomOf(), 'photo', {});
});

it('a process that starts after all others have crashed tells clients that continue who has left', async () => {
  const child = await startProcess();
  child.kill('SIGKILL');
  await once(child, 'exit');
  const changes = collect(roomOf().changes('photo'));
  await until(() => changes.some(({ left }) => left.some(({ id }) => id === 'crashing')));
});

it('nobody leaves while Redis is stopped for longer than the ttl', async () => {
  const [here, there] = [roomOf({ history: {} }), roomOf({ history: {} })];
  const changes = collect(here.changes('photo'));
  await here.members('photo');
  here.join('photo', { id: 'ada', data: 'Ada' });
  there.join('photo', { id: 'bob', data: 'Bob' });
  await until(() => Object.keys(fold(changes)).length === 2);
  redis.signal('SIGSTOP');
  await new Promise((resolve) => setTimeout(resolve, 2 * TTL));
  redis.signal('SIGCONT');
  await seen(here, 'photo', { ada: 'Ada', bob: 'Bob' });
  // A member who joins after a ttl shows that nobody was removed before.
  await new Promise((resolve) => setTimeout(resolve, 2 * TTL));
  there.join('photo', { id: 'eve', data: 'Eve' });
  await until(() => 'eve' in fold(changes));
  expect(changes.flatMap(({ left }) => left)).toEqual([]);
  await seen(there, 'photo', { ada: 'Ada', bob: 'Bob', eve: 'Eve' });
});

it('the members come back to a Redis that has lost its data', async () => {
  const room = roomOf();
  const membership = room.join('photo', { id: 'ada', data: 'Ada' });
  room.join('photo', { id: 'bob', data: 'Bob' });
  await seen(roomOf(), 'photo', { ada: 'Ada', bob: 'Bob' });
  await redis.kill();
  membership.leave();
  room.join('photo', { id: 'eve', data: 'Eve' });
  await redis.start();
  await seen(roomOf(), 'photo', { bob: 'Bob', eve: 'Eve' });
});

describe('a process without a connection', () => {
  let proxy: StallingProxy;
  beforeEach(async () => {
    proxy = await startProxy(redis.url);
    atEnd(() => proxy.close());
  });

  it('leaves after the ttl, and comes back with what has changed meanwhile', async () => {
    const [near, far] = [roomOf(), roomOf({ redis: proxy.url })];
    const membership = far.join('photo', { id: 'far', data: 'before' });
    far.join('photo', { id: 'gone', data: '' }).leave();
    near.join('photo', { id: 'near', data: '' });
    await seen(near, 'photo', { far: 'before', near: '' });
    proxy.stall();
    await seen(near, 'photo', { near: '' });
    membership.update('after');
    proxy.heal();
    await seen(near, 'photo', { far: 'after', near: '' });
    await seen(far, 'photo', { far: 'after', near: '' });
  });
});

it('a client that continues after a restart with a file learns that it has to query the members', async () => {
  const path = join(makeFolder(), 'events.db');
  const supported = Number(process.versions.node.split('.')[0]) >= 24;
  const options = () => (supported ? { transport: file(path) } : { history: {} });
  const first = createPubSub<object>(options());
  const room = presence<string>(first);
  const stream = room.changes('photo');
  room.join('photo', { id: 'ada', data: 'Ada' });
  await take(stream, 1);
  const after = stream.position ?? stream.startCursor ?? '';
  await first.close();
  const resumed = presence<string>(open(options())).changes('photo', { after });
  await resumed.started?.();
  // The cursor is that of another topic. The endpoint then sends EVENTS_MISSED.
  expect(resumed.startCursor).not.toBe(after);
});

it('a failed update is reported once until one succeeds', async () => {
  const errors: string[] = [];
  const room = roomOf({ redis: 'redis://127.0.0.1:1', onError: ({ message }) => errors.push(message) });
  room.join('photo', { id: 'ada', data: 'Ada' });
  room.join('other', { id: 'ada', data: 'Ada' });
  await until(() => errors.some((message) => message.startsWith('Redis is not connected')));
  await new Promise((resolve) => setTimeout(resolve, TTL / 5));
  expect(errors.filter((message) => message.startsWith('Redis is not connected'))).toHaveLength(1);
  await expect(room.members('photo')).rejects.toThrow('not connected');
});
