/** @tags once slow */
// redisStore, and the memory store with a pubsub, with a Redis Cluster and with Sentinel.

import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import request from 'supertest';
import { redisStore } from '../../middleware/cache.ts';
import { createPubSub, redis } from '../../middleware/pubsub.ts';
import type { RedisStore } from '../../types/response-cache.ts';
import { atEnd } from '../kit.ts';
import type { RedisServer } from '../redis.ts';
import { type RedisCluster, startCluster } from '../redis-cluster.ts';
import { createBlog, serveBlog } from './blog.ts';
import { get } from './service.ts';
import { entryOf, textOf, versionOf } from './store-entries.ts';

const QUERY = '{ post(id: 1) { title } }';
let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster.stop());

function createStore(prefix: string, nodes = cluster): RedisStore {
  const store = redisStore({ redis: nodes.client({ keyPrefix: prefix }) });
  atEnd(() => store.close());
  return store;
}

/** Returns a key prefix whose keys are on the master with this index: its braces are the hash tag. */
async function prefixOf(admin: Redis, master: number): Promise<string> {
  for (;;) {
    const prefix = `{${randomUUID()}}`;
    if (Math.floor(Number(await admin.call('CLUSTER', 'KEYSLOT', prefix)) / 5462) === master) return prefix;
  }
}

it('redisStore stores and invalidates entries on every node of a cluster', async () => {
  const [first] = cluster.nodes as [RedisServer];
  const admin = cluster.connectTo(first);
  for (const master of [0, 1, 2, 0, 1, 2]) {
    const prefix = await prefixOf(admin, master);
    const [one, two] = [createStore(prefix), createStore(prefix)];
    const tags = ['x', 'y', 'with {braces}'];
    for (const key of ['k', 'l']) {
      expect(await one.set(key, entryOf(key, key === 'k' ? tags : ['z']), await versionOf(one, key))).toBe(
        true,
      );
    }
    await versionOf(two);
    expect([await textOf(two, 'k'), await textOf(two, 'l')]).toEqual(['k', 'l']);
    const started = await versionOf(one, 'm');
    await two.invalidate(['other', 'x', 'y']);
    expect([await textOf(one, 'k'), await textOf(one, 'l')]).toEqual([undefined, 'l']);
    expect(await one.set('k', entryOf('old', tags), started)).toBe(false);
  }
});

it('the keys of a prefix are in one slot, also with braces in the prefix', async () => {
  const prefix = `{shop}:${randomUUID()}`;
  const store = createStore(prefix);
  expect(await store.set('k', entryOf('1', ['x', 'y']), await versionOf(store))).toBe(true);
  const keys: string[] = [];
  for (const node of cluster.nodes.slice(0, 3)) {
    keys.push(...(await cluster.connectTo(node).keys(`*${prefix}*`)));
  }
  const admin = cluster.connectTo(cluster.nodes[0] as RedisServer);
  const slots = await Promise.all(keys.map((key) => admin.call('CLUSTER', 'KEYSLOT', key)));
  expect([keys.length, new Set(slots).size]).toEqual([5, 1]);
});

it('graphqlHTTP sends stored results of a cluster, and a mutation in another process invalidates them', async () => {
  const prefix = randomUUID();
  const blog = createBlog();
  const [one, two] = [0, 1].map(() => serveBlog(blog, { responseCache: { store: createStore(prefix) } }).app);
  if (one === undefined || two === undefined) throw new Error('no app');
  const title = async (app: typeof one): Promise<[boolean, string]> => {
    const { headers, body } = await get(app, QUERY);
    return [headers['age'] !== undefined, body.data.post.title];
  };
  for (const app of [one, two]) while (!(await title(app))[0]) await pause(20);
  const query = 'mutation { editPost(id: 1, title: "new") { id } }';
  await request(two).post('/graphql').send({ query }).expect(200);
  expect((await title(one))[1]).toBe('new');
  expect((await title(two))[1]).toBe('new');
});

it('invalidations over a pubsub with a history reach the memory of other processes', async () => {
  const blog = createBlog();
  const [one, two] = [0, 1].map(() => {
    const pubsub = createPubSub({
      transport: redis(cluster.client(), { heartbeat: 200, commandTimeout: 2000 }),
      history: {},
      onError: false,
    });
    atEnd(() => pubsub.close());
    return serveBlog(blog, { responseCache: { pubsub } });
  });
  if (one === undefined || two === undefined) throw new Error('no app');
  const isHit = async (): Promise<boolean> => (await get(two.app, QUERY)).headers['age'] !== undefined;
  for (let round = 0; round < 5; round++) {
    while (!(await isHit())) await pause(20);
    const title = `round ${round}`;
    (blog.posts.get('1') as { title: string }).title = title;
    await one.handler.invalidate('post-1');
    while ((await get(two.app, QUERY)).body.data.post.title !== title) await pause(5);
    // The next round begins with new connections.
    for (const node of cluster.nodes.slice(0, 3)) {
      await cluster.connectTo(node).client('KILL', 'TYPE', 'PUBSUB');
    }
  }
});

it('after a failover of a node, entries whose invalidation was lost are not used', async () => {
  const own = await startCluster({ replicas: 1 });
  atEnd(() => own.stop());
  // Only the first master has a replica.
  const [master, , , replica] = own.nodes as [RedisServer, RedisServer, RedisServer, RedisServer];
  const admin = own.connectTo(master);
  const prefix = await prefixOf(admin, 0);
  const [one, two] = [createStore(prefix, own), createStore(prefix, own)];
  await versionOf(two);
  const started = await versionOf(one);
  expect(await one.set('k', entryOf('old', ['x']), started)).toBe(true);
  const keys = await admin.keys(`*${prefix}*`);
  expect(keys).toHaveLength(4);
  const dumps = await Promise.all(keys.map((key) => admin.dumpBuffer(key)));
  await two.invalidate(['x']);
  await master.kill();
  const promoted = own.connectTo(replica);
  while (!(await promoted.info('replication')).includes('role:master')) await pause(20);
  while (!String(await promoted.call('CLUSTER', 'INFO')).includes('cluster_state:ok')) await pause(20);
  // As if the replica had not received the invalidation.
  for (const [index, key] of keys.entries()) {
    await promoted.restore(key, 60_000, dumps[index] as Buffer, 'REPLACE');
  }
  const version = await versionOf(one);
  expect(await textOf(one)).toBeUndefined();
  expect(await one.set('k', entryOf('older', ['x']), started)).toBe(false);
  expect(await one.set('k', entryOf('new', ['x']), version)).toBe(true);
  await versionOf(two);
  expect(await textOf(two)).toBe('new');
  await two.invalidate(['x']);
  expect(await textOf(one)).toBeUndefined();
  expect(await textOf(two)).toBeUndefined();
});
