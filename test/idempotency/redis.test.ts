/** @tags graphql */
import { buildSchema } from 'graphql';
import { Redis } from 'ioredis';
import { graphqlHTTP, idempotentTypeDefs } from '../../middleware/graphql.ts';
import { inject } from '../../middleware/testing.ts';
import { type RedisServer, startRedis } from '../redis.ts';
import { until } from '../until.ts';
import { type Service, serve } from './service.ts';

let server: RedisServer;
let redis: Redis;
beforeAll(async () => {
  server = await startRedis();
});
beforeEach(async () => {
  redis = new Redis(server.url);
  redis.on('error', () => undefined);
  await redis.ping();
  await redis.flushall();
});
afterEach(async () => {
  redis.disconnect();
});
afterAll(() => server.kill());

const PAY =
  'mutation ($key: String!, $amount: Int!) { pay(amount: $amount) @idempotent(key: $key) { id amount } }';
const pay = (service: Service, key: string, amount = 5) =>
  service.post({ query: PAY, variables: { key, amount } });

it('two processes share the keys in Redis, which end after the ttl', async () => {
  const [one, two] = [await serve({ redis }), await serve({ redis })];
  const first = await pay(one, 'a');
  const second = await pay(two, 'a');
  expect([second.replayed, second.body]).toEqual([true, first.body]);
  expect((await pay(two, 'a', 6)).codes).toEqual(['IDEMPOTENCY_KEY_REUSED']);
  expect([one.effects.count, two.effects.count]).toEqual([1, 0]);
  const keys = await redis.keys('*');
  expect(keys).toEqual([expect.stringMatching(/^espalier:idempotency:[\w-]{43}$/)]);
  const left = await redis.pttl(keys[0] as string);
  expect(left).toBeGreaterThan(86_000_000);
  expect(left).toBeLessThanOrEqual(86_400_000);
});

it('a process repeats the sign of life of its mutation, and the key is free again if nothing was executed', async () => {
  const service = await serve({ redis, lease: 30, wait: 0 });
  service.effects.isGated = true;
  const first = pay(service, 'a');
  await until(() => service.effects.waiting === 1);
  const [key = ''] = await redis.keys('*');
  const before = Number(await redis.hget(key, 'until'));
  for (let now = before; now < before + 100; ) now = Number(await redis.hget(key, 'until'));
  service.effects.open();
  expect((await first).status).toBe(200);
  expect((await service.post({ query: PAY, variables: { key: 'b', amount: null } })).data).toBeUndefined();
  for (let keys = 2; keys > 1; ) keys = (await redis.keys('*')).length;
  expect((await pay(service, 'b')).replayed).toBe(false);
});

it('an eviction policy that would lose keys is reported at the start, and every key is refused', async () => {
  await redis.config('SET', 'maxmemory-policy', 'volatile-lru');
  const service = await serve({ redis, wait: 0 });
  await until(() => service.reports.length > 0);
  expect(String(service.reports[0])).toMatch(/volatile-lru.*set maxmemory-policy to noeviction/);
  const refused = await pay(service, 'a');
  expect([refused.status, refused.codes, refused.headers.get('retry-after')]).toEqual([
    503,
    ['IDEMPOTENCY_UNAVAILABLE'],
    '1',
  ]);
  expect(service.effects.count).toBe(0);
  await redis.config('SET', 'maxmemory-policy', 'noeviction');
  expect((await pay(service, 'a')).status).toBe(200);
  expect(service.reports).toHaveLength(1);
});

it('nothing with a key is executed while Redis is down, and a mutation in progress stores its result when it is back', async () => {
  const service = await serve({ redis, wait: 100 });
  service.effects.isGated = true;
  const first = pay(service, 'a');
  await until(() => service.effects.waiting === 1);
  await server.kill();
  await until(() => redis.status !== 'ready');
  const refused = await pay(service, 'b');
  expect([refused.status, refused.codes]).toEqual([503, ['IDEMPOTENCY_UNAVAILABLE']]);
  expect((await service.post({ query: '{ count }' })).data).toEqual({ count: 1 });
  expect((await service.post({ query: 'mutation { fail { id } }' })).status).toBe(402);
  service.effects.open();
  await server.start();
  expect((await first).data).toEqual({ pay: { id: '1', amount: 5 } });
  await until(() => redis.status === 'ready');
  expect((await pay(service, 'a')).replayed).toBe(true);
  // It was down once, whatever has failed meanwhile.
  expect(service.reports).toHaveLength(1);
});

it('a function that returns the schema, and a schema that declares the directive, work as well', async () => {
  const effects = { count: 0 };
  const sdl = 'type Query { a: Int } type Mutation { pay: Int! }';
  const rootValue = { pay: () => ++effects.count };
  const schemas = [buildSchema(sdl), buildSchema(`${idempotentTypeDefs} ${sdl}`)];
  for (const [index, schema] of schemas.entries()) {
    const options = { rootValue, caller: () => ({ id: String(index) }), idempotency: { redis } };
    const handlers = [graphqlHTTP(schema, options), graphqlHTTP(async () => schema, options)];
    for (const handler of handlers) {
      const body = { query: 'mutation { pay @idempotent(key: "k") }' };
      const { body: text } = await inject(handler, { path: '/', body });
      expect(JSON.parse(String(text))).toEqual({ data: { pay: index + 1 } });
    }
  }
  const other = buildSchema(`directive @idempotent on FIELD ${sdl}`);
  expect(() => graphqlHTTP(other, { caller: () => null, idempotency: true })).toThrow(
    /another directive @idempotent/,
  );
});
