/** @tags graphql */
import type { AddressInfo } from 'node:net';
import express from 'express';
import { createClient } from 'graphql-ws';
import request from 'supertest';
import WebSocket from 'ws';
import { attachSubscriptions, type GraphQLHandler, graphqlHTTP } from '../../middleware/index.ts';
import { TAG_DIRECTIVE } from './blog.ts';
import { schemaOf } from './service.ts';

const schema = schemaOf(
  `${TAG_DIRECTIVE}
  scalar Any
  input Filter { id: ID, ids: [[ID]] }
  enum Status { OPEN CLOSED }
  input Inner { id: ID = "1" }
  input Outer { inner: Inner = {}, list: [Inner!] = [{}, { id: "2" }] }
  type Query {
    one(id: ID): Int @cacheControl(maxAge: 60) @cacheTag(format: "post-{$args.id}")
    many(ids: [ID]): Int @cacheControl(maxAge: 60) @cacheTag(format: "post-{$args.ids}")
    found(filters: [Filter]): Int @cacheControl(maxAge: 60) @cacheTag(format: "post-{$args.filters.id}")
    nested(filter: Filter): Int @cacheControl(maxAge: 60) @cacheTag(format: "post-{$args.filter.ids}")
    any(value: Any): Int @cacheControl(maxAge: 60) @cacheTag(format: "post-{$args.value}")
    pairs(a: [ID], b: [ID]): Int @cacheControl(maxAge: 60) @cacheTag(format: "{$args.a}-{$args.b}")
    all: Int @cacheControl(maxAge: 60) @cacheTag(format: "all")
    withStatus(status: Status = OPEN): Int @cacheControl(maxAge: 60) @cacheTag(format: "status-{$args.status}")
    inner(outer: [Outer]): Int @cacheControl(maxAge: 60) @cacheTag(format: "post-{$args.outer.inner.id}")
    list(outer: Outer): Int @cacheControl(maxAge: 60) @cacheTag(format: "post-{$args.outer.list.id}")
  }
  type Mutation {
    edit(id: ID, number: Int): Int @cacheTag(format: "{$args.id}")
    editPairs(a: [ID], b: [ID]): Int @cacheTag(format: "{$args.a}-{$args.b}")
    clear: Int @cacheTag(format: "*")
  }`,
  { Status: { OPEN: 1, CLOSED: 2 } },
);

let app: express.Express;
let handler: GraphQLHandler;
let calls: number;
beforeEach(() => {
  calls = 0;
  const count = (): number => ++calls;
  const rootValue = {
    ...{ one: count, many: count, found: count, nested: count, any: count, pairs: count, all: count },
    ...{ withStatus: count, inner: count, list: count },
    ...{ edit: () => 1, editPairs: () => 1, clear: () => 1 },
  };
  handler = graphqlHTTP(schema, { responseCache: true, rootValue });
  app = express().use('/graphql', handler);
});

const send = (query: string, variables?: object): request.Test =>
  request(app).post('/graphql').send({ query, variables });

/** Whether the result of a query comes from the cache. Stores it otherwise. */
const isStored = async (query: string, variables?: object): Promise<boolean> =>
  (await send(query, variables)).headers.age !== undefined;

const ids = (count: number): string[] => Array.from({ length: count }, (_, index) => `id-${index}`);

it.each<[string, object | undefined, string]>([
  ['{ many(ids: ["1", null, "2"]) }', undefined, 'post-2'],
  ['query ($id: ID) { many(ids: ["1", $id]) }', {}, 'post-1'],
  ['query ($ids: [ID]) { many(ids: $ids) }', { ids: [null, 1] }, 'post-1'],
  ['{ one(id: 12345678901234567890) }', undefined, 'post-12345678901234567890'],
  ['query ($id: ID = 12345678901234567890) { one(id: $id) }', undefined, 'post-12345678901234567890'],
  ['{ many(ids: [1, 12345678901234567890]) }', undefined, 'post-12345678901234567890'],
  ['{ found(filters: [{ id: 1 }, {}, { id: 2 }]) }', undefined, 'post-2'],
  ['{ found(filters: { id: 1 }) }', undefined, 'post-1'],
  ['query ($filters: [Filter]) { found(filters: $filters) }', { filters: [{ id: 1 }, { id: 2 }] }, 'post-1'],
  ['{ nested(filter: { ids: [["1", "2"], ["3"]] }) }', undefined, 'post-2'],
  ['{ withStatus }', undefined, 'status-OPEN'],
  ['{ withStatus(status: OPEN) }', undefined, 'status-OPEN'],
  ['{ inner(outer: {}) }', undefined, 'post-1'],
  ['{ inner(outer: [{ inner: { id: 3 } }, { inner: {} }]) }', undefined, 'post-1'],
  ['query ($outer: [Outer]) { inner(outer: $outer) }', { outer: [{}] }, 'post-1'],
  ['query ($id: ID) { inner(outer: { inner: { id: $id } }) }', undefined, 'post-1'],
  ['{ list(outer: {}) }', undefined, 'post-2'],
])('a result has a tag for each value of an argument: %s %j has %s', async (query, variables, tag) => {
  await isStored(query, variables);
  expect(await isStored(query, variables)).toBe(true);
  await handler.invalidate(tag);
  expect(await isStored(query, variables)).toBe(false);
});

it('a member of an input object that is null has no tag of its default value', async () => {
  const query = '{ inner(outer: { inner: null }) }';
  await isStored(query);
  await handler.invalidate('post-1');
  expect(await isStored(query)).toBe(true);
});

it.each<[string, object | undefined]>([
  ['{ withStatus(status: null) }', undefined],
  ['query ($status: Status) { withStatus(status: $status) }', { status: null }],
])('an argument that is null has no tag of its default value: %s', async (query, variables) => {
  await isStored(query, variables);
  await handler.invalidate('status-OPEN');
  expect(await isStored(query, variables)).toBe(true);
});

it.each<[string, object]>([
  ['an argument that is an object', { value: { id: 1 } }],
  ['a list with an object', { value: [1, { id: 1 }] }],
])('a result whose tag is unknown is not stored: %s', async (_, variables) => {
  const query = 'query ($value: Any) { any(value: $value) }';
  expect([await isStored(query, variables), await isStored(query, variables)]).toEqual([false, false]);
});

it('two long lists in one format neither block the server nor leave a result without its tags', async () => {
  const [a, b] = [ids(4000), ids(4000)];
  const query = 'query ($a: [ID], $b: [ID]) { pairs(a: $a, b: $b) }';
  // 16 million tags would not fit into the memory of the process.
  for (let count = 0; count < 3; count++) expect(await isStored(query, { a, b })).toBe(false);
  const long = { a: ['x'.repeat(500_000)], b };
  for (let count = 0; count < 3; count++) expect(await isStored(query, long)).toBe(false);
});

it('the lists of all fields of an operation count together', async () => {
  const fields = Array.from({ length: 20 }, (_, index) => `f${index}: pairs(a: $a, b: $b)`).join(' ');
  const variables = { a: ids(90), b: ids(90) };
  const query = `query ($a: [ID], $b: [ID]) { ${fields} }`;
  for (let count = 0; count < 2; count++) expect(await isStored(query, variables)).toBe(false);
});

it('a mutation whose tags are too many invalidates everything', async () => {
  await isStored('{ all }');
  expect(await isStored('{ all }')).toBe(true);
  await send('mutation ($a: [ID], $b: [ID]) { editPairs(a: $a, b: $b) }', { a: ids(4000), b: ids(4000) });
  expect(await isStored('{ all }')).toBe(false);
});

it('a client cannot invalidate everything with an argument', async () => {
  await isStored('{ all }');
  await send('mutation { edit(id: "*") }');
  expect(await isStored('{ all }')).toBe(true);
  await send('mutation { clear }');
  expect(await isStored('{ all }')).toBe(false);
});

it('a mutation with invalid variables invalidates nothing', async () => {
  await isStored('{ all }');
  const query = 'mutation ($id: ID, $number: Int) { edit(id: $id, number: $number) }';
  for (const variables of [{ id: { a: 1 } }, { id: 'all', number: 'x' }]) {
    const { body } = await send(query, variables);
    expect(body.errors[0].extensions.code).toBe('BAD_USER_INPUT');
    expect(await isStored('{ all }')).toBe(true);
  }
});

it('a mutation with invalid variables over a socket invalidates nothing', async () => {
  await isStored('{ all }');
  const server = app.listen(0);
  const sockets = attachSubscriptions(server, handler);
  const url = `ws://localhost:${(server.address() as AddressInfo).port}/graphql`;
  const client = createClient({ url, webSocketImpl: WebSocket });
  const query = 'mutation ($id: ID) { edit(id: $id) }';
  const run = (id: unknown): Promise<unknown> =>
    new Promise((resolve) =>
      client.subscribe({ query, variables: { id } }, { next: resolve, error: resolve, complete: () => {} }),
    );
  expect(await run({ a: 1 })).toMatchObject([{ extensions: { code: 'BAD_USER_INPUT' } }]);
  expect(await isStored('{ all }')).toBe(true);
  expect(await run('all')).toEqual({ data: { edit: 1 } });
  expect(await isStored('{ all }')).toBe(false);
  await client.dispose();
  await sockets.close();
  server.close();
});
