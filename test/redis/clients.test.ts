/** @tags once slow */
// Clients of both supported versions of ioredis, with settings that change keys, replies or nodes.

import { setTimeout as pause } from 'node:timers/promises';
import { Cluster, Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import { redisStore } from '../../middleware/cache.ts';
import { versionOf } from '../cache/store-entries.ts';
import { atEnd } from '../kit.ts';
import { type RedisServer, startRedis } from '../redis.ts';
import { startCluster } from '../redis-cluster.ts';
import {
  assertClusterRecovery,
  assertHistory,
  assertInvalidation,
  assertRecovery,
  openPubSub,
  USES,
} from './uses.ts';

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.kill());

// The tests use nothing that differs between the versions.
const version5 = Redis5 as unknown as typeof Redis;

describe.each([
  ['ioredis 5', version5, {}],
  ['ioredis 6', Redis, {}],
  ['ioredis 6 with RESP3 replies', Redis, { replyMapping: 'resp3' }],
  ['ioredis 6 with RESP2', Redis, { protocol: 2 }],
] as const)('a client of %s', (_name, Client, more) => {
  describe.each([
    ['no further option', {}],
    ['a keyPrefix', { keyPrefix: 'app:' }],
    ['a keyPrefix with braces and non-ASCII characters', { keyPrefix: '{äpp}:' }],
    ['stringNumbers', { stringNumbers: true }],
    ['enableAutoPipelining', { enableAutoPipelining: true }],
  ])('with %s', (_option, options) => {
    async function connect(): Promise<Redis> {
      const client = new Client(server.port, { ...options, ...more });
      atEnd(() => client.disconnect());
      await client.ping();
      return client as Redis;
    }

    it.each(Object.keys(USES))('serves %s', async (use) => {
      await USES[use]?.(await connect());
    });
  });
});

it('createPubSub and redisStore keep the keyPrefix of a URL', async () => {
  const url = `${server.url}?keyPrefix=url:`;
  await assertHistory(url);
  await assertInvalidation(url);
});

it('createPubSub and redisStore put the keyPrefix of a client before all of their keys', async () => {
  const admin = new Redis(server.url);
  atEnd(() => admin.disconnect());
  await admin.flushall();
  const client = new Redis(server.port, { keyPrefix: 'app:' });
  atEnd(() => client.disconnect());
  await assertHistory(client);
  await assertInvalidation(client);
  const keys = await admin.keys('*');
  expect(keys.length).toBeGreaterThan(3);
  expect(keys.filter((key) => !key.startsWith('app:'))).toEqual([]);
});

it('createPubSub and redisStore use the masters of a cluster whose client reads from replicas', async () => {
  const cluster = await startCluster({ replicas: 1 });
  atEnd(() => cluster.stop());
  const seeds = cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port }));
  const client = new Cluster(seeds, { scaleReads: 'slave', keyPrefix: '{shop}:', lazyConnect: true });
  client.on('error', () => undefined);
  atEnd(() => client.disconnect());
  const replica = cluster.nodes.at(-1) as RedisServer;
  const [master] = cluster.nodes as [RedisServer];
  const admin = cluster.connectTo(master);
  // A replica is listed when it has received a write.
  await admin.set('{shop}', '1');
  const slots = async (): Promise<string> => JSON.stringify(await admin.call('CLUSTER', 'SLOTS'));
  while (!(await slots()).includes(String(replica.port))) await pause(20);
  // The slot of the prefix belongs to the master with the replica.
  const calls = async (): Promise<string> =>
    (await cluster.connectTo(replica).info('commandstats')).replaceAll(
      /^(?!cmdstat_(get|xrange|xlen):).*$/gm,
      '',
    );
  await assertHistory(client);
  await assertInvalidation(client);
  expect((await calls()).trim()).toBe('');
});

it.each([
  ['is null', null],
  ['returns null', () => null],
  ['returns undefined', () => undefined],
])(
  'createPubSub and redisStore connect again when the retryStrategy of the client %s',
  async (_, retryStrategy) => {
    const own = await startRedis();
    atEnd(() => own.kill());
    const client = new Redis(own.port, { retryStrategy });
    client.on('error', () => undefined);
    atEnd(() => client.disconnect());
    const events = openPubSub(client, { onError: false });
    const store = redisStore({ redis: client });
    atEnd(() => store.close());
    const stream = events.subscribe('tick');
    await events.ready('tick');
    await versionOf(store);
    await own.kill();
    await own.start();
    await assertRecovery(events, stream);
    await versionOf(store);
  },
);

it('createPubSub and redisStore connect to a cluster whose seeds have other names than its nodes', async () => {
  const cluster = await startCluster();
  atEnd(() => cluster.stop());
  const seeds = cluster.nodes.map(({ port }) => ({ host: 'localhost', port }));
  // As ioredis recommends for ElastiCache with TLS.
  const client = new Cluster(seeds, {
    dnsLookup: (address, callback) => callback(null, address),
    lazyConnect: true,
  });
  client.on('error', () => undefined);
  atEnd(() => client.disconnect());
  await assertHistory(client);
  await assertInvalidation(client);
});

it('createPubSub connects to a cluster again when the clusterRetryStrategy of the client returns null', async () => {
  const cluster = await startCluster();
  atEnd(() => cluster.stop());
  const seeds = cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port }));
  const client = new Cluster(seeds, { clusterRetryStrategy: () => null, lazyConnect: true });
  client.on('error', () => undefined);
  atEnd(() => client.disconnect());
  const events = openPubSub(client, { onError: false });
  const stream = events.subscribe('tick');
  await events.ready('tick');
  await Promise.all(cluster.nodes.map((node) => node.kill()));
  await Promise.all(cluster.nodes.map((node) => node.start()));
  await assertClusterRecovery(events, stream);
});
