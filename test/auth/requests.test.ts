/** @tags graphql */
import { buildSchema, getIntrospectionQuery } from 'graphql';
import { authTypeDefs } from '../../middleware/auth.ts';
import { graphqlHTTP, Upload } from '../../middleware/graphql.ts';
import { codes, GRAPHQL, type Service, schema, scopesOf, serve } from './service.ts';

// The kinds of requests other than a POST with one document.

const policies = (): string[] => [];
async function create(...args: Parameters<typeof serve>): Promise<Service> {
  const service = await serve(...args);
  return service;
}

const headersOf = (scopes: string | undefined): Record<string, string> => ({
  accept: GRAPHQL,
  ...(scopes !== undefined && { 'x-scopes': scopes }),
});

interface Result {
  readonly data?: Record<string, unknown> | null;
  readonly errors?: [];
}

describe.each(['compiled', 'graphql-js'] as const)('%s', (engine) => {
  const auth = { scopes: scopesOf, policies };

  test('GET and HEAD', async () => {
    const { url } = await create({ engine, auth });
    const target = `${url}?query=${encodeURIComponent('{ secret }')}`;
    for (const [method, scopes, status] of [
      ['GET', undefined, 401],
      ['GET', 'x', 403],
      ['GET', 'a', 200],
      ['HEAD', 'x', 403],
      ['HEAD', 'a', 200],
    ] as const)
      expect((await fetch(target, { method, headers: headersOf(scopes) })).status).toBe(status);
  });

  test('documents by id: the requirement is that of the document, for each caller', async () => {
    const documents = { from: { one: '{ open secret }' }, only: true };
    for (const mode of ['reject', 'null'] as const) {
      const { url } = await create({ engine, documents, auth: { ...auth, mode } });
      const ask = async (scopes?: string) => {
        const response = await fetch(`${url}?documentId=one`, { headers: headersOf(scopes) });
        return { status: response.status, body: (await response.json()) as Result };
      };
      for (const [scopes, status, code] of [
        [undefined, 401, 'UNAUTHENTICATED'],
        ['x', 403, 'FORBIDDEN'],
      ] as const) {
        const answer = await ask(scopes);
        expect(answer.status).toBe(mode === 'reject' ? status : 200);
        expect(codes(answer)).toEqual([code]);
        expect(answer.body.data).toEqual(mode === 'reject' ? undefined : { open: 'OPEN', secret: null });
      }
      expect((await ask('a')).body).toEqual({ data: { open: 'OPEN', secret: 'SECRET' } });
    }
  });

  test("a batch in mode 'null', and in JSON lines", async () => {
    const { url } = await create({ engine, batching: true, auth: { ...auth, mode: 'null' } });
    const body = JSON.stringify([{ query: '{ open secret }' }, { query: '{ open }' }]);
    const send = (accept: string, scopes: string) =>
      fetch(url, {
        method: 'POST',
        body,
        headers: { ...headersOf(scopes), accept, 'content-type': 'application/json' },
      });
    const results = (await (await send('application/json', 'x')).json()) as Result[];
    expect(results.map(({ data }) => data)).toEqual([{ open: 'OPEN', secret: null }, { open: 'OPEN' }]);
    expect(await (await send('application/jsonl', 'x')).text()).not.toContain('SECRET');
    expect(await (await send('application/jsonl', 'a')).text()).toContain('SECRET');
  });

  test('one document for a list of variables is decided for each of them', async () => {
    const { url } = await create({ engine, batching: true, auth });
    const response = await fetch(url, {
      method: 'POST',
      body: JSON.stringify({
        query: 'query ($on: Boolean!) { open secret @include(if: $on) }',
        variables: [{ on: false }, { on: true }],
      }),
      headers: { ...headersOf('x'), 'content-type': 'application/json' },
    });
    const [first, second] = (await response.json()) as Result[];
    expect(first?.data).toEqual({ open: 'OPEN' });
    expect(second).not.toHaveProperty('data');
    expect(codes({ body: second ?? {} })).toEqual(['FORBIDDEN']);
  });

  test('introspection shows the whole schema without schemaFor, and needs no scope', async () => {
    const { post } = await create({ engine, auth });
    const { status, text } = await post(getIntrospectionQuery());
    expect(status).toBe(200);
    expect(text).toContain('"secret"');
    expect((await post('{ __typename __type(name: "User") { fields { name } } }')).status).toBe(200);
  });

  test('an error of a resolver is not mistaken for a missing scope', async () => {
    const { post } = await create({
      engine,
      onError: false,
      auth,
      rootValue: {
        secret() {
          throw new Error('database');
        },
      },
    });
    const { status, body } = await post('{ secret }', 'a');
    expect(status).toBe(200);
    expect(codes({ body })).toEqual(['INTERNAL_SERVER_ERROR']);
  });

  test('each hidden field of the schema is one error, however often it is selected', async () => {
    const { post } = await create({ engine, auth });
    const { status, body } = await post('{ a: secret b: secret ...F mine } fragment F on Query { secret }');
    expect(status).toBe(401);
    expect(codes({ body })).toHaveLength(2);
  });

  test('multipart: an upload that the caller may not send is refused, and no resolver gets the file', async () => {
    const sizes: number[] = [];
    const rootValue = {
      async store({ file }: { file: Upload }) {
        sizes.push((await file.arrayBuffer()).byteLength);
        return 'STORED';
      },
    };
    const of = buildSchema(`${authTypeDefs} scalar Upload type Query { a: Int }
      type Mutation { store(file: Upload! @requiresScopes(scopes: [["write"]])): String @authenticated }`);
    Object.assign(of.getType('Upload') ?? {}, Upload.toConfig());
    const { url } = await create({ engine, rootValue, multipartUploadsEnabled: true, auth }, of);
    for (const [scopes, status] of [
      [undefined, 401],
      ['read', 403],
      ['write', 200],
    ] as const) {
      const form = new FormData();
      const query = 'mutation ($file: Upload!) { store(file: $file) }';
      form.set('operations', JSON.stringify({ query, variables: { file: null } }));
      form.set('map', '{"0":["variables.file"]}');
      form.set('0', new Blob(['x'.repeat(200_000)]), 'x.txt');
      const headers = { ...headersOf(scopes), 'apollo-require-preflight': '1' };
      const response = await fetch(url, { method: 'POST', body: form, headers });
      expect(response.status).toBe(status);
      expect(await response.json()).toHaveProperty(status === 200 ? 'data' : 'errors');
    }
    expect(sizes).toEqual([200_000]);
  });
});

test('scopes from a Set, and undefined as not signed in', async () => {
  const { post } = await create({
    auth: {
      policies,
      scopes: ({ headers }) => (headers['x-scopes'] === undefined ? undefined : new Set(['a'])),
    },
  });
  expect((await post('{ secret }')).status).toBe(401);
  expect((await post('{ secret }', 'any')).status).toBe(200);
});

test('two handlers of one schema have their own callers', async () => {
  const strict = await create({ auth: { scopes: () => null, policies } });
  const lenient = await create({ auth: { scopes: () => ['a'], policies } });
  const open = await create({ auth: false });
  expect((await strict.post('{ secret }')).status).toBe(401);
  expect((await lenient.post('{ secret }')).status).toBe(200);
  expect((await open.post('{ secret }')).status).toBe(200);
  expect((await strict.post('{ secret }')).status).toBe(401);
  expect(() => graphqlHTTP(schema, { auth: { scopes: () => null } })).toThrow(/auth\.policies/);
});
