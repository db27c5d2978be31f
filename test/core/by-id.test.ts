/** @tags graphql */
import { createServer } from 'node:http';
import express from 'express';
import { buildSchema } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { run } from '../graphql/server.ts';
import { type Served, schema, serve, sha256 } from './by-id-service.ts';

const HELLO = '{ hello }';
const USER = 'query User($id: ID!) { user(id: $id) { name } }';
const TWO = 'query Hello { hello } query Add { add(a: 1) }';
const HASH = sha256(HELLO);
const from = { Hello: HELLO, user: USER, two: TWO, count: 'mutation { count }', [HASH]: HELLO };
const WORLD = { data: { hello: 'world' } };
const extensions = { persistedQuery: { version: 1, sha256Hash: HASH } };
const NOT_SUPPORTED = {
  errors: [{ message: 'PersistedQueryNotSupported', extensions: { code: 'PERSISTED_QUERY_NOT_SUPPORTED' } }],
};
const GRAPHQL = { accept: 'application/graphql-response+json' };

describe('the id of a document', () => {
  let served: Served;
  beforeEach(async () => {
    served = await serve({ documents: { from } });
  });

  it.each([
    ['documentId', { documentId: 'Hello' }],
    ['id', { id: 'Hello' }],
    ['doc_id', { doc_id: 'Hello' }],
    ['extensions.persistedQuery', { extensions: { persistedQuery: { version: 1, sha256Hash: HASH } } }],
    ['a documentId with the prefix of the specification', { documentId: `sha256:${HASH}` }],
  ])('graphqlHTTP finds the document by %s in a POST and in a GET', async (_name, params) => {
    expect((await served.post(params)).body).toEqual(WORLD);
    const texts = Object.entries(params).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]);
    expect((await served.get(Object.fromEntries(texts))).body).toEqual(WORLD);
  });

  it('graphqlHTTP finds the document by the path below its mount, with GET, POST and HEAD', async () => {
    expect((await served.get('/Hello')).body).toEqual(WORLD);
    expect((await served.get(`/sha256%3A${HASH}`)).body).toEqual(WORLD);
    expect((await served.get(`/sha256:${HASH}?operationName=`)).body).toEqual(WORLD);
    const variables = JSON.stringify({ id: 7 });
    expect((await served.get(`/user?variables=${encodeURIComponent(variables)}`)).body).toEqual({
      data: { user: { name: 'user 7' } },
    });
    const post = await fetch(`${served.url}/user`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"variables":{"id":8}}',
    });
    expect(await post.json()).toEqual({ data: { user: { name: 'user 8' } } });
    const head = await fetch(`${served.url}/Hello`, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
  });

  it('graphqlHTTP sends DOCUMENT_NOT_FOUND for the path of a hash that is unknown, and passes other paths on', async () => {
    const unknown = await served.get(`/${'0'.repeat(64)}`, GRAPHQL);
    expect([unknown.status, unknown.code]).toEqual([404, 'DOCUMENT_NOT_FOUND']);
    for (const path of ['/health', '/Hello/more', `/${HASH}/more`, '/%E0%A4%A']) {
      const response = await fetch(served.url + path);
      expect([path, response.status, response.headers.get('content-type')]).toEqual([
        path,
        404,
        'text/html; charset=utf-8',
      ]);
    }
  });

  it('graphqlHTTP uses the first of path, documentId, id, doc_id and persistedQuery that a request has', async () => {
    const all = {
      documentId: 'Hello',
      id: 'user',
      doc_id: 'two',
      extensions: { persistedQuery: { version: 1, sha256Hash: 'count' } },
    };
    expect((await served.post(all)).body).toEqual(WORLD);
    const { documentId: _, ...withoutFirst } = all;
    expect((await served.post({ ...withoutFirst, variables: { id: 1 } })).body).toEqual({
      data: { user: { name: 'user 1' } },
    });
    const { id: __, ...withoutSecond } = withoutFirst;
    expect((await served.post({ ...withoutSecond, operationName: 'Add' })).body).toEqual({
      data: { add: 3 },
    });
    expect((await served.post({ extensions: all.extensions })).body).toEqual({ data: { count: 1 } });
    expect((await served.get('/Hello?documentId=user')).body).toEqual(WORLD);
  });

  it('graphqlHTTP executes the document of a trusted id whatever text the request has', async () => {
    expect((await served.post({ id: 'Hello', query: '{ add(a: 1) }' })).body).toEqual(WORLD);
  });

  it('graphqlHTTP executes the text of a request whose id is unknown or a number', async () => {
    for (const id of ['req-1', 1]) expect((await served.post({ id, query: HELLO })).body).toEqual(WORLD);
  });

  it('graphqlHTTP selects an operation of a document by operationName', async () => {
    expect((await served.post({ id: 'two', operationName: 'Add' })).body).toEqual({ data: { add: 3 } });
    expect((await served.post({ id: 'two' })).code).toBe('OPERATION_RESOLUTION_FAILURE');
    expect((await served.post({ id: 'user', operationName: 'User', variables: { id: 2 } })).body).toEqual({
      data: { user: { name: 'user 2' } },
    });
  });

  it('graphqlHTTP sends DOCUMENT_NOT_FOUND for an unknown id, which no cache stores', async () => {
    for (const params of [{ documentId: 'x' }, { id: 'x' }, { doc_id: 'x' }]) {
      const json = await served.post(params);
      expect([json.status, json.code, json.body.errors?.length]).toEqual([200, 'DOCUMENT_NOT_FOUND', 1]);
      const { status, code, headers, body } = await served.get(params as Record<string, string>, GRAPHQL);
      expect([status, code, headers.get('cache-control')]).toEqual([404, 'DOCUMENT_NOT_FOUND', 'no-store']);
      expect(body).not.toHaveProperty('data');
    }
  });

  it('graphqlHTTP sends BAD_REQUEST for a documentId of a wrong type and for a malformed persistedQuery', async () => {
    for (const params of [
      { documentId: 7 },
      { documentId: ['Hello'] },
      {},
      { documentId: '' },
      { id: {} },
      { extensions: { persistedQuery: {} } },
      { extensions: { persistedQuery: { version: 2, sha256Hash: HASH } } },
      { extensions: { persistedQuery: { version: 1, sha256Hash: 7 } } },
      { extensions: { persistedQuery: 7 } },
    ]) {
      const { status, code } = await served.post(params);
      expect([params, status, code]).toEqual([params, 400, 'BAD_REQUEST']);
    }
  });

  it('graphqlHTTP keeps the rules of mutations over GET for documents by id', async () => {
    const browser = {
      'sec-fetch-site': 'cross-site',
      'sec-fetch-mode': 'navigate',
      'user-agent': 'Mozilla/5.0',
    };
    for (const path of ['/count', '?documentId=count']) {
      expect((await served.get(path, browser)).code).toBe('CROSS_SITE');
    }
    expect((await served.get('?documentId=count', GRAPHQL)).code).toBe('MUTATION_OVER_GET');
    expect((await fetch(`${served.url}/count`, { method: 'HEAD' })).status).toBe(405);
    expect(served.mutations()).toBe(0);
  });
});

it('graphqlHTTP finds the test vectors of GraphQL over HTTP', async () => {
  const compact = 'query($id:ID!){user(id:$id){name}}';
  const spaced = 'query ($id: ID!) {\n  user(id: $id) {\n    name\n  }\n}';
  const ids = {
    'sha256:71f7dc5758652baac68e4a10c50be732b741c892ade2883a99358f52b555286b': compact,
    'sha256:7dba4bd717b41f10434822356a93c32b1fb4907b983e854300ad839f84cdcd6e': spaced,
  };
  for (const [id, text] of Object.entries(ids)) expect(id).toBe(`sha256:${sha256(text)}`);
  const { get, post } = await serve({ documents: { from: ids } });
  const data = { user: { name: 'user QVBJcy5ndXJ1' } };
  const [first = '', second = ''] = Object.keys(ids);
  expect((await get(`?documentId=${first}&variables=%7B%22id%22%3A%22QVBJcy5ndXJ1%22%7D`)).body).toEqual({
    data,
  });
  expect((await get(`/${first}?variables=%7B%22id%22%3A%22QVBJcy5ndXJ1%22%7D`)).body).toEqual({ data });
  expect((await post({ documentId: second, variables: { id: 'QVBJcy5ndXJ1' } })).body).toEqual({ data });
});

it('graphqlHTTP finds documents by the path on a route and on a bare server', async () => {
  const onRoute = await serve({ documents: { from } }, (handler) => express().get('/graphql{/:id}', handler));
  expect((await onRoute.get('/Hello')).body).toEqual(WORLD);
  expect((await onRoute.get({ id: 'Hello' })).body).toEqual(WORLD);
  const bare = await serve({ documents: { from } }, (handler) => (req, res) => handler(req, res));
  expect((await bare.get('/Hello')).body).toEqual(WORLD);
  expect((await bare.get(`/${HASH}`)).body).toEqual(WORLD);
  expect((await bare.get({ query: HELLO })).body).toEqual(WORLD);
});

it('graphqlHTTP finds documents by id in the operations of a batch, and refuses a batch at the path of one', async () => {
  const { post, url } = await serve({ batching: true, documents: { from } });
  const batch = [
    { id: 'Hello' },
    { documentId: 'two', operationName: 'Add' },
    { id: 'unknown' },
    { query: HELLO },
  ];
  const { body } = await post(batch);
  expect(body).toMatchObject([
    WORLD,
    { data: { add: 3 } },
    { errors: [{ extensions: { code: 'DOCUMENT_NOT_FOUND' } }] },
    WORLD,
  ]);
  expect((await post([{ id: 'Hello' }, {}])).code).toBe('BAD_REQUEST');
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${url}/Hello`, { method: 'POST', headers, body: JSON.stringify(batch) });
  expect(response.status).toBe(400);
});

it('graphqlHTTP without the option ignores ids, passes paths on and sends PersistedQueryNotSupported', async () => {
  const { get, post, url } = await serve({});
  expect((await post({ query: HELLO, documentId: 7, id: {} })).body).toEqual(WORLD);
  expect((await get(`?query=${encodeURIComponent(HELLO)}&id=1&id=2`)).body).toEqual(WORLD);
  expect((await post({ documentId: 'Hello' })).code).toBe('BAD_REQUEST');
  expect((await fetch(`${url}/${HASH}`)).status).toBe(404);
  const unsupported = await post({ extensions });
  expect(unsupported.body).toEqual(NOT_SUPPORTED);
  expect([unsupported.status, unsupported.headers.get('cache-control')]).toEqual([
    200,
    'private, no-cache, must-revalidate',
  ]);
});

it.each([{}])('graphqlHTTP with the documents %j sends PersistedQueryNotSupported', async (documents) => {
  const { post } = await serve({ documents });
  expect((await post({ extensions })).body).toEqual(NOT_SUPPORTED);
  expect((await post({ documentId: `sha256:${HASH}` })).code).toBe('DOCUMENT_NOT_FOUND');
});

it('graphqlHTTP sends PersistedQueryNotSupported for each operation of a batch, because clients expect one result each', async () => {
  const { post, get } = await serve({ batching: true });
  const { status, body } = await post([{ extensions }, { query: HELLO }, { extensions }]);
  expect([status, body]).toEqual([200, [NOT_SUPPORTED, WORLD, NOT_SUPPORTED]]);
  const search = { extensions: JSON.stringify(extensions) };
  expect((await get(search)).body).toEqual(NOT_SUPPORTED);
});

it('graphqlHTTP passes the text of the document to the context function', async () => {
  const seen: unknown[] = [];
  const context = (_req: unknown, { operation }: { operation?: { query: string } | undefined }) => {
    seen.push(operation?.query);
    return {};
  };
  const { post } = await serve({ context, documents: { from } });
  await post({ id: 'Hello' });
  expect(seen).toEqual([HELLO]);
});

it('graphqlHTTP prepares documents by id for each schema of a schema function', async () => {
  const other = buildSchema('type Query { hello: Int }');
  const reports: Error[] = [];
  const handler = graphqlHTTP((req) => (req.headers['x-other'] === undefined ? schema : other), {
    rootValue: { hello: 5 },
    documents: { from },
    onError: (error) => void reports.push(error as Error),
  });
  const server = await run(createServer((req, res) => handler(req, res)).listeners('request')[0] as never);
  const request = async (id: string, headers: Record<string, string> = {}) =>
    (await fetch(`${server.url}?id=${id}`, { headers })).json();
  expect(await request('Hello')).toEqual({ data: { hello: '5' } });
  expect(await request('Hello', { 'x-other': '1' })).toEqual({ data: { hello: 5 } });
  expect(reports).toEqual([]);
  expect(await request('user', { 'x-other': '1' })).toMatchObject({
    errors: [{}, { extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } }],
  });
  expect(reports.map(({ message }) => message)).toEqual([
    expect.stringMatching(
      /^1 trusted document does not fit the schema:\n {2}User \(user\): Unknown type "ID"\. Cannot query field "user"/,
    ),
  ]);
});
