/** @tags once */
import { createServer, type IncomingMessage } from 'node:http';
import express from 'express';
import { buildSchema, GraphQLError } from 'graphql';
import request from 'supertest';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { inspect } from '../../middleware/inspect.ts';
import { createPubSub } from '../../middleware/pubsub.ts';
import { staticFiles } from '../../middleware/static.ts';
import type { InspectFigures, InspectOptions } from '../../types/inspect.ts';
import { createBlog, serveBlog } from '../cache/blog.ts';
import { eachExpress } from '../express.ts';
import { makeFolder } from '../kit.ts';
import { ready } from '../live/client.ts';
import { events } from '../live/connect-clients.ts';
import { serve as serveSockets, until } from '../live/serve.ts';

const schema = buildSchema('type Query { hello: String denied: String slow: String }');
const rootValue = {
  hello: 'world',
  denied: () => {
    throw new GraphQLError('not for you', { extensions: { code: 'FORBIDDEN' } });
  },
  slow: () => new Promise((resolve) => setTimeout(resolve, 120, 'slow')),
};
const graphql = () => graphqlHTTP(schema, { rootValue, onError: false, graphiql: false });

const read = async (app: express.Express, path = '/inspect'): Promise<InspectFigures> =>
  (await request(app).get(path).set('accept', 'application/json').expect(200)).body;

/** Runs a test with another NODE_ENV. */
function inEnvironment<T>(name: string, run: () => T): T {
  const before = process.env['NODE_ENV'];
  process.env['NODE_ENV'] = name;
  try {
    return run();
  } finally {
    process.env['NODE_ENV'] = before;
  }
}

beforeEach(() => {
  // The servers of sockets run in production.
  process.env['NODE_ENV'] = 'test';
});

eachExpress((make, major) => {
  it(`the page of inspect has a strict policy that lists its inline scripts and styles (Express ${major})`, async () => {
    const app = make().use('/inspect', inspect());
    const { text, headers } = await request(app).get('/inspect').set('accept', 'text/html').expect(200);
    expect(headers['content-type']).toBe('text/html; charset=utf-8');
    expect(headers['cache-control']).toBe('no-store');
    expect(headers['vary']).toContain('Accept');
    const policy = headers['content-security-policy'];
    expect(policy).toMatch(
      /^default-src 'none'; script-src 'sha256-[^ ;]+'; style-src 'sha256-[^ ;]+'; connect-src 'self'/,
    );
    expect(policy).not.toMatch(/unsafe|\*|http/);
    expect(text.match(/<script/g)).toHaveLength(1);
    expect(text).not.toMatch(/ style=| on\w+=|(?:src|href)="(?!data:)/);
  });

  it(`inspect sends its figures as JSON for Accept: application/json and for figures.json (Express ${major})`, async () => {
    const app = make().use('/inspect', inspect()).use('/graphql', graphql());
    await request(app).post('/graphql').send({ query: 'query Greet { hello }' });
    const figures = await read(app);
    const { body } = await request(app).get('/inspect/figures.json').expect(200);
    expect(Object.keys(body)).toEqual(Object.keys(figures));
    expect(body.operations).toEqual(figures.operations);
    await request(app).get('/inspect/other').expect(404);
    await request(app).post('/inspect').expect(404);
    const head = await request(app).head('/inspect').expect(200);
    expect(head.text ?? '').toBe('');
  });
});

it('inspect counts operations with their latencies and errors', async () => {
  const app = express().use('/inspect', inspect()).use('/graphql', graphql());
  const post = (query: string) => request(app).post('/graphql').send({ query });
  for (let turn = 0; turn < 5; turn++) await post('query Greet { hello }');
  await post('query Slow { slow }');
  await post('{ hello denied }');
  await post('{');
  await post('{');
  await request(app).post('/graphql').set('content-type', 'text/plain').send('x');
  const { operations, requests, errors, lookups, statuses, history } = await read(app);
  const find = (name: string) => operations.find((operation) => operation.name === name);
  expect(find('Greet')).toMatchObject({ type: 'query', requests: 5, errors: 0, total: 5 });
  expect(find('Slow')?.p50).toBeGreaterThan(100);
  expect(find('Slow')?.p50).toBeLessThanOrEqual(find('Slow')?.max as number);
  expect(find('{ hello denied }')).toMatchObject({ requests: 1, errors: 1 });
  expect(find('refused before execution')).toMatchObject({ type: 'other', requests: 2, errors: 2 });
  expect(requests).toMatchObject({ count: 9, errors: 3, total: 9, active: 0 });
  expect(errors.map(({ code, count, operation }) => [code, count, operation])).toEqual([
    ['UNSUPPORTED_MEDIA_TYPE', 1, null],
    ['GRAPHQL_PARSE_FAILED', 2, null],
    ['FORBIDDEN', 1, '{ hello denied }'],
  ]);
  expect(errors[2]?.message).toBe('not for you');
  expect(lookups.documents).toEqual({ hits: 5, misses: 4 });
  expect(statuses.graphql).toEqual({ 200: 9, 415: 1 });
  expect(history.requests).toHaveLength(120);
  expect(history.requests.reduce((sum, value) => sum + value, 0)).toBe(9);
});

it('inspect counts the lookups in the response cache', async () => {
  const { app } = serveBlog(createBlog());
  app.use('/inspect', inspect());
  const before = (await read(app)).lookups.responses;
  const query = { query: '{ post(id: 1) { id title } }' };
  for (let turn = 0; turn < 3; turn++) await request(app).get('/graphql').query(query).expect(200);
  const { hits, misses } = (await read(app)).lookups.responses;
  expect([hits - before.hits, misses - before.misses]).toEqual([2, 1]);
});

it('inspect counts errors whose members throw, and thrown values that are not errors', async () => {
  const malicious = {
    get message() {
      throw new Error('on purpose');
    },
  };
  const thrown: unknown[] = [malicious, 'a string', Symbol('a symbol'), null, Object.create(null)];
  const app = express().use('/inspect', inspect());
  const context = () => Promise.reject(thrown.shift());
  app.use('/graphql', graphqlHTTP(schema, { rootValue, context, onError: false }));
  app.use(((_error, _req, res, _next) => void res.sendStatus(500)) as express.ErrorRequestHandler);
  for (let turn = 0; turn < 5; turn++) {
    await request(app).post('/graphql').send({ query: '{ hello }' }).expect(500);
  }
  const { errors, requests } = await read(app);
  expect(errors.map(({ code, count }) => [code, count])).toEqual([['INTERNAL_SERVER_ERROR', 5]]);
  expect(requests).toMatchObject({ count: 5, errors: 5, active: 0 });
});

it('inspect bounds the number of operations with their own figures', async () => {
  const app = express().use('/inspect', inspect()).use('/graphql', graphql());
  for (let index = 0; index < 210; index++) {
    await request(app)
      .post('/graphql')
      .send({ query: `query Op${index} { hello }` });
  }
  const { operations } = await read(app);
  expect(operations).toHaveLength(201);
  expect(operations[0]).toMatchObject({ name: 'other operations', requests: 10 });
});

it('inspect counts sockets, and the events of subscriptions instead of the subscriptions', async () => {
  const app = express().use('/inspect', inspect());
  const { url, live } = await serveSockets();
  const before = await read(app);
  const client = await ready(url);
  client.send(events('1'));
  await until(() => live.open === 1);
  for (const payload of ['one', new Error('secret detail')]) {
    live.publish('a', payload);
    await client.until(({ type }) => type === 'next');
  }
  const during = await read(app);
  expect(during.live.connections - before.live.connections).toBe(1);
  expect(during.live.operations - before.live.operations).toBe(1);
  expect(during.requests.active).toBe(1);
  expect(during.operations).toEqual([
    expect.objectContaining({ type: 'subscription', name: '{ events }', requests: 2, errors: 1 }),
  ]);
  expect(during.errors).toEqual([
    expect.objectContaining({
      code: 'INTERNAL_SERVER_ERROR',
      message: 'secret detail',
      operation: '{ events }',
    }),
  ]);
  await client.close();
  await until(() => live.open === 0);
  expect((await read(app)).requests.active).toBe(0);
});

it('inspect counts static files, uploads and published events', async () => {
  const folder = makeFolder({ 'a.txt': 'hello' });
  const app = express().use('/inspect', inspect()).use(staticFiles(folder));
  const server = createServer(app);
  await request(server).get('/a.txt');
  await request(server).get('/a.txt');
  await request(server).get('/b.txt');
  const pubsub = createPubSub();
  pubsub.subscribe('a');
  pubsub.subscribe('a');
  await pubsub.publish('a', 1);
  const figures = await read(app);
  expect(figures.lookups.files).toEqual({ hits: 1, misses: 1 });
  expect(figures.statuses.files).toEqual({ 200: 2 });
  expect(figures.pubsub).toEqual({ published: 1, failed: 0, delivered: 2 });
  expect(figures.files.bytes).toBeGreaterThan(0);
  await pubsub.close();
});

describe('the guard', () => {
  const get = (options: InspectOptions, headers: Record<string, string> = {}) => {
    const app = express().use('/inspect', inspect(options));
    app.use(((error, _req, res, _next) => {
      res.status(500).send(error.message);
    }) as express.ErrorRequestHandler);
    return request(app).get('/inspect/figures.json').set(headers);
  };

  it('the page of inspect is off in production without a guard', async () => {
    const log = jest.spyOn(console, 'warn').mockImplementation(() => undefined);
    const middleware = inEnvironment('production', () => inspect());
    expect(log.mock.calls).toEqual([[expect.stringMatching(/inspect is off. It needs the option "guard"/)]]);
    log.mockRestore();
    await request(express().use('/inspect', middleware)).get('/inspect').expect(404);
  });

  it('the guard of inspect decides, also in production and asynchronously', async () => {
    const guard = async ({ headers }: IncomingMessage) => headers.authorization === 'Bearer 1';
    const app = inEnvironment('production', () => express().use('/inspect', inspect({ guard })));
    await request(app).get('/inspect').expect(403, 'The guard of inspect does not allow this request\n');
    await request(app).get('/inspect').set('authorization', 'Bearer 1').expect(200);
  });

  it('inspect passes an error of its guard, and a result that is not a boolean, to the error handlers', async () => {
    await get({ guard: () => Promise.reject(new Error('no session store')) }).expect(500, 'no session store');
    await get({ guard: (() => 'yes') as never }).expect(
      500,
      /option "guard" returned "yes"; accepted: a boolean/,
    );
  });
});

it('every heading of the tables of inspect has a text', async () => {
  const { text } = await request(express().use(inspect())).get('/').set('accept', 'text/html');
  expect(text.match(/<th[^>]*><button type="button">[^<]+<\/button><\/th>/g)?.length).toBeGreaterThan(10);
  expect(text).not.toMatch(/<th[^>]*><\/th>/);
});
