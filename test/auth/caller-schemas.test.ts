/** @tags graphql */
import * as graphql from 'graphql';
import {
  buildClientSchema,
  buildSchema,
  type ExecutionArgs,
  type GraphQLObjectType,
  type GraphQLSchema,
  getIntrospectionQuery,
  printSchema,
  validateSchema,
} from 'graphql';
import { authTypeDefs, visibleSchema } from '../../middleware/auth.ts';
import type { AuthOptions } from '../../types/auth.ts';
import type { GraphQLOptions } from '../../types/graphql.ts';
import { codes, type Service, scopesOf, serve } from './service.ts';

// The option `auth.schemaFor`: the schema of a caller decides about names only.

const services: Service[] = [];
afterEach(() => Promise.all(services.splice(0).map((service) => service.close())));

const schemaFor: AuthOptions['schemaFor'] = (scopes, whole) => visibleSchema(whole, scopes);

/** Serves a schema with parts for callers. Reports of errors fail the test. */
async function create(
  of: GraphQLSchema,
  { auth, ...options }: Omit<GraphQLOptions, 'auth'> & { auth?: Partial<AuthOptions> },
): Promise<Service> {
  const reports: unknown[] = [];
  const service = await serve(
    {
      onError: (error: unknown) => void reports.push(error),
      ...options,
      auth: { scopes: scopesOf, schemaFor, ...auth },
    },
    of,
  );
  services.push({ ...service, close: () => service.close().then(() => expect(reports).toEqual([])) });
  return service;
}

const build = (sdl: string): GraphQLSchema => buildSchema(authTypeDefs + sdl);
const ADMIN = '@requiresScopes(scopes: [["admin"]])';

const ENGINES: Record<string, Pick<GraphQLOptions, 'engine'>> = {
  compiled: { engine: 'compiled' },
  'graphql-js': { engine: 'graphql-js' },
  'a function': { engine: (args: ExecutionArgs) => graphql.execute(args) as graphql.ExecutionResult },
};

describe.each(Object.entries(ENGINES))('engine: %s', (_name, engine) => {
  const introspect = async ({ post }: Service, scopes?: string): Promise<string> =>
    printSchema(buildClientSchema((await post(getIntrospectionQuery(), scopes)).body.data as never));

  it('an argument requires what a hidden field of an interface requires of it', async () => {
    const of = build(`
      interface Node { notes(drafts: Boolean ${ADMIN}): String }
      type Post implements Node { notes(drafts: Boolean): String }
      type Invoice implements Node { notes(drafts: Boolean): String @requiresScopes(scopes: [["billing"]]) }
      type Query { post: Post node: Node }`);
    const post = { __typename: 'Post', notes: ({ drafts = false }) => (drafts ? 'DRAFTS' : 'NOTES') };
    const service = await create(of, { ...engine, rootValue: { post, node: post } });
    for (const query of [
      '{ post { notes(drafts: true) } }',
      'query($x: Boolean) { post { notes(drafts: $x) } }',
    ]) {
      const refused = await service.post(query, 'x', { variables: { x: true } });
      expect(refused.text).not.toContain('DRAFTS');
      expect(refused.status).toBe(400);
    }
    expect((await service.post('{ post { notes } }', 'x')).body.data).toEqual({ post: { notes: 'NOTES' } });
    const allowed = await service.post('{ post { notes(drafts: true) } }', 'admin');
    expect(allowed.body.data).toEqual({ post: { notes: 'DRAFTS' } });
  });

  it.each(['reject', 'null'] as const)(
    'a scope that is lost after the schema was chosen is missing for what a hidden interface requires, mode %s',
    async (mode) => {
      const of = build(`
        interface Hidden ${ADMIN} { x(a: Int): String }
        interface Node { x(a: Int @requiresScopes(scopes: [["a"]])): String @requiresScopes(scopes: [["b"]]) }
        type T implements Node { x(a: Int): String }
        type U implements Node & Hidden { x(a: Int): String }
        type Query { t: T }`);
      const of2 = (_: unknown, { context }: { context: unknown }) =>
        context === undefined ? ['a', 'b'] : held;
      let held = ['a', 'b'];
      const { post } = await create(of, {
        ...engine,
        rootValue: { t: { x: 'SECRET' } },
        context: {},
        auth: { mode, scopes: of2 },
      });
      expect((await post('{ t { x(a: 1) } }')).text).toContain('SECRET');
      for (held of [['a'], ['b'], []]) expect(codes(await post('{ t { x(a: 1) } }'))).toEqual(['FORBIDDEN']);
    },
  );

  it('resolvers receive the defaults of hidden arguments and input fields', async () => {
    const of = build(`
      enum Status { DRAFT PUBLISHED }
      input Page { size: Int! = 5 ${ADMIN} after: String }
      input Filter { status: Status = PUBLISHED ${ADMIN} text: String page: Page = {} }
      type Query {
        posts(filter: Filter, limit: Int! = 10 ${ADMIN}): String
        all(filter: Filter = { status: DRAFT, text: "t" }): String
      }`);
    const show = (args: object) => JSON.stringify(args);
    const service = await create(of, { ...engine, rootValue: { posts: show, all: show } });
    const data = async (query: string, scopes: string, variables = {}) => {
      const { body } = await service.post(query, scopes, { variables });
      return JSON.parse(String(Object.values(body.data ?? {})[0]));
    };
    const filter = { status: 'PUBLISHED', page: { size: 5 } };
    for (const scopes of ['x', 'admin']) {
      expect(await data('{ posts(filter: {}) }', scopes)).toEqual({ filter, limit: 10 });
      expect(await data('query($f: Filter) { posts(filter: $f) }', scopes, { f: {} })).toEqual({
        filter,
        limit: 10,
      });
      expect(await data('query($p: Page) { posts(filter: { page: $p }) }', scopes, { p: {} })).toEqual({
        filter,
        limit: 10,
      });
      expect(await data('{ all }', scopes)).toEqual({ filter: { ...filter, status: 'DRAFT', text: 't' } });
    }
    const seen = await introspect(service, 'x');
    expect(seen).not.toMatch(/status|DRAFT|limit|size/);
    expect(seen).toMatch(/posts\(filter: Filter\)/);
    expect(await introspect(service, 'admin')).toMatch(/limit: Int! = 10/);
  });

  it('costs and the sizes of lists do not depend on what is hidden', async () => {
    const of = buildSchema(
      `${authTypeDefs}
      directive @listSize(slicingArguments: [String!], requireOneSlicingArgument: Boolean) on FIELD_DEFINITION
      directive @cost(weight: String!) on FIELD_DEFINITION | ARGUMENT_DEFINITION
      input Page { size: Int = 7 ${ADMIN} after: String }
      interface Node { x: Int @cost(weight: "3") }
      type Post implements Node { x: Int @cost(weight: "3") }
      type Other implements Node { x: Int ${ADMIN} }
      type Query {
        posts(page: Page = {}, heavy: Int = 1 @cost(weight: "2") ${ADMIN}): [Post!]!
          @listSize(slicingArguments: ["page.size"], requireOneSlicingArgument: false)
      }`,
    );
    const options = {
      ...engine,
      rootValue: { posts: [{ x: 1 }] },
      cost: { maxCost: 500 },
    } as const;
    const [part, whole] = [
      await create(of, options),
      await create(of, { ...options, auth: { schemaFor: undefined } }),
    ];
    for (const query of [
      '{ posts { x } }',
      '{ posts(page: {}) { x } }',
      '{ posts(page: { after: "a" }) { x } }',
    ]) {
      const [one, other] = [await part.post(query, 'x'), await whole.post(query, 'x')];
      expect(one.body).toEqual({ data: { posts: [{ x: 1 }] } });
      expect(one.text).toBe(other.text);
      const costs = ({ headers }: typeof one) => [...headers].filter(([name]) => name.includes('cost'));
      expect(costs(one)).toEqual(costs(other));
    }
  });

  it.each(['reject', 'null'] as const)('values of a hidden type are refused, mode %s', async (mode) => {
    const of = build(`
      type Draft ${ADMIN} { text: String }
      type Post { title: String }
      union Item = Draft | Post
      interface Node { id: ID }
      type Secret implements Node ${ADMIN} { id: ID }
      type Open implements Node { id: ID }
      type Query { items: [Item] nodes: [Node] }`);
    for (const [name, member] of [
      ['Draft', 'text'],
      ['Post', 'title'],
      ['Secret', 'secret'],
      ['Open', 'open'],
    ] as const) {
      const type = of.getType(name) as GraphQLObjectType;
      type.isTypeOf = (value) => member in (value as object);
    }
    const rootValue = {
      items: [{ text: 'DRAFT' }, { title: 'POST' }],
      nodes: [
        { secret: 1, id: 'SECRET' },
        { open: 1, id: 'OPEN' },
      ],
    };
    const { post } = await create(of, { ...engine, rootValue, auth: { mode } });
    for (const [query, data] of [
      [
        '{ items { __typename ... on Post { title } } }',
        { items: [null, { __typename: 'Post', title: 'POST' }] },
      ],
      ['{ nodes { __typename id } }', { nodes: [null, { __typename: 'Open', id: 'OPEN' }] }],
    ] as const) {
      const answer = await post(query, 'x');
      expect(codes(answer)).toEqual(['FORBIDDEN']);
      expect(answer.body.data).toEqual(mode === 'null' ? data : undefined);
      expect((await post(query, 'admin')).body).not.toHaveProperty('errors');
    }
  });

  it('a value of a type without visible fields is what it is in the whole schema', async () => {
    const of = build(`
      type Draft { text: String ${ADMIN} }
      type Post { title: String }
      union Item = Draft | Post
      type Query { items: [Item] }`);
    const rootValue = { items: [{ __typename: 'Draft' }, { __typename: 'Post', title: 'POST' }] };
    const { post } = await create(of, { ...engine, rootValue });
    expect((await post('{ items { ... on Post { title } } }', 'x')).body).toEqual({
      data: { items: [{}, { title: 'POST' }] },
    });
    expect((await post('{ items { ... on Draft { text } } }', 'x')).status).toBe(400);
  });

  it('nothing tells the name of a hidden argument or input field', async () => {
    const of = build(`
      input Filter { published: Boolean publisher: String ${ADMIN} }
      input Needs { publisher: String! ${ADMIN} }
      directive @tagged(filter: Filter, needs: Needs) on FIELD
      directive @needed(needs: Needs!) on FIELD
      type Query { posts(filter: Filter, drafted: Boolean, drafts: Boolean ${ADMIN}, needs: Needs): String }`);
    const service = await create(of, { ...engine, rootValue: { posts: 'POSTS' } });
    const seen = await introspect(service, 'x');
    expect(seen).not.toMatch(/publisher|drafts|needs/i);
    expect(seen).toContain('drafted: Boolean');
    expect(seen).toContain('directive @tagged(filter: Filter)');
    const variables = { f: { publisher: 'x' } };
    for (const [query, hidden] of [
      ['{ posts(draft: true) }', /drafts/],
      ['{ posts(drafts: true) }', /permission/],
      ['{ posts(filter: { publishe: true }) }', /publisher/],
      ['{ posts(filter: { publisher: "x" }) }', /permission/],
      ['query($f: Filter) { posts(filter: $f) }', /permission|FORBIDDEN/],
      ['query($f: Filter = { publisher: "x" }) { posts(filter: $f) }', /permission/],
      ['{ posts @tagged(filter: { publisher: "x" }) }', /permission/],
    ] as const) {
      const answer = await service.post(query, 'x', { variables });
      expect(answer.status).toBe(400);
      expect(answer.text).not.toMatch(hidden);
    }
    const misspelt = await service.post('query($f: Filter) { posts(filter: $f) }', 'x', {
      variables: { f: { publishe: 'x' } },
    });
    expect(misspelt.status).toBe(400);
    expect(misspelt.text).not.toContain('publisher');
    const allowed = await service.post('query($f: Filter) { posts(filter: $f, drafts: true) }', 'admin', {
      variables,
    });
    expect(allowed.body).toEqual({ data: { posts: 'POSTS' } });
  });

  it('introspection beside other fields, and below a field of the query type, shows what the caller sees', async () => {
    const of = build(`
      interface Node { id: ID }
      type Post implements Node { id: ID }
      type Secret implements Node ${ADMIN} { id: ID }
      type Query { self: Query nodes: [Node] secret: String ${ADMIN} }`);
    const { post } = await create(of, {
      ...engine,
      rootValue: { nodes: [{ __typename: 'Post', id: 'ID' }], self: {} },
    });
    const query = `{
      nodes { id }
      self { again: __schema { types { name } } }
      __schema { types { name } queryType { fields { name } } }
      node: __type(name: "Node") { possibleTypes { name } }
      secret: __type(name: "Secret") { name }
      ...F
    } fragment F on Query { root: __typename }`;
    const { body, text } = await post(query, 'x');
    expect(body).not.toHaveProperty('errors');
    expect(body.data).toMatchObject({
      nodes: [{ id: 'ID' }],
      node: { possibleTypes: [{ name: 'Post' }] },
      secret: null,
      root: 'Query',
    });
    expect(text).not.toMatch(/Secret|"secret"\}/);
    expect((await post(query, 'admin')).text).toMatch(/Secret/);
  });

  it('a caller who sees nothing may still ask for the placeholder', async () => {
    const of = build(`type Query { a: String ${ADMIN} } type Mutation { write: String }`);
    const { post } = await create(of, { ...engine, rootValue: { write: 'WRITTEN' } });
    expect((await post('{ _nothing __typename }', 'x')).body).toEqual({
      data: { _nothing: null, __typename: 'Query' },
    });
    expect((await post('mutation { write }', 'x')).body).toEqual({ data: { write: 'WRITTEN' } });
    expect((await post('{ a }', 'x')).status).toBe(400);
  });

  it('a schema that the application reduces itself has names only, too', async () => {
    const of = build(`
      interface Node { x: String ${ADMIN} }
      type Post implements Node { x: String }
      type Query { post: Post }`);
    const part = buildSchema('type Post { x: String } type Query { post: Post }');
    const { post } = await create(of, {
      ...engine,
      rootValue: { post: { x: 'SECRET' } },
      auth: { schemaFor: () => part },
    });
    expect(codes(await post('{ post { x } }', 'x'))).toEqual(['FORBIDDEN']);
    expect((await post('{ post { x } }', 'admin')).text).toContain('SECRET');
  });

  it('the response cache does not send the introspection of one caller to another', async () => {
    const of = build(`type Query { open: String secret: String ${ADMIN} }`);
    const { url } = await create(of, {
      ...engine,
      rootValue: { open: 'OPEN' },
      httpCache: { defaultMaxAge: 60 },
      responseCache: { key: () => '' },
    });
    const ask = async (scopes: string) => {
      const target = `${url}?query=${encodeURIComponent('{ open __type(name: "Query") { fields { name } } }')}`;
      return (await fetch(target, { headers: { 'x-scopes': scopes } })).text();
    };
    expect(await ask('admin')).toContain('secret');
    expect(await ask('x')).not.toContain('secret');
  });
});

it.each([
  ['a field', 'type Query { a: Int b: Int }', 'Query.b'],
  ['another type of a field', 'type Query { a: String }', 'Query.a'],
  ['an argument', 'type Query { a(x: Int): Int }', 'Query.a(x:)'],
  ['a type', 'type Query { a: Int } type Other { x: Int }', 'Other'],
  ['another kind of a type', 'type Query { a: Int } interface T { x: Int }', 'T'],
  ['a value', 'type Query { a: Int } enum E { X Y }', 'E.Y'],
  ['another root type', 'schema { query: T } type T { x: Int }', 'T'],
])(
  'schemaFor that returns a schema with %s that the whole one lacks is an error of the server',
  async (_, sdl, name) => {
    const errors: unknown[] = [];
    const service = await serve(
      {
        rootValue: { a: 1 },
        onError: (error) => errors.push(error),
        auth: { scopes: scopesOf, schemaFor: () => buildSchema(sdl) },
      },
      buildSchema(`${authTypeDefs} enum E { X } type T { x: Int } type Query { a: Int @authenticated }`),
    );
    services.push(service);
    expect((await service.post('{ a }', 'x')).status).toBe(500);
    expect(errors).toEqual([expect.objectContaining({ code: 'ERR_OPTION' })]);
    expect(String(errors[0])).toContain(`"${name}"`);
  },
);

it('a part is valid where an interface that nothing implements requires something', () => {
  const whole = build(`
    interface A { x(a: Int ${ADMIN}): Int y: Int ${ADMIN} z: Int }
    interface B implements A { x(a: Int): Int y: Int z: Int }
    type Query { a: A b: B }`);
  expect(validateSchema(visibleSchema(whole, ['x']))).toEqual([]);
});
