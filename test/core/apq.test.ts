/** @tags graphql */
import { Redis } from 'ioredis';
import type { PersistedQueryOptions } from '../../middleware/graphql.ts';
import { needs } from '../programs.ts';
import { type RedisServer, startRedis } from '../redis.ts';
import { until } from '../until.ts';
import { type Served, serve, sha256 } from './by-id-service.ts';

const HELLO = '{ hello }';
const WORLD = { data: { hello: 'world' } };
const reference = (sha256Hash: string) => ({ extensions: { persistedQuery: { version: 1, sha256Hash } } });
const persisted = reference(sha256(HELLO));
const NOT_FOUND = {
  errors: [{ message: 'PersistedQueryNotFound', extensions: { code: 'PERSISTED_QUERY_NOT_FOUND' } }],
};

/** The header `Accept` of other clients, and of Apollo Client 3 and 4, Apollo Kotlin and Apollo iOS. */
const ACCEPT = [
  'application/json',
  'application/graphql-response+json',
  '*/*',
  'application/graphql-response+json,application/json;q=0.9',
  'multipart/mixed;deferSpec=20220824, application/graphql-response+json, application/json',
  'multipart/mixed;deferSpec=20220824,application/graphql-response+json,application/json',
];

describe('automatic persisted queries', () => {
  it("graphqlHTTP follows Apollo's protocol: not found, registered, found, also by GET", async () => {
    const { post, get } = await serve({ documents: { apq: true } });
    for (const accept of ACCEPT) {
      const missing = await post(persisted, { accept });
      expect([missing.status, missing.headers.get('cache-control')]).toEqual([
        200,
        'private, no-cache, must-revalidate',
      ]);
      expect(missing.body).toEqual(NOT_FOUND);
    }
    expect((await post({ query: HELLO, ...persisted })).body).toEqual(WORLD);
    expect((await post(persisted)).body).toEqual(WORLD);
    const extensions = JSON.stringify(persisted.extensions);
    expect((await get({ extensions })).body).toEqual(WORLD);
    expect((await get({ documentId: `sha256:${sha256(HELLO)}` })).body).toEqual(WORLD);
  });

  it('graphqlHTTP registers the query of a documentId with the prefix sha256', async () => {
    const { post } = await serve({ documents: { apq: true } });
    const documentId = `sha256:${sha256(HELLO)}`;
    expect((await post({ documentId })).code).toBe('DOCUMENT_NOT_FOUND');
    expect((await post({ documentId, query: HELLO })).body).toEqual(WORLD);
    expect((await post({ documentId })).body).toEqual(WORLD);
  });

  it('graphqlHTTP refuses a query with another hash before it executes anything', async () => {
    const { post, mutations } = await serve({ documents: { apq: true } });
    const query = 'mutation { count }';
    const prefixed = { documentId: `sha256:${sha256(HELLO)}` };
    for (const params of [persisted, reference('a'), reference(sha256(query).toUpperCase()), prefixed]) {
      const { status, code, body } = await post({ query, ...params });
      expect([status, code]).toEqual([400, 'PERSISTED_QUERY_HASH_MISMATCH']);
      expect(body.errors?.[0]?.message).toBe('provided sha does not match query');
    }
    expect(mutations()).toBe(0);
    expect((await post(persisted)).body).toEqual(NOT_FOUND);
    // Also when the hash is registered.
    await post({ query: HELLO, ...persisted });
    expect((await post({ query, ...persisted })).code).toBe('PERSISTED_QUERY_HASH_MISMATCH');
    expect((await post(persisted)).body).toEqual(WORLD);
  });

  it('graphqlHTTP computes the hash of the UTF-8 text as it was sent', async () => {
    const { post } = await serve({ documents: { apq: true } });
    const query = '{ hello } # h\u00e9ll\u00f6 \ud83d\ude00';
    expect((await post({ query, ...reference(sha256(query)) })).body).toEqual(WORLD);
    expect((await post(reference(sha256(query)))).body).toEqual(WORLD);
  });

  it('graphqlHTTP registers valid queries only', async () => {
    const { post } = await serve({ documents: { apq: true } });
    for (const query of ['{ nope }', '{', `{ hello } #${' '.repeat(100_000)}`]) {
      const hash = reference(sha256(query));
      expect((await post({ query, ...hash })).code).toMatch(/^(?:GRAPHQL_|LIMIT_)/);
      expect((await post(hash)).body).toEqual(NOT_FOUND);
    }
  });

  it('graphqlHTTP keeps registered queries when a client sends the text of another one with each request', async () => {
    const { post } = await serve({ documents: { cacheBytes: 500_000, apq: true } });
    await post({ query: HELLO, ...persisted });
    const query = `{ other: hello } #${'x'.repeat(1000)}`;
    for (let index = 0; index < 100; index += 1) await post({ query, ...reference(sha256(query)) });
    expect((await post(persisted)).body).toEqual(WORLD);
  });

  it('graphqlHTTP finds trusted documents and registered queries by hash', async () => {
    const trusted = 'query Trusted { add(a: 1) }';
    const { post } = await serve({ documents: { from: { [sha256(trusted)]: trusted }, apq: true } });
    expect((await post(reference(sha256(trusted)))).body).toEqual({ data: { add: 3 } });
    await post({ query: HELLO, ...persisted });
    expect((await post(persisted)).body).toEqual(WORLD);
  });

  it('graphqlHTTP lets clients with a manifest send the text of an unknown hash, unless only refuses it', async () => {
    const { post } = await serve({ documents: { from: { a: 'query A { hello }' } } });
    expect((await post(persisted)).body).toEqual(NOT_FOUND);
    expect((await post({ query: HELLO, ...persisted })).body).toEqual(WORLD);
    expect((await post(persisted)).body).toEqual(NOT_FOUND);
  });
});

needs('redis-server').describe('automatic persisted queries in Redis', () => {
  let redis: RedisServer;
  const clients: Redis[] = [];

  const connect = (): Redis => {
    const client = new Redis(redis.url, { retryStrategy: () => 50 });
    client.on('error', () => undefined);
    clients.push(client);
    return client;
  };
  /** A client of ioredis with these commands. */
  const stub = (get: () => unknown, set: () => unknown) => ({
    status: 'ready',
    duplicate: connect,
    get,
    set,
  });
  const process = (apq: PersistedQueryOptions): Promise<Served> => serve({ documents: { apq } });

  beforeAll(async () => {
    redis = await startRedis();
  });
  afterEach(() => {
    for (const client of clients.splice(0)) client.disconnect();
  });
  afterAll(() => redis.kill());

  it('graphqlHTTP finds a query that another process has registered, and stores one key per hash with a TTL', async () => {
    const admin = connect();
    await admin.flushall();
    const [one, other] = [await process({ redis: connect() }), await process({ redis: connect() })];
    expect((await one.post({ query: HELLO, ...persisted })).body).toEqual(WORLD);
    let body: unknown = NOT_FOUND;
    while (JSON.stringify(body) === JSON.stringify(NOT_FOUND)) ({ body } = await other.post(persisted));
    expect(body).toEqual(WORLD);
    expect(await admin.keys('*')).toEqual([`espalier:apq:${sha256(HELLO)}`]);
    expect(await admin.get(`espalier:apq:${sha256(HELLO)}`)).toBe(HELLO);
    const ttl = await admin.pttl(`espalier:apq:${sha256(HELLO)}`);
    expect(ttl).toBeGreaterThan(0);
    expect(ttl).toBeLessThanOrEqual(24 * 3600 * 1000);
  });

  it('graphqlHTTP does not use a text of the store that has another hash', async () => {
    const admin = connect();
    await admin.set(`espalier:apq:${sha256('other')}`, 'mutation { count }');
    const { post, mutations } = await process({ redis: connect() });
    expect((await post(reference(sha256('other')))).body).toEqual(NOT_FOUND);
    expect(mutations()).toBe(0);
  });

  it('graphqlHTTP counts queries as not found while Redis is away, reports it, and uses Redis again later', async () => {
    const client = connect();
    const { post, reports } = await process({ redis: client });
    await client.ping();
    await redis.kill();
    const query = 'query Away { hello }';
    const away = reference(sha256(query));
    expect((await post(away)).body).toEqual(NOT_FOUND);
    expect((await post({ query, ...away })).body).toEqual(WORLD);
    // This process remembers it.
    expect((await post(away)).body).toEqual(WORLD);
    await until(() => reports.length > 0);
    expect(reports[0]?.message).toMatch(
      /^The store of persisted queries failed: .*Queries count as not found/,
    );
    await redis.start();
    await client.ping();
    const late = 'query Late { hello }';
    let stored: string | null = null;
    while (stored === null) {
      await post({ query: late, ...reference(sha256(late)) });
      stored = await client.get(`espalier:apq:${sha256(late)}`);
      if (stored === null) await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect(stored).toBe(late);
  });

  it('graphqlHTTP does not wait for a Redis that never replies, and sends it few requests', async () => {
    let calls = 0;
    const never = () => {
      calls += 1;
      return new Promise<never>(() => undefined);
    };
    const { post, reports } = await process({ redis: stub(never, never) });
    for (let index = 0; index < 50; index += 1) {
      expect((await post(reference(sha256(`{ a${index}: hello }`)))).body).toEqual(NOT_FOUND);
    }
    expect(calls).toBeLessThan(10);
    expect(reports.length).toBeLessThan(10);
    expect((await post({ query: HELLO, ...persisted })).body).toEqual(WORLD);
  });

  it('graphqlHTTP survives a client that throws synchronously or returns other values', async () => {
    const throws = () => {
      throw new Error('a bug');
    };
    const broken = await process({ redis: stub(throws, throws) });
    expect((await broken.post(persisted)).body).toEqual(NOT_FOUND);
    expect((await broken.post({ query: HELLO, ...persisted })).body).toEqual(WORLD);
    const odd = await process({
      redis: stub(
        async () => 7,
        async () => undefined,
      ),
    });
    expect((await odd.post(persisted)).body).toEqual(NOT_FOUND);
  });
});
