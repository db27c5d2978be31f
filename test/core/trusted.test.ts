/** @tags graphql */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { GraphQLOptions } from '../../middleware/graphql.ts';
import { makeFolder } from '../kit.ts';
import { serve, sha256 } from './by-id-service.ts';

const HELLO = 'query Hello { hello }';
const WORLD = { data: { hello: 'world' } };

function file(name: string, content: unknown): string {
  const path = join(makeFolder(), name);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

const apollo = {
  format: 'apollo-persisted-query-manifest',
  version: 1,
  operations: [{ id: 'abc', name: 'Hello', type: 'query', body: HELLO }],
} as const;

function directory(): string {
  const path = join(makeFolder(), 'documents');
  mkdirSync(path);
  writeFileSync(join(path, 'abc.graphql'), HELLO);
  writeFileSync(join(path, 'def.gql'), '{ add(a: 1) }');
  writeFileSync(join(path, 'README.md'), 'not a document');
  return path;
}

describe('documents.from', () => {
  it.each([
    ["a file with Apollo's manifest", () => file('manifest.json', apollo)],
    ['a file with texts by id', () => file('persisted-documents.json', { abc: HELLO })],
    [
      'a file that begins with a byte order mark',
      () => file('map.json', `\uFEFF${JSON.stringify({ abc: HELLO })}`),
    ],
    ['a file URL', () => pathToFileURL(file('map.json', { abc: HELLO }))],
    ['a directory', () => directory()],
    ["an object with Apollo's manifest", () => apollo],
    ['an object of texts', () => ({ abc: HELLO })],
    ['a Map', () => new Map([['abc', HELLO]])],
    ['a function', () => (id: string) => (id === 'abc' ? HELLO : undefined)],
    ['an async function', () => async (id: string) => (id === 'abc' ? HELLO : null)],
  ])('graphqlHTTP takes the trusted documents from %s', async (_name, make) => {
    const { post, get, reports } = await serve({ documents: { from: make() } });
    expect((await post({ documentId: 'abc' })).body).toEqual(WORLD);
    expect((await get('/abc')).body).toEqual(WORLD);
    expect((await post({ documentId: 'unknown' })).code).toBe('DOCUMENT_NOT_FOUND');
    expect(reports).toEqual([]);
  });

  it('graphqlHTTP throws for a manifest that is not JSON', async () => {
    const documents = { from: file('a.json', '{') };
    await expect(serve({ documents })).rejects.toThrow(expect.objectContaining({ code: 'ERR_OPTION' }));
  });

  it('graphqlHTTP reports the trusted documents that do not fit the schema, with their names, and serves the others', async () => {
    const from = {
      ...apollo,
      operations: [
        ...apollo.operations,
        { id: 'def', name: 'Old', type: 'query', body: 'query Old { old }' },
        { id: 'ghi', body: '{' },
      ],
    };
    const { post, reports } = await serve({ documents: { from } });
    expect(reports.map(({ message }) => message)).toEqual([
      expect.stringMatching(
        /^2 trusted documents do not fit the schema:\n {2}Old \(def\): Cannot query field "old".*\n {2}ghi: Syntax Error/,
      ),
    ]);
    expect((await post({ id: 'abc' })).body).toEqual(WORLD);
    expect((await post({ id: 'def' })).code).toBe('GRAPHQL_VALIDATION_FAILED');
    expect((await post({ id: 'ghi' })).code).toBe('GRAPHQL_PARSE_FAILED');
    expect(reports).toHaveLength(1);
  });

  it('graphqlHTTP passes an error of the function to the error handlers and never caches an id as unknown', async () => {
    let calls = 0;
    const { post, url } = await serve({
      documents: {
        from: async () => {
          calls += 1;
          if (calls === 1) throw new Error('the database is down');
          return calls === 2 ? undefined : HELLO;
        },
      },
    });
    const failed = await fetch(`${url}?id=a`);
    expect(failed.status).toBe(500);
    await failed.text();
    expect((await post({ id: 'a' })).code).toBe('DOCUMENT_NOT_FOUND');
    expect((await post({ id: 'a' })).body).toEqual(WORLD);
    expect((await post({ id: 'a'.repeat(513) })).code).toBe('DOCUMENT_NOT_FOUND');
    expect(calls).toBe(3);
  });

  it('graphqlHTTP keeps trusted documents prepared when other documents fill the document cache', async () => {
    const { post } = await serve({ documentCacheBytes: 20_000, documents: { from: { abc: HELLO } } });
    const { subscribe, unsubscribe } = await import('node:diagnostics_channel');
    const parsed: string[] = [];
    const onParse = (message: unknown): void => void parsed.push((message as { source: string }).source);
    subscribe('espalier:graphql:parse', onParse);
    for (let index = 0; index < 50; index += 1) await post({ query: `{ a${index}: hello }` });
    expect((await post({ id: 'abc' })).body).toEqual(WORLD);
    unsubscribe('espalier:graphql:parse', onParse);
    expect(parsed).toHaveLength(50);
    expect(parsed).not.toContain(HELLO);
  });
});

describe('documents.only', () => {
  const from = { abc: HELLO, introspect: '{ __schema { queryType { name } } }' };

  it('graphqlHTTP refuses all other documents with DOCUMENT_NOT_TRUSTED and does not reveal the schema', async () => {
    const { post, get } = await serve({ documents: { from, only: true } });
    expect((await post({ id: 'abc' })).body).toEqual(WORLD);
    const messages = new Set<string | undefined>();
    for (const query of [HELLO, '{ nope }', '{', '{ __schema { types { name } } }', 'mutation { count }']) {
      for (const { status, code, body } of [
        await post({ query }),
        await post({ query, id: 'unknown' }),
        await get({ query }, { accept: 'application/graphql-response+json' }),
      ]) {
        expect([status, code]).toEqual([403, 'DOCUMENT_NOT_TRUSTED']);
        messages.add(body.errors?.[0]?.message);
      }
    }
    expect(messages.size).toBe(1);
    const hash = { extensions: { persistedQuery: { version: 1, sha256Hash: sha256(HELLO) } } };
    expect((await post(hash)).code).toBe('DOCUMENT_NOT_FOUND');
    expect((await post({ ...hash, query: HELLO })).code).toBe('DOCUMENT_NOT_TRUSTED');
  });

  it('graphqlHTTP lets a function of the request decide, for staff with GraphiQL and introspection', async () => {
    const isStaff = (source: { headers: Record<string, unknown> }) => source.headers['x-staff'] === '1';
    const { post } = await serve({
      introspection: isStaff,
      documents: { from, only: (source) => !isStaff(source) },
    });
    const staff = { 'x-staff': '1' };
    const introspection = { query: '{ __schema { queryType { name } } }' };
    const data = { __schema: { queryType: { name: 'Query' } } };
    expect((await post(introspection, staff)).body).toEqual({ data });
    expect((await post(introspection)).code).toBe('DOCUMENT_NOT_TRUSTED');
    expect((await post({ id: 'introspect' })).code).toBe('INTROSPECTION_OFF');
    expect((await post({ id: 'introspect' }, staff)).body).toEqual({ data });
    expect((await post({ id: 'abc' })).body).toEqual(WORLD);
  });

  it('graphqlHTTP executes nothing when the function of the option throws or returns a promise', async () => {
    for (const only of [
      () => {
        throw new Error('a bug');
      },
      () => Promise.resolve(false) as unknown as boolean,
    ]) {
      const { url } = await serve({ documents: { from, only } });
      const response = await fetch(`${url}?query={hello}`);
      expect(response.status).toBe(500);
      expect(await response.text()).not.toContain('world');
    }
  });

  it("graphqlHTTP executes other documents with only: 'report', and reports each valid one once", async () => {
    const details: unknown[] = [];
    const errors: Error[] = [];
    const onError: GraphQLOptions['onError'] = (error, { request, operationName, transport }) => {
      errors.push(error as Error);
      details.push([operationName, transport, request?.headers['graphql-client-name']]);
    };
    const { post, get } = await serve({
      onError,
      documents: { from, only: 'report', apq: true },
      batching: true,
    });
    expect((await post({ id: 'abc' })).body).toEqual(WORLD);
    expect((await post({ query: '{ nope }' })).code).toBe('GRAPHQL_VALIDATION_FAILED');
    expect((await post({ id: 'unknown' })).code).toBe('DOCUMENT_NOT_FOUND');
    expect(errors).toEqual([]);

    const query = 'query Feed { hello }';
    for (let count = 0; count < 3; count += 1) {
      expect((await post({ query }, { 'graphql-client-name': 'ios' })).body).toEqual(WORLD);
      expect((await get({ query })).body).toEqual(WORLD);
    }
    const persistedQuery = { version: 1, sha256Hash: sha256(query) };
    expect((await post({ query, extensions: { persistedQuery } })).body).toEqual(WORLD);
    expect((await post({ extensions: { persistedQuery } })).body).toEqual(WORLD);
    expect(details).toEqual([['Feed', 'http', 'ios']]);
    expect(errors[0]).toMatchObject({ code: 'DOCUMENT_NOT_TRUSTED' });
    expect(errors[0]?.message).toContain(`"Feed" (sha256:${sha256(query)})`);

    for (let count = 0; count < 1200; count += 10)
      await post(Array.from({ length: 10 }, (_, index) => ({ query: `{ a${count + index}: hello }` })));
    expect(errors).toHaveLength(1000);
    expect(errors.at(-1)?.message).toContain('not reported');
  });

  it("graphqlHTTP lets a function choose 'report' per request", async () => {
    const { post, reports } = await serve({
      documents: { from, only: ({ headers }) => (headers['x-app'] === undefined ? 'report' : true) },
    });
    expect((await post({ query: HELLO })).body).toEqual(WORLD);
    expect((await post({ query: HELLO }, { 'x-app': '1' })).code).toBe('DOCUMENT_NOT_TRUSTED');
    expect(reports).toHaveLength(1);
  });

  it('graphqlHTTP refuses texts in a batch one by one', async () => {
    const { post } = await serve({ batching: true, documents: { from, only: true } });
    const { body } = await post([{ id: 'abc' }, { query: HELLO }]);
    expect(body).toMatchObject([WORLD, { errors: [{ extensions: { code: 'DOCUMENT_NOT_TRUSTED' } }] }]);
  });
});
