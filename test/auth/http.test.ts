/** @tags graphql engine */
import { buildSchema, GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';
import { authTypeDefs } from '../../middleware/auth.ts';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { calls, codes, GRAPHQL, type Service, schema, scopesOf, serve } from './service.ts';

const JSON_TYPE = 'application/json';
const policies = (_: readonly string[], { headers }: { headers: Record<string, unknown> }): string[] =>
  headers['x-scopes'] === 'p' ? ['p'] : [];

describe.each(['compiled', 'graphql-js'] as const)('%s', (engine) => {
  let reject: Service;
  let nulls: Service;

  beforeAll(async () => {
    const auth = { scopes: scopesOf, policies };
    reject = await serve({ engine, auth, batching: true });
    nulls = await serve({ engine, auth: { ...auth, mode: 'null' } });
  });

  test('refuses an operation before anything runs', async () => {
    calls['open'] = 0;
    const anonymous = await reject.post('{ open secret }');
    expect(anonymous.status).toBe(401);
    expect(codes(anonymous)).toEqual(['UNAUTHENTICATED']);
    expect(anonymous.body).not.toHaveProperty('data');
    const forbidden = await reject.post('{ open secret }', 'x b');
    expect([forbidden.status, ...codes(forbidden)]).toEqual([403, 'FORBIDDEN']);
    expect(calls['open']).toBe(0);
    for (const scopes of ['a', 'c b x']) {
      expect((await reject.post('{ open secret }', scopes)).body).toEqual({
        data: { open: 'OPEN', secret: 'SECRET' },
      });
    }
  });

  test('the status follows the media type', async () => {
    const { status, body } = await reject.post('{ secret }', undefined, {}, JSON_TYPE);
    expect(status).toBe(200);
    expect(body).not.toHaveProperty('data');
    const { headers } = await reject.post('{ secret }');
    expect(headers.get('www-authenticate')).toBe('Bearer');
  });

  test('names the field, but not the scopes', async () => {
    const { text } = await reject.post('{ secret }', 'x');
    expect(text).toContain('Query.secret');
    expect(text).not.toContain('SECRET');
    expect(text).not.toMatch(/"b"|scope/i);
  });

  test('authenticated and policies', async () => {
    expect((await reject.post('{ mine }')).status).toBe(401);
    expect((await reject.post('{ mine }', '')).body.data).toEqual({ mine: 'MINE' });
    expect((await reject.post('{ byPolicy }')).status).toBe(401);
    expect((await reject.post('{ byPolicy }', 'x')).status).toBe(403);
    expect((await reject.post('{ byPolicy }', 'p')).body.data).toEqual({ byPolicy: 'POLICY' });
  });

  test('@skip and @include decide', async () => {
    const query =
      'query ($on: Boolean! = false, $off: Boolean! = true) { open secret @include(if: $on) mine @skip(if: $off) }';
    expect((await reject.post(query)).body.data).toEqual({ open: 'OPEN' });
    expect((await reject.post(query, undefined, { variables: { on: true } })).status).toBe(401);
    expect((await reject.post(query, undefined, { variables: { off: false } })).status).toBe(401);
    const fragment = 'query ($on: Boolean!) { ...F @include(if: $on) open } fragment F on Query { secret }';
    expect((await reject.post(fragment, undefined, { variables: { on: false } })).status).toBe(200);
    expect((await reject.post(fragment, undefined, { variables: { on: true } })).status).toBe(401);
  });

  test("null mode: the field is null with one error, and a required field's null bubbles", async () => {
    calls['secret'] = 0;
    const { status, body } = await nulls.post('{ open alias: secret }', 'x');
    expect(status).toBe(200);
    expect(body.data).toEqual({ open: 'OPEN', alias: null });
    expect(body.errors).toEqual([
      expect.objectContaining({
        path: ['alias'],
        extensions: { code: 'FORBIDDEN' },
        locations: [{ line: 1, column: 8 }],
      }),
    ]);
    expect(calls['secret']).toBe(0);
    expect((await nulls.post('{ open required }', 'x')).body.data).toBeNull();
    const nested = await nulls.post('{ open parent { child other } }');
    expect(nested.body.data).toEqual({ open: 'OPEN', parent: null });
    expect(codes(nested)).toEqual(['UNAUTHENTICATED']);
  });

  test('null mode: the type of a value decides', async () => {
    const { body, text } = await nulls.post('{ nodes { __typename id name } }', '');
    expect(body.data).toEqual({
      nodes: [
        { __typename: 'User', id: 'u', name: 'USER' },
        null,
        { __typename: 'Post', id: null, name: 'POST' },
      ],
    });
    expect(text).not.toMatch(/ADMIN|POST-ID/);
    const search = await nulls.post('{ search { __typename ... on Post { title } } }', '');
    expect(search.body.data).toEqual({ search: null });
    const admin = await nulls.post('{ search { __typename ... on Post { title } } }', 'admin');
    expect(admin.body.data).toEqual({
      search: [{ __typename: 'Admin' }, { __typename: 'Post', title: 'TITLE' }],
    });
    const anonymous = await nulls.post('{ nodes { name } }');
    expect(anonymous.body.data).toEqual({ nodes: [{ name: null }, null, { name: null }] });
  });

  test('reject mode: a query is refused as a whole if one of its values requires more', async () => {
    const refused = await reject.post('{ nodes { id } }', 'a');
    expect([refused.status, ...codes(refused)]).toEqual([403, 'FORBIDDEN']);
    expect(refused.body).not.toHaveProperty('data');
    expect((await reject.post('{ nodes { id } }', 'a admin')).status).toBe(200);
    // Every type of the interface requires it.
    calls['nodes'] = 0;
    expect((await reject.post('{ nodes { name } }')).status).toBe(401);
    expect((await reject.post('{ search { ... on Post { id } } }', 'admin')).status).toBe(403);
    expect(calls['nodes']).toBe(0);
  });

  test('reject mode: a mutation that has run keeps its result', async () => {
    expect((await reject.post('mutation { write }', 'x')).status).toBe(403);
    const { status, body } = await reject.post('mutation { touch { id __typename } }', 'x');
    expect(status).toBe(200);
    expect(body.data).toEqual({ touch: { id: null, __typename: 'Post' } });
  });

  test('enums, arguments and input fields', async () => {
    expect((await reject.post('{ level }', 'x')).status).toBe(403);
    expect((await reject.post('{ byLevel(filter: { text: "x" }) }')).body.data).toEqual({
      byLevel: 'BY-LEVEL',
    });
    for (const argument of ['level: LOW', 'filter: { inner: { level: HIGH } }', 'filter: { admin: null }']) {
      expect((await reject.post(`{ byLevel(${argument}) }`, 'x')).status).toBe(403);
      expect((await nulls.post(`{ open byLevel(${argument}) }`, 'x')).body.data).toEqual({
        open: 'OPEN',
        byLevel: null,
      });
      expect((await reject.post(`{ byLevel(${argument}) }`, 'level admin')).status).toBe(200);
    }
    const query = 'query ($level: Level, $filter: Filter) { byLevel(level: $level, filter: $filter) }';
    const send = (variables: object) => reject.post(query, 'x', { variables });
    expect((await send({})).status).toBe(200);
    expect((await send({ filter: { text: 'x' } })).status).toBe(200);
    expect((await send({ level: 'LOW' })).status).toBe(403);
    expect((await send({ filter: { inner: { admin: true } } })).status).toBe(403);
    expect((await reject.post('query ($level: Level = LOW) { byLevel(level: $level) }', 'x')).status).toBe(
      403,
    );
  });

  test('operations of a batch are independent', async () => {
    const response = await fetch(reject.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-scopes': 'x' },
      body: JSON.stringify([{ query: '{ open }' }, { query: '{ secret }' }]),
    });
    const [first, second] = (await response.json()) as { data?: object; errors?: object[] }[];
    expect(first).toEqual({ data: { open: 'OPEN' } });
    expect(second?.errors).toHaveLength(1);
    expect(second).not.toHaveProperty('data');
  });

  test('suggestions name nothing', async () => {
    const { text } = await reject.post('{ secre }');
    expect(text).toContain('Cannot query field');
    expect(text).not.toContain('Did you mean');
  });

  test('a function that fails or returns a wrong value refuses', async () => {
    const reports: unknown[] = [];
    const onError = (error: unknown) => reports.push(error);
    for (const scopes of [
      () => {
        throw new Error('down');
      },
      () => Promise.reject(new Error('down')),
      () => 'a' as unknown as string[],
      () => [1] as unknown as string[],
    ]) {
      const service = await serve({ engine, onError, auth: { scopes, policies } });
      const { status, text } = await service.post('{ secret }');
      expect(status).toBe(500);
      expect(text).not.toContain('SECRET');
    }
    expect(reports).toHaveLength(4);
  });
});

describe('the schema', () => {
  const create = (sdl: string, auth: object = { scopes: scopesOf }, options = {}) =>
    graphqlHTTP(buildSchema(`${authTypeDefs} ${sdl}`, options), {
      auth: auth as { scopes: typeof scopesOf },
    });

  test.each([
    ['type Query { a: Int @requiresScopes(scopes: []) }', /Query\.a.*list of lists/],
    ['type Query { a: Int @requiresScopes(scopes: [[]]) }', /Query\.a.*list of lists/],
    ['type Query { a: Int @requiresScope(scopes: [["a"]]) }', /did you mean @requiresScopes/],
    ['type Query { a: Int @Authenticated }', /did you mean @authenticated/],
    ['type Query { a: Int @requiresScopes(scope: [["a"]]) }', /list of lists/],
    ['union U @authenticated = A type A { a: Int } type Query { a: U }', /\bU\b.*no effect/],
    ['enum E { A @authenticated } type Query { a: E }', /E\.A.*no effect/],
    ['input I @authenticated { a: Int } type Query { a(i: I): Int }', /\bI\b.*no effect/],
    ['schema @authenticated { query: Query } type Query { a: Int }', /schema.*no effect/],
    ['type Query { a: Int @policy(policies: [["p"]]) }', /auth\.policies/],
  ])('refuses %s', (sdl, message) => {
    expect(() => create(sdl, undefined, { assumeValid: true })).toThrow(message);
  });

  test('refuses wrong options', () => {
    expect(() => create('type Query { a: Int }', {})).toThrow(/auth\.scopes/);
    expect(() => create('type Query { a: Int }', { scopes: ['a'] })).toThrow(/auth\.scopes/);
    expect(() => create('type Query { a: Int }', { scopes: scopesOf, mode: 'filter' })).toThrow(/auth\.mode/);
    expect(() => create('type Query { a: Int }', { scopes: scopesOf, schemafor: 1 })).toThrow(/schemaFor/);
  });

  test('reads schemas that are created in code', async () => {
    const field = (extensions: Record<string, unknown>) => ({
      type: GraphQLString,
      resolve: () => 'VALUE',
      extensions,
    });
    const query = new GraphQLObjectType({
      name: 'Query',
      fields: {
        a: field({ directives: { requiresScopes: { scopes: [['a']] } } }),
        b: field({ directives: [{ name: 'requiresScopes', args: { scopes: [['b']] } }] }),
        c: field({ requiresScopes: { scopes: [['c']] } }),
        d: field({ authenticated: true }),
      },
    });
    const service = await serve({ auth: { scopes: scopesOf } }, new GraphQLSchema({ query }));
    for (const name of ['a', 'b', 'c']) {
      expect((await service.post(`{ ${name} }`, 'x')).status).toBe(403);
      expect((await service.post(`{ ${name} }`, name)).status).toBe(200);
    }
    expect((await service.post('{ d }')).status).toBe(401);
    for (const extensions of [{ requiresScopes: [['a']] }, { authenticated: false }, { requireScopes: {} }]) {
      const other = new GraphQLObjectType({ name: 'Query', fields: { a: field(extensions) } });
      expect(() => graphqlHTTP(new GraphQLSchema({ query: other }), { auth: { scopes: scopesOf } })).toThrow(
        /Query\.a/,
      );
    }
  });

  test('without the option nothing is checked', async () => {
    const service = await serve({ auth: false });
    expect((await service.post('{ secret }')).status).toBe(200);
    expect(schema.getQueryType()).toBeDefined();
    expect(GRAPHQL).toContain('graphql');
  });
});
