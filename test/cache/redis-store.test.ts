/** @tags graphql */
import { randomUUID } from 'node:crypto';
import express from 'express';
import { Redis } from 'ioredis';
import request from 'supertest';
import { redisStore } from '../../middleware/cache.ts';
import { graphqlHTTP } from '../../middleware/index.ts';
import type { RedisStore } from '../../types/response-cache.ts';
import { startProxy } from '../pubsub/proxy.ts';
import { type RedisServer, startRedis } from '../redis.ts';
import { createBlog, serveBlog, TAG_DIRECTIVE } from './blog.ts';
import { get, schemaOf } from './service.ts';
import { entryOf, textOf, versionOf } from './store-entries.ts';

let redis: RedisServer;
let admin: Redis;
const stores: RedisStore[] = [];
const errors: unknown[] = [];

beforeAll(async () => {
  redis = await startRedis();
  admin = new Redis(redis.url);
  jest.spyOn(process, 'emitWarning').mockImplementation((warning) => void errors.push(warning));
});
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()));
  errors.length = 0;
});
afterAll(async () => {
  jest.restoreAllMocks();
  admin.disconnect();
  await redis.kill();
});

function createStore({ url = redis.url, prefix = randomUUID() as string } = {}): RedisStore {
  const store = redisStore({ redis: `${url}?keyPrefix=${prefix}` });
  stores.push(store);
  return store;
}

describe('redisStore', () => {
  it('redisStore returns what was stored, with UTF-8 bytes, in every process with the prefix', async () => {
    const prefix = randomUUID();
    const [one, two] = [createStore({ prefix }), createStore({ prefix })];
    const entry = entryOf('{"data":"ü 𝄞"}', ['a', 'b']);
    await versionOf(two);
    expect(await one.set('k', entry, await versionOf(one))).toBe(true);
    const found = await two.get('k');
    expect(found.entry).toEqual({ ...entry, body: Buffer.from(String(entry.body)) });
    expect(await textOf(createStore())).toBeUndefined();
  });

  it('redisStore sends no entry after it has expired', async () => {
    const store = createStore();
    await store.set('k', entryOf('1', ['a'], 1500), await versionOf(store));
    expect(await textOf(store)).toBe('1');
    while ((await textOf(store)) !== undefined) await new Promise((resolve) => setTimeout(resolve, 50));
  });

  it('redisStore.invalidate removes the entries with a tag, in every process', async () => {
    const prefix = randomUUID();
    const [one, two] = [createStore({ prefix }), createStore({ prefix })];
    // The first store of a new tag may fail, because its record is new.
    for (const [key, tags] of [
      ['a', ['x', 'y']],
      ['b', ['y']],
      ['c', ['z']],
    ] as const) {
      expect(await one.set(key, entryOf(key, [...tags]), await versionOf(one, key))).toBe(true);
    }
    await versionOf(two);
    await two.invalidate(['x', 'other']);
    expect([await textOf(one, 'a'), await textOf(one, 'b'), await textOf(two, 'c')]).toEqual([
      undefined,
      'b',
      'c',
    ]);
    await one.invalidate(['*']);
    expect([await textOf(two, 'b'), await textOf(two, 'c')]).toEqual([undefined, undefined]);
  });

  it('redisStore.set refuses a result whose execution began before an invalidation of its tags', async () => {
    const store = createStore();
    const version = await versionOf(store);
    await store.invalidate(['x']);
    expect(await store.set('k', entryOf('old', ['x']), version)).toBe(false);
    expect(await store.set('k', entryOf('other', ['y']), await versionOf(store))).toBe(true);
    const later = await versionOf(store, 'l');
    await store.invalidate(['x']);
    // The record of y exists, so the invalidation of x does not matter.
    expect(await store.set('l', entryOf('other', ['y']), later)).toBe(true);
    expect(await textOf(store)).toBe('other');
  });

  it('redisStore treats entries as invalid when Redis evicts the record of a tag, and refuses old results', async () => {
    const prefix = randomUUID();
    const store = createStore({ prefix });
    const version = await versionOf(store);
    await store.set('k', entryOf('1', ['x']), version);
    for (const key of await admin.keys(`*${prefix}*tag:x`)) await admin.del(key);
    expect(await textOf(store)).toBeUndefined();
    await store.invalidate(['y']);
    for (const key of await admin.keys(`*${prefix}*counter`)) await admin.del(key);
    expect(await store.set('k', entryOf('old', ['x']), version)).toBe(false);
    expect(await store.set('k', entryOf('new', ['x']), await versionOf(store))).toBe(true);
    expect(await textOf(store)).toBe('new');
  });

  it('redisStore refuses old results after FLUSHALL has removed everything', async () => {
    const store = createStore();
    const version = await versionOf(store);
    await store.set('k', entryOf('1', ['x']), version);
    await admin.flushall();
    expect(await textOf(store)).toBeUndefined();
    await store.invalidate(['x']);
    expect(await store.set('k', entryOf('old', ['x']), version)).toBe(false);
  });

  it('redisStore gives every key a time to live', async () => {
    const prefix = randomUUID();
    const store = createStore({ prefix });
    await store.set('k', entryOf('1', ['x', 'y']), await versionOf(store));
    const keys = await admin.keys(`*${prefix}*`);
    expect(keys).toHaveLength(5);
    for (const key of keys) expect([key, (await admin.pttl(key)) > 0]).toEqual([key, true]);
  });

  it('redisStore does not use entries from before a restart of Redis', async () => {
    const server = await startRedis();
    const store = createStore({ url: server.url });
    await store.set('k', entryOf('1', ['x']), await versionOf(store));
    const copy = new Redis(server.url);
    const keys = await copy.keys('*');
    const dumps = await Promise.all(keys.map((key) => copy.dumpBuffer(key)));
    await server.kill();
    await server.start();
    copy.on('error', () => undefined);
    const restored = new Redis(server.url);
    for (const [index, key] of keys.entries()) await restored.restore(key, 60_000, dumps[index] as Buffer);
    await versionOf(store);
    expect(await textOf(store)).toBeUndefined();
    restored.disconnect();
    copy.disconnect();
    await server.kill();
  });

  it('redisStore accepts any lifetime of an entry', async () => {
    const store = createStore();
    expect(await store.set('k', entryOf('1', ['x'], Number.MAX_VALUE), await versionOf(store))).toBe(true);
    expect(await textOf(store)).toBe('1');
    expect(errors).toEqual([]);
  });

  it('redisStore does not store a large entry', async () => {
    const store = createStore();
    const version = await versionOf(store);
    expect(await store.set('k', entryOf('x'.repeat(2 ** 20 + 1)), version)).toBe(false);
    expect(await store.set('k', entryOf('x'.repeat(2 ** 20)), version)).toBe(true);
  });

  it('redisStore applies an invalidation during an outage in this process, and in Redis when it replies again', async () => {
    const proxy = await startProxy(redis.url);
    const prefix = randomUUID();
    const store = createStore({ url: proxy.url, prefix });
    const other = createStore({ prefix });
    await versionOf(other);
    await store.set('k', entryOf('old', ['x']), await versionOf(store));
    expect(await textOf(other)).toBe('old');
    proxy.refuse();
    let isDone = false;
    const invalidated = Promise.resolve(store.invalidate(['x'])).then(() => {
      isDone = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(isDone).toBe(false);
    proxy.heal();
    await invalidated;
    expect(await textOf(other)).toBeUndefined();
    await proxy.close();
  });

  it('redisStore invalidates tags in a Redis that has no free memory and evicts nothing', async () => {
    const full = await startRedis(['--maxmemory-policy', 'noeviction']);
    const client = new Redis(full.url);
    const prefix = randomUUID();
    const [one, two] = [createStore({ url: full.url, prefix }), createStore({ url: full.url, prefix })];
    try {
      const version = await versionOf(one);
      await versionOf(two);
      for (const tag of ['a', 'b']) await one.set(tag, entryOf('1', [tag]), version);
      await client.config('SET', 'maxmemory', '1');
      await one.invalidate(['a']);
      expect([await textOf(two, 'a'), await textOf(two, 'b')]).toEqual([undefined, '1']);
      await client.config('SET', 'maxmemory', '0');
      // The execution began before the invalidation.
      expect(await two.set('a', entryOf('1', ['a']), version)).toBe(false);
    } finally {
      client.disconnect();
      await full.kill();
    }
  });

  it('an empty argument adds no tag, and the result is stored in Redis', async () => {
    const schema = schemaOf(
      `${TAG_DIRECTIVE} type Query { count(id: ID): Int @cacheControl(maxAge: 60) @cacheTag(format: "{$args.id}") @cacheTag(format: "all") }`,
    );
    let calls = 0;
    const store = createStore();
    const rootValue = { count: () => ++calls };
    const handler = graphqlHTTP(schema, { responseCache: { store }, rootValue });
    const app = express().use('/graphql', handler);
    await versionOf(store);
    const count = async (): Promise<number> => (await get(app, '{ count(id: "") }')).body.data.count;
    // A response does not wait for Redis to store it.
    const storedCount = async (): Promise<number> => {
      for (;;) {
        const first = await count();
        if ((await count()) === first) return first;
      }
    };
    const first = await storedCount();
    await handler.invalidate('all');
    expect(await storedCount()).toBeGreaterThan(first);
  });

  it('redisStore works for users without permission for INFO', async () => {
    await admin.acl('SETUSER', 'noinfo', 'on', '>secret', '~*', '&*', '+@all', '-info');
    const url = redis.url.replace('redis://', 'redis://noinfo:secret@');
    const store = createStore({ url });
    expect(await store.set('k', entryOf('1', ['x']), await versionOf(store))).toBe(true);
    expect(await textOf(store)).toBe('1');
  });

  it('redisStore reports an error reply, and requests are executed', async () => {
    await admin.acl('SETUSER', 'noeval', 'on', '>secret', '~*', '&*', '+@all', '-eval');
    const url = redis.url.replace('redis://', 'redis://noeval:secret@');
    const blog = createBlog();
    const { app } = serveBlog(blog, { responseCache: { store: createStore({ url }) } });
    let requests = 0;
    // The store sends nothing before it is connected.
    const isReported = (): boolean => errors.some((error) => String(error).includes('NOPERM'));
    while (requests < 5 || !isReported()) {
      expect((await get(app, '{ post(id: 1) { title } }')).status).toBe(200);
      requests++;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(blog.calls.post).toBe(requests);
  });
});

describe('a Redis that does not reply', () => {
  const QUERY = '{ post(id: 1) { title } }';

  /** Sends requests one after the other; each must succeed. */
  async function sendMany(send: () => Promise<{ status: number }>): Promise<void> {
    for (let index = 0; index < 10; index++) expect((await send()).status).toBe(200);
  }

  it.each(['stall', 'refuse', 'drop'] as const)(
    'requests are executed while the connection is lost (%s), and use the store again afterwards',
    async (fault) => {
      const proxy = await startProxy(redis.url);
      const blog = createBlog();
      const { app } = serveBlog(blog, { responseCache: { store: createStore({ url: proxy.url }) } });
      const isHit = async (): Promise<boolean> => (await get(app, QUERY)).headers.age !== undefined;
      const hits = async (): Promise<void> => {
        while (!(await isHit())) await new Promise((resolve) => setTimeout(resolve, 20));
      };
      await hits();
      proxy[fault]();
      await sendMany(() => get(app, QUERY));
      proxy.heal();
      await hits();
      await proxy.close();
    },
  );

  it('a mutation does not wait for a Redis that was stopped', async () => {
    const server = await startRedis();
    const { app, handler } = serveBlog(createBlog(), {
      responseCache: { store: createStore({ url: server.url }) },
    });
    while ((await get(app, QUERY)).headers.age === undefined)
      await new Promise((resolve) => setTimeout(resolve, 20));
    server.signal('SIGSTOP');
    const mutation = 'mutation { editPost(id: 1, title: "stopped") { id } }';
    await sendMany(() => get(app, QUERY));
    await sendMany(() => request(app).post('/graphql').send({ query: mutation }));
    expect((await get(app, QUERY)).body.data.post.title).toBe('stopped');
    server.signal('SIGCONT');
    await handler.invalidate('post-1');
    expect((await get(app, QUERY)).body.data.post.title).toBe('stopped');
    await server.kill();
  });
});
