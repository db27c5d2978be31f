/** @tags graphql */
import express from 'express';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import type { DocumentsOptions } from '../../types/graphql.ts';
import { incrementalSchema, V17 } from '../graphql/incremental-schema.ts';
import { open, type Reading, type Served, serve, withParams } from '../live/serve-streams.ts';
import { until } from '../until.ts';
import { file, map, operations, type Part, post } from '../uploads/form.ts';
import { createSchema, MANY, ONE, type Seen } from '../uploads/schema.ts';
import { startServer } from '../uploads/server.ts';
import { sha256 } from './by-id-service.ts';

const LIVE = 'subscription Live { events(topic: "a") }';
const HASH = sha256(LIVE);
const from = { live: LIVE, hello: '{ hello }', [HASH]: LIVE };
const persistedQuery = { version: 1, sha256Hash: HASH };

/** The same subscription by each parameter that may have an id. */
const REFERENCES: readonly Readonly<Record<string, unknown>>[] = [
  { documentId: 'live' },
  { documentId: `sha256:${HASH}` },
  { id: 'live' },
  { doc_id: 'live' },
  { extensions: { persistedQuery } },
];

const asText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
const asSearch = (params: Readonly<Record<string, unknown>>): Record<string, string> =>
  Object.fromEntries(Object.entries(params).map(([name, value]) => [name, asText(value)]));

describe.each([
  ['multipart subscriptions', 'multipart/mixed;subscriptionSpec=1.0,application/graphql-response+json'],
  ['server-sent events', 'text/event-stream'],
])('documents by id over %s', (_name, accept) => {
  /** Publishes an event when a subscription has begun, and waits until the client has it. */
  async function expectEvent(served: Served, start: () => Promise<Reading>): Promise<void> {
    const stream = await start();
    await until(() => served.live.open === 1);
    served.live.publish('a', 'one');
    await until(() => stream.body.includes('"events":"one"'));
    stream.req.destroy();
    await until(() => served.live.open === 0);
  }

  it('graphqlHTTP finds a subscription by every parameter in a POST, a QUERY and a GET, and by the path', async () => {
    const served = await serve({ documents: { from, only: true } });
    const { url } = served;
    const json = { accept, 'content-type': 'application/json' };
    for (const params of REFERENCES) {
      await expectEvent(served, () => open(url, { params, headers: json }));
      await expectEvent(served, () => open(withParams(url, asSearch(params)), { headers: { accept } }));
    }
    await expectEvent(served, () => open(url, { method: 'QUERY', params: { id: 'live' }, headers: json }));
    await expectEvent(served, () => open(`${url}/live`, { headers: { accept } }));
    await expectEvent(served, () => open(`${url}/sha256:${HASH}`, { params: {}, headers: json }));
  });

  it('graphqlHTTP refuses texts and unknown ids', async () => {
    const { url } = await serve({ documents: { from, only: true } });
    for (const [params, code] of [
      [{ query: LIVE }, 'DOCUMENT_NOT_TRUSTED'],
      [{ documentId: 'unknown' }, 'DOCUMENT_NOT_FOUND'],
      [
        { extensions: { persistedQuery: { ...persistedQuery, sha256Hash: '0'.repeat(64) } } },
        'DOCUMENT_NOT_FOUND',
      ],
      [{ documentId: 7 }, 'BAD_REQUEST'],
    ] as const) {
      const reading = await open(url, { params, headers: { accept } });
      await until(() => reading.ended);
      expect(reading.body).toContain(`"code":"${code}"`);
    }
  });

  it('graphqlHTTP registers a subscription by automatic persisted queries, and finds it', async () => {
    const served = await serve({ documents: { apq: true } });
    const extensions = { persistedQuery };
    const start = (params: object) => open(served.url, { params, headers: { accept } });
    const missing = await start({ extensions });
    await until(() => missing.ended);
    expect(missing.body).toContain('"message":"PersistedQueryNotFound"');
    const other = await start({ query: `${LIVE} `, extensions });
    await until(() => other.ended);
    expect(other.body).toContain('PERSISTED_QUERY_HASH_MISMATCH');
    await expectEvent(served, () => start({ query: LIVE, extensions }));
    await expectEvent(served, () => start({ extensions }));
  });
});

it('graphqlHTTP sends the deferred parts of a document by id, also by the path', async () => {
  const { schema, calls } = incrementalSchema();
  const deferred = '{ hello ... @defer { slow } }';
  const handler = graphqlHTTP(schema, { documents: { from: { deferred }, only: true }, onError: false });
  await using server = await startServer(express().use('/graphql', handler));
  const accept = 'multipart/mixed;incrementalSpec=v0.2, application/json';
  for (const target of ['?documentId=deferred', '/deferred']) {
    calls.release();
    const reading = await open(`${server.url}/graphql${target}`, { headers: { accept } });
    await until(() => reading.ended);
    expect(reading.body).toContain('"slow":"slow"');
    // graphql 16 has no incremental delivery.
    expect(reading.body.includes('"hasNext":false')).toBe(V17);
  }
});

describe('documents by id in multipart uploads', () => {
  const seen: Seen = [];
  beforeEach(() => {
    seen.length = 0;
  });

  async function startUploads(documents: DocumentsOptions) {
    const handler = graphqlHTTP(createSchema(seen), { batching: true, documents, onError: false });
    const server = await startServer(express().use('/graphql', handler));
    const send = (params: unknown, files: readonly Part[], path = '') =>
      post(`${server.url}/graphql${path}`, [operations(params), ...files]);
    return { send, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
  }

  const variables = { file: null };
  const files = [map({ 0: ['variables.file'] }), file('0', 'content')];
  const trusted = { one: ONE, [sha256(ONE)]: ONE, many: MANY };
  const extensions = { persistedQuery: { version: 1, sha256Hash: sha256(ONE) } };

  it('graphqlHTTP finds a mutation by every parameter and by the path', async () => {
    await using server = await startUploads({ from: trusted, only: true });
    for (const [params, path] of [
      [{ documentId: 'one' }],
      [{ documentId: `sha256:${sha256(ONE)}` }],
      [{ id: 'one', query: null }],
      [{ doc_id: 'one' }],
      [{ extensions }],
      [{}, '/one'],
    ] as const) {
      const { status, json } = await server.send({ ...params, variables }, files, path);
      expect([params, status, json.data?.one.text]).toEqual([params, 200, 'content']);
    }
    const batch = [
      { documentId: 'one', variables },
      { documentId: 'many', variables: { files: [null] } },
    ];
    const paths = map({ 0: ['0.variables.file'], 1: ['1.variables.files.0'] });
    const { json } = await server.send(batch, [paths, file('0'), file('1')]);
    expect(json).toMatchObject([
      { data: { one: { text: 'content of 0' } } },
      { data: { many: [{ text: 'content of 1' }] } },
    ]);
  });

  it('graphqlHTTP passes no file to a resolver for a text or an unknown id', async () => {
    await using server = await startUploads({ from: trusted, only: true });
    for (const [params, status, code] of [
      [{ query: ONE }, 403, 'DOCUMENT_NOT_TRUSTED'],
      [{ documentId: 'unknown' }, 200, 'DOCUMENT_NOT_FOUND'],
      [{}, 400, 'BAD_REQUEST'],
    ] as const) {
      const refused = await server.send({ ...params, variables }, files);
      expect([refused.status, refused.json.errors[0].extensions.code]).toEqual([status, code]);
    }
    expect(seen).toEqual([]);
  });

  it('graphqlHTTP registers a mutation by automatic persisted queries, and finds it', async () => {
    await using server = await startUploads({ apq: true });
    const missing = await server.send({ extensions, variables }, files);
    expect(missing.json.errors[0].message).toBe('PersistedQueryNotFound');
    for (const params of [{ query: ONE, extensions }, { extensions }]) {
      expect((await server.send({ ...params, variables }, files)).json.data.one.text).toBe('content');
    }
    expect(seen).toHaveLength(2);
  });
});
