/** @tags once slow */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import express from 'express';
import { buildSchema } from 'graphql';
import { Redis } from 'ioredis';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { createBudget, resolveBudget } from '../../src/cost/budget.ts';
import { clientAddress } from '../../src/http/address.ts';
import { createLocalBuckets, TIMES } from '../../src/rate-limit/buckets.ts';
import type { BudgetOptions, GraphQLOptions } from '../../types/graphql.ts';
import { type Running, run } from '../graphql/server.ts';
import { memoryInUse } from '../heap.ts';
import { atEnd, listen } from '../kit.ts';
import { connect, MODERN, ready } from '../live/client.ts';
import { type RedisServer, startRedis } from '../redis.ts';

const schema = buildSchema('type Query { one: Thing  two: [Thing] } type Thing { id: ID }');

interface Served extends Running {
  post(query: string, headers?: Record<string, string>): Promise<Response>;
}

const byUser = ({ headers }: { headers: Record<string, unknown> }): string | undefined =>
  headers['x-user'] as string | undefined;

async function serve(budget: BudgetOptions, options: GraphQLOptions = {}): Promise<Served> {
  const handler = graphqlHTTP(schema, { onError: false, ...options, budget });
  const server = await run(express().use('/graphql', handler));
  const subscriptions = attachSubscriptions(server.server, handler, { path: '/graphql' });
  atEnd(
    () => server.close(),
    () => subscriptions.close(),
  );
  const post = (query: string, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(server.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ query }),
    });
  return { ...server, post };
}

const WINDOW = 3_600_000;

describe('the option budget in one process', () => {
  it('an operation over the budget of its key gets 429 with Retry-After and the RateLimit headers', async () => {
    const { post } = await serve({ limit: 2, window: WINDOW, unit: 'operations', key: byUser });
    const first = await post('{ one { id } }', { 'x-user': 'ada' });
    expect(first.status).toBe(200);
    expect(first.headers.get('ratelimit-policy')).toBe('"operations";q=2;w=3600');
    expect(first.headers.get('ratelimit')).toBe('"operations";r=1;t=1800');
    await post('{ one { id } }', { 'x-user': 'ada' });
    const refused = await post('{ one { id } }', { 'x-user': 'ada' });
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(1790);
    expect(refused.headers.get('ratelimit')).toMatch(/^"operations";r=0;t=3[56]\d\d$/);
    expect(await refused.json()).toEqual({
      errors: [
        {
          message: expect.stringMatching(/^The budget of 2 per 3600 s is used up; retry after \d+ s$/),
          extensions: { code: 'RATE_LIMITED', retryAfter: expect.any(Number) },
        },
      ],
    });
    expect((await post('{ one { id } }', { 'x-user': 'bob' })).status).toBe(200);
    expect((await post('{ one { id } }')).headers.get('ratelimit')).toBeNull();
  });

  it('the budget counts costs by default', async () => {
    const { post } = await serve({ limit: 25, window: WINDOW });
    expect((await post('{ two { id } }')).headers.get('ratelimit')).toMatch(/^"cost";r=15;/);
    expect((await post('{ two { id } one { id } }')).headers.get('ratelimit')).toMatch(/^"cost";r=4;/);
    expect((await post('{ two { id } }')).status).toBe(429);
    expect((await post('{ one { id } }')).status).toBe(200);
  });

  it('an operation that costs more than the whole budget is refused with COST_LIMIT', async () => {
    const { post } = await serve({ limit: 5, window: WINDOW });
    const response = await post('{ two { id } }');
    expect(response.status).toBe(400);
    expect(response.headers.get('retry-after')).toBeNull();
    expect(await response.json()).toMatchObject({ errors: [{ extensions: { code: 'COST_LIMIT' } }] });
  });

  it('the key of a budget may be a promise and depend on the context', async () => {
    const key = async (_: unknown, context: unknown): Promise<string> => (context as { user: string }).user;
    const { post } = await serve(
      { limit: 1, window: WINDOW, unit: 'operations', key },
      { context: ({ headers }) => ({ user: headers['x-user'] }) },
    );
    expect((await post('{ one { id } }', { 'x-user': 'ada' })).status).toBe(200);
    expect((await post('{ one { id } }', { 'x-user': 'ada' })).status).toBe(429);
    expect((await post('{ one { id } }', { 'x-user': 'bob' })).status).toBe(200);
  });

  it('a budget key that is not a string is an unexpected error', async () => {
    const reports: unknown[] = [];
    const key = (() => 5) as unknown as () => string;
    const { post } = await serve({ limit: 1, key }, { onError: (error) => void reports.push(error) });
    expect((await post('{ one { id } }')).status).toBe(500);
    expect(reports).toEqual([
      expect.objectContaining({ message: expect.stringContaining('option "budget.key" returned 5') }),
    ]);
  });

  it('an operation over the budget gets an error over a socket, and the socket stays open', async () => {
    const { port } = await serve({ limit: 1, window: WINDOW, unit: 'operations' });
    const client = await ready(`ws://127.0.0.1:${port}/graphql`);
    const subscribe = (id: string): void =>
      client.send({ id, type: 'subscribe', payload: { query: '{ one { id } }' } });
    subscribe('1');
    await client.until(({ id, type }) => id === '1' && type === 'complete');
    subscribe('2');
    const [error] = await client.until(({ id }) => id === '2');
    expect(error).toMatchObject({ type: 'error', payload: [{ extensions: { code: 'RATE_LIMITED' } }] });
    expect(await client.silence()).toEqual([]);
    await client.close();
  });

  it('the budget of an operation over a socket is that of the address which a trusted proxy names', async () => {
    const budget = { limit: 1, window: WINDOW, unit: 'operations' } as const;
    const handler = graphqlHTTP(schema, { budget });
    const app = express().set('trust proxy', 'loopback').use('/graphql', handler);
    const { server, socketUrl } = await listen(createServer(app), '/graphql');
    attachSubscriptions(server, handler);
    const answers: unknown[] = [];
    for (const address of ['203.0.113.1', '203.0.113.2', '203.0.113.1']) {
      const client = await connect(socketUrl, MODERN, { headers: { 'x-forwarded-for': address } });
      client.send({ type: 'connection_init' });
      await client.until(({ type }) => type === 'connection_ack');
      client.send({ id: '1', type: 'subscribe', payload: { query: '{ one { id } }' } });
      answers.push((await client.until(({ id }) => id === '1')).at(-1)?.['type']);
      await client.close();
    }
    expect(answers).toEqual(['next', 'next', 'error']);
  });

  it('a bucket of the budget fills evenly and never above its limit', () => {
    let time = 0;
    const buckets = createLocalBuckets({ limit: 10, window: 1000 }, () => time);
    expect(buckets.take('a', 10)).toEqual({ allowed: true, taken: 10, left: 0 });
    time = 100;
    expect(buckets.take('a', 2)).toEqual({ allowed: false, taken: 0, left: 1 });
    time = 200;
    expect(buckets.take('a', 2)).toEqual({ allowed: true, taken: 2, left: 0 });
    time = 100_000;
    expect(buckets.take('a', 1)).toEqual({ allowed: true, taken: 1, left: 9 });
  });

  it('the budget does not keep the buckets of a million keys in memory', () => {
    let time = 0;
    const buckets = createLocalBuckets({ limit: 10, window: 1000 }, () => time);
    const before = memoryInUse().heapUsed;
    for (let key = 0; key < 1_000_000; key++) {
      time += 0.1;
      void buckets.take(`key ${key}`, 1);
    }
    expect(memoryInUse().heapUsed - before).toBeLessThan(50 * 2 ** 20);
    expect(buckets.take('key 999999', 10)).toMatchObject({ allowed: false });
  });

  it('the budget does not keep long keys in memory, and distinguishes them', () => {
    const padding = 'x'.repeat(8000);
    const key = (given: unknown): string => Buffer.from(`${padding}${given}`).toString();
    const budget = createBudget(resolveBudget({ limit: 1, window: WINDOW, unit: 'operations', key }));
    const check = (source: number) => budget({ source, contextValue: undefined }, 1);
    const before = memoryInUse().heapUsed;
    for (let client = 0; client < 10_000; client++) void check(client);
    expect(memoryInUse().heapUsed - before).toBeLessThan(20 * 2 ** 20);
    expect(check(10_000)).toBeUndefined();
    expect(check(9999)).toHaveProperty('errors');
  });

  it.each([
    ['203.0.113.9', '203.0.113.9'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:DB8:0001::7', '2001:db8:1:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
  ])('the default budget key of the address %s is %s', (remoteAddress, expected) => {
    expect(clientAddress({ socket: { remoteAddress } })).toBe(expected);
    expect(clientAddress({ ip: remoteAddress, socket: { remoteAddress: '127.0.0.1' } })).toBe(expected);
  });
});

describe('the option budget with Redis', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.kill());

  /** Changes the time for which operations wait for Redis, until the end of the test. */
  function waitFor(wait: number): void {
    const before = { ...TIMES };
    TIMES.wait = wait;
    atEnd(() => void Object.assign(TIMES, before));
  }

  function client(): Redis {
    const redis = new Redis(server.url, { maxRetriesPerRequest: null });
    redis.on('error', () => undefined);
    atEnd(() => redis.disconnect());
    return redis;
  }

  async function readyClient(): Promise<Redis> {
    const redis = client();
    await redis.ping();
    return redis;
  }

  it('two processes together execute exactly as many operations as the budget allows', async () => {
    const key = `race ${process.pid}`;
    const children = [0, 1].map(() =>
      fork(new URL('./budget-process.ts', `file://${__dirname}/`), [server.url, key], {
        execArgv: ['--import', 'tsx'],
      }),
    );
    const results = await Promise.all(
      children.map(async (child) => (await once(child, 'message'))[0] as number[]),
    );
    await Promise.all(children.map((child) => child.exitCode ?? once(child, 'exit')));
    const [first = [], second = []] = results;
    expect(first.length + second.length).toBe(1000);
    expect([...first, ...second].filter((status) => status === 200)).toHaveLength(137);
    expect([...first, ...second].filter((status) => status === 429)).toHaveLength(863);
  });

  it('a bucket in Redis expires when it is full again', async () => {
    const redis = await readyClient();
    const { post } = await serve({
      limit: 10,
      window: 600_000,
      unit: 'operations',
      redis,
      key: () => 'short',
    });
    await post('{ one { id } }');
    const left = await redis.pttl('espalier:budget:short');
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(60_000);
  });

  it('a bucket in Redis fills again after the clock of Redis was set back', async () => {
    const redis = await readyClient();
    const future = Date.now() + 86_400_000;
    await redis.set('espalier:budget:future', `0 ${future}`, 'PX', 86_400_000);
    const { post } = await serve({ limit: 10, window: 500, unit: 'operations', redis, key: () => 'future' });
    let status = (await post('{ one { id } }')).status;
    expect(status).toBe(429);
    for (let turn = 0; status === 429 && turn < 200; turn++) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      status = (await post('{ one { id } }')).status;
    }
    expect(status).toBe(200);
    expect(await redis.pttl('espalier:budget:future')).toBeLessThanOrEqual(500);
  });

  it('the budget sends its script to Redis again after SCRIPT FLUSH', async () => {
    const redis = await readyClient();
    const { post } = await serve({
      limit: 2,
      window: WINDOW,
      unit: 'operations',
      redis,
      key: () => 'flushed',
    });
    await post('{ one { id } }');
    await redis.script('FLUSH');
    expect((await post('{ one { id } }')).status).toBe(200);
    expect((await post('{ one { id } }')).status).toBe(429);
  });

  it('the budget treats Redis as unavailable while its client is in a MULTI without a pipeline', async () => {
    const redis = await readyClient();
    const { post } = await serve({
      limit: 1000,
      window: WINDOW,
      unit: 'operations',
      redis,
      onUnavailable: 'open',
      key: () => 'multi',
    });
    await post('{ one { id } }');
    await redis.multi({ pipeline: false });
    const during = await post('{ one { id } }');
    expect(during.status).toBe(200);
    expect(during.headers.get('ratelimit')).toBeNull();
    await redis.exec();
    expect((await post('{ one { id } }')).headers.get('ratelimit')).toMatch(/^"operations";r=997;/);
  });

  it.each([
    ['local', [200, 200, 429]],
    ['open', [200, 200, 200]],
    ['closed', [503, 503, 503]],
  ] as const)('the budget with onUnavailable %s sends %j without Redis', async (onUnavailable, statuses) => {
    const redis = new Redis({ port: 1, lazyConnect: true, retryStrategy: () => null });
    atEnd(() => redis.disconnect());
    const { post } = await serve({ limit: 2, window: WINDOW, unit: 'operations', redis, onUnavailable });
    const responses = [
      await post('{ one { id } }'),
      await post('{ one { id } }'),
      await post('{ one { id } }'),
    ];
    expect(responses.map(({ status }) => status)).toEqual(statuses);
    if (onUnavailable !== 'closed') return;
    expect(await responses[0]?.json()).toMatchObject({
      errors: [{ extensions: { code: 'BUDGET_UNAVAILABLE' } }],
    });
    expect(responses[0]?.headers.get('retry-after')).toBe('1');
  });

  it('the budget does not mistake a blocked event loop for a Redis that does not reply', async () => {
    const redis = await readyClient();
    const block = (): void => {
      const end = performance.now() + 250;
      while (performance.now() < end);
    };
    const key = (): string => {
      // After the command was sent.
      setImmediate(block);
      return 'blocked';
    };
    waitFor(200);
    const { post } = await serve({ limit: 10, window: WINDOW, redis, onUnavailable: 'closed', key });
    for (let i = 0; i < 5; i++) expect((await post('{ one { id } }')).status).toBe(200);
  });

  it('the budget treats a Redis that does not reply as unavailable after the timeout', async () => {
    const redis = await readyClient();
    waitFor(50);
    const { post } = await serve({ limit: 1, window: WINDOW, unit: 'operations', redis, key: () => 'slow' });
    const other = await readyClient();
    await other.call('CLIENT', 'PAUSE', '10000', 'WRITE');
    const responses = [await post('{ one { id } }'), await post('{ one { id } }')];
    expect(responses.map(({ status }) => status)).toEqual([200, 429]);
    await other.call('CLIENT', 'UNPAUSE');
  });
});
