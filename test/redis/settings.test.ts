/** @tags once */
// createPubSub with settings of an ioredis client that change its connections, its commands or its server.

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import net, { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis, type RedisOptions } from 'ioredis';
import { createPubSub, type PubSub } from '../../middleware/pubsub.ts';
import { atEnd } from '../kit.ts';
import { freePort } from '../programs.ts';
import { publishWhenConnected, take } from '../pubsub/events.ts';
import { type RedisPubSubOptions, withRedis } from '../pubsub/redis-options.ts';
import { startRedis } from '../redis.ts';
import { startSentinel } from '../redis-sentinel.ts';

interface Events {
  tick: number;
  other: number;
}

/** Creates a pubsub with the settings of a client. */
function connect(settings: RedisOptions, options: RedisPubSubOptions = {}): PubSub<Events> {
  const redis = new Redis({ ...settings, lazyConnect: true, replyMapping: 'legacy' });
  redis.on('error', () => undefined);
  const events = createPubSub<Events>(withRedis({ redis, onError: false, ...options }));
  atEnd(
    () => redis.disconnect(),
    () => events.close(),
  );
  return events;
}

it('createPubSub connects again to a silent Redis whose client has a path', async () => {
  const path = join(tmpdir(), `espalier-${randomUUID()}.sock`);
  const server = await startRedis(['--unixsocket', path]);
  atEnd(
    () => rmSync(path, { force: true }),
    () => server.kill(),
  );
  const events = connect({ path }, { heartbeat: 100, commandTimeout: 500, history: {} });
  const stream = events.subscribe('tick');
  await events.ready('tick');
  server.signal('SIGSTOP');
  await expect(events.publish('tick', 0)).rejects.toMatchObject({ code: 'ERR_REDIS_TIMEOUT' });
  server.signal('SIGCONT');
  await publishWhenConnected(() => events.publish('tick', 1));
  // Redis may execute the first publish when it continues.
  while ((await take(stream, 1))[0] !== 1);
});

it.each([undefined, {}])(
  'streams of createPubSub begin when Redis replies after the commandTimeout of the client, with history %p',
  async (history) => {
    const server = await startRedis();
    atEnd(() => server.kill());
    const events = connect({ port: server.port, commandTimeout: 50 }, { history });
    await events.ready('other');
    server.signal('SIGSTOP');
    const stream = events.subscribe('tick');
    await pause(200);
    server.signal('SIGCONT');
    await events.ready('tick');
    await events.publish('tick', 1);
    expect(await take(stream, 1)).toEqual([1]);
  },
);

it.each([1, 2] as const)(
  'a pubsub with history publishes if reconnectOnError of the client always returns %i',
  async (answer) => {
    const server = await startRedis();
    atEnd(() => server.kill());
    const events = connect({ port: server.port, reconnectOnError: () => answer }, { history: {} });
    const stream = events.subscribe('tick');
    await events.ready('tick');
    await events.publish('tick', 1);
    expect(await take(stream, 1)).toEqual([1]);
  },
);

it('createPubSub rejects events and can be closed if the port of the client is not possible', async () => {
  const events = connect({ port: 70_000 });
  await expect(events.publish('tick', 1)).rejects.toThrow(/^Redis is not connected: Port should be/);
  await events.close();
});

describe('a client with Sentinel', () => {
  it.each([undefined, () => null])(
    'createPubSub rejects events without a Sentinel and connects later, with sentinelRetryStrategy %p',
    async (sentinelRetryStrategy) => {
      const server = await startRedis();
      atEnd(() => server.kill());
      const port = await freePort();
      const retry = sentinelRetryStrategy && { sentinelRetryStrategy };
      const events = connect({ sentinels: [{ host: '127.0.0.1', port }], name: 'main', ...retry });
      const stream = events.subscribe('tick');
      await expect(events.publish('tick', 0)).rejects.toThrow(
        /^Redis is not connected: All sentinels are unreachable/,
      );
      const sentinel = await startSentinel(server.port, port);
      atEnd(sentinel.stop);
      await events.ready('tick');
      await publishWhenConnected(() => events.publish('tick', 1));
      expect(await take(stream, 1)).toEqual([1]);
    },
  );

  it('createPubSub asks the next Sentinel if the first one does not reply', async () => {
    const server = await startRedis();
    atEnd(() => server.kill());
    const sentinel = await startSentinel(server.port);
    atEnd(sentinel.stop);
    const sockets = new Set<net.Socket>();
    const silent = net.createServer((socket) => sockets.add(socket));
    await once(silent.listen(0, '127.0.0.1'), 'listening');
    atEnd(() => {
      for (const socket of sockets) socket.destroy();
      silent.close();
    });
    const sentinels = [(silent.address() as AddressInfo).port, sentinel.port].map((port) => ({ port }));
    const events = connect({ sentinels, name: 'main' }, { commandTimeout: 500 });
    const stream = events.subscribe('tick');
    await events.ready('tick');
    await publishWhenConnected(() => events.publish('tick', 1));
    expect(await take(stream, 1)).toEqual([1]);
    expect(sockets.size).toBeGreaterThan(0);
  });

  it('createPubSub publishes to the master if the client reads from replicas', async () => {
    const master = await startRedis();
    const words = ['--replicaof', '127.0.0.1', `${master.port}`, '--repl-diskless-sync-delay', '0'];
    const replica = await startRedis(words);
    const sentinel = await startSentinel(master.port);
    atEnd(
      () => master.kill(),
      () => replica.kill(),
      sentinel.stop,
    );
    const admin = new Redis(sentinel.port, '127.0.0.1');
    admin.on('error', () => undefined);
    atEnd(() => admin.disconnect());
    const known = async (): Promise<string> =>
      JSON.stringify(await admin.call('SENTINEL', 'REPLICAS', 'main'));
    while (!(await known()).includes('"flags","slave"')) await pause(20);
    const sentinels = [{ host: '127.0.0.1', port: sentinel.port }];
    const here = connect({ sentinels, name: 'main', role: 'slave' });
    const there = connect({ port: master.port });
    const stream = there.subscribe('tick');
    await there.ready('tick');
    await here.publish('tick', 1);
    expect(await take(stream, 1)).toEqual([1]);
  });
});
