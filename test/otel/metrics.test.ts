/** @tags once slow */
import express from 'express';
import { buildSchema } from 'graphql';
import request from 'supertest';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { createBlog, serveBlog } from '../cache/blog.ts';
import { ready } from '../live/client.ts';
import { events } from '../live/connect-clients.ts';
import { serve as serveSockets, until } from '../live/serve.ts';
import { PHASES, TestTelemetry } from './telemetry.ts';

const schema = buildSchema('type Query { hello: String fails: String }');
const rootValue = {
  hello: 'world',
  fails: () => {
    throw new TypeError('on purpose');
  },
};
const serve = () =>
  express().use('/graphql', graphqlHTTP(schema, { rootValue, onError: false, graphiql: false }));

let telemetry: TestTelemetry;
beforeEach(() => {
  telemetry = new TestTelemetry(PHASES);
});
afterEach(async () => {
  await telemetry.stop();
});

const counts = (values: object | undefined): Record<string, number> =>
  Object.fromEntries(Object.entries(values ?? {}).map(([key, value]) => [key, value.count ?? value]));

it('EspalierInstrumentation measures operations by type and error, and their phases by name', async () => {
  const app = serve();
  const post = (query: string) => request(app).post('/graphql').send({ query });
  for (const query of ['{ hello }', '{ hello }', '{ fails }', '{']) await post(query);
  const metrics = await telemetry.metrics();
  expect(metrics['graphql.server.response.error_count']).toBeUndefined();
  expect(counts(metrics['graphql.server.request.duration'])).toEqual({
    '{"graphql.operation.type":"query"}': 2,
    '{"graphql.operation.type":"query","error.type":"TypeError"}': 1,
    '{"error.type":"GRAPHQL_PARSE_FAILED"}': 1,
  });
  expect(counts(metrics['graphql.server.processing.duration'])).toEqual({
    '{"graphql.processing.type":"parse"}': 2,
    '{"graphql.processing.type":"parse","error.type":"GRAPHQL_PARSE_FAILED"}': 1,
    '{"graphql.processing.type":"validate"}': 2,
    '{"graphql.processing.type":"execute","graphql.operation.type":"query"}': 2,
    '{"graphql.processing.type":"execute","graphql.operation.type":"query","error.type":"TypeError"}': 1,
  });
  expect(counts(metrics['graphql.server.active_requests'])).toEqual({
    '{"graphql.operation.type":"query"}': 0,
  });
  expect(counts(metrics['espalier.cache.requests'])).toEqual({
    '{"espalier.cache.name":"documents","espalier.cache.hit":false}': 3,
    '{"espalier.cache.name":"documents","espalier.cache.hit":true}': 1,
  });
  const usage = counts(metrics['espalier.budget.usage']);
  expect(usage['{"espalier.budget.name":"documents"}']).toBeGreaterThan(0);
});

it('the span of a request begins and ends while the client waits, by the clock of the system', async () => {
  const before = Date.now();
  await request(serve()).post('/graphql').send({ query: '{ hello }' });
  const after = Date.now();
  const [span] = telemetry.named('query');
  const [start = 0, end = 0] = [span?.startTime, span?.endTime].map(
    ([seconds, nanoseconds] = [0, 0]) => seconds * 1000 + nanoseconds / 1e6,
  );
  // Two clocks with a resolution of one millisecond.
  expect(start).toBeGreaterThanOrEqual(before - 2);
  expect(end).toBeGreaterThan(start);
  expect(end).toBeLessThanOrEqual(after + 2);
});

it('the duration of a request in metrics is that of its span', async () => {
  await request(serve()).post('/graphql').send({ query: '{ hello }' });
  const [span] = telemetry.named('query');
  const [seconds, nanoseconds] = span?.duration ?? [0, 0];
  const { 'graphql.server.request.duration': durations } = await telemetry.metrics();
  const { sum } = Object.values(durations ?? {})[0] as { sum: number };
  expect(Math.abs(seconds + nanoseconds / 1e9 - sum)).toBeLessThan(0.002);
});

it('EspalierInstrumentation measures sockets, their operations, subscriptions and events', async () => {
  const { url, live } = await serveSockets();
  const client = await ready(url);
  client.send(events('1'));
  await until(() => live.open === 1);
  live.publish('a', 'one');
  await client.until(({ type }) => type === 'next');
  const during = await telemetry.metrics();
  expect(counts(during['graphql.server.subscription.active'])).toEqual({ '{}': 1 });
  expect(counts(during['espalier.connection.active'])).toEqual({ '{}': 1 });
  expect(counts(during['espalier.operation.active'])).toEqual({ '{}': 1 });
  expect(counts(during['graphql.server.active_requests'])).toEqual({
    '{"graphql.operation.type":"subscription"}': 0,
  });
  expect(counts(during['graphql.server.subscription.event.duration'])).toEqual({ '{}': 1 });
  await client.close();
  await until(() => live.open === 0);
  const after = await telemetry.metrics();
  expect(counts(after['graphql.server.subscription.active'])).toEqual({ '{}': 0 });
  expect(counts(after['espalier.connection.active'])).toEqual({ '{}': 0 });
  expect(counts(after['espalier.connection.duration'])).toEqual({
    '{"espalier.protocol":"graphql-transport-ws"}': 1,
  });
});

it('a disabled instrumentation observes no gauges, and another configuration continues its counts', async () => {
  const app = serve();
  const query = '{ hello }';
  await request(app).post('/graphql').send({ query });
  telemetry.instrumentation.disable();
  const stopped = await telemetry.metrics();
  expect(Object.keys(stopped['espalier.budget.usage'] ?? {})).toEqual([]);
  expect(Object.keys(stopped['espalier.cache.requests'] ?? {})).toEqual([]);
  telemetry.instrumentation.enable();
  telemetry.instrumentation.setConfig({ names: true });
  await request(app).post('/graphql').send({ query });
  expect((await telemetry.metrics())['espalier.cache.requests']).toEqual({
    '{"espalier.cache.name":"documents","espalier.cache.hit":true}': 1,
    '{"espalier.cache.name":"documents","espalier.cache.hit":false}': 1,
  });
});

it('EspalierInstrumentation measures the lookups in the response cache', async () => {
  const { app } = serveBlog(createBlog());
  const query = { query: '{ post(id: 1) { id title } }' };
  for (let turn = 0; turn < 3; turn++) await request(app).get('/graphql').query(query).expect(200);
  const { 'espalier.cache.requests': requests } = await telemetry.metrics();
  expect(requests).toMatchObject({
    '{"espalier.cache.name":"responses","espalier.cache.hit":true}': 2,
    '{"espalier.cache.name":"responses","espalier.cache.hit":false}': 1,
  });
});

describe('the number of time series', () => {
  const names = Array.from({ length: 120 }, (_, index) => `Op${index}`);
  const flood = async (): Promise<string[]> => {
    const app = serve();
    for (const name of names)
      await request(app)
        .post('/graphql')
        .send({ query: `query ${name} { hello }` });
    const { 'graphql.server.request.duration': durations } = await telemetry.metrics();
    return Object.keys(durations ?? {}).map((key) => JSON.parse(key)['graphql.operation.name']);
  };

  it('operation names are not part of metrics and span names by default', async () => {
    expect(await flood()).toEqual([undefined]);
    expect(new Set(telemetry.named('query').map(({ name }) => name))).toEqual(new Set(['query']));
    expect(telemetry.named('query').at(-1)?.attributes['graphql.operation.name']).toBe('Op119');
  });

  it('the option names: true adds the first names to metrics only', async () => {
    telemetry.instrumentation.setConfig({ names: true });
    const seen = await flood();
    expect(seen).toHaveLength(101);
    expect(seen).toContain('_OTHER');
    expect(telemetry.named('query Op0')).toHaveLength(1);
    expect(telemetry.named('query Op119')).toEqual([]);
    expect(telemetry.named('query')).toHaveLength(20);
  });

  it('the option names with a list adds these names to metrics', async () => {
    telemetry.instrumentation.setConfig({ names: ['Op7', 'Op9'] });
    expect((await flood()).sort()).toEqual(['Op7', 'Op9', '_OTHER']);
  });

  it('metrics have a bounded number of error types, also if an application creates codes without end', async () => {
    const root = {
      fails: ({ n }: { n?: number }) => {
        throw Object.assign(new Error('x'), { extensions: { code: `CODE_${n}_${Math.random()}` } });
      },
    };
    const app = express().use('/', graphqlHTTP(schema, { rootValue: root, onError: false }));
    for (let index = 0; index < 110; index++) await request(app).post('/').send({ query: '{ fails }' });
    const { 'graphql.server.request.duration': durations } = await telemetry.metrics();
    expect(Object.keys(durations ?? {})).toHaveLength(101);
  });
});
