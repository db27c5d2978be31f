/** @tags once */
import { buildSubgraphSchema } from '@apollo/subgraph';
import { GraphQLError, type GraphQLSchema, parse, printSchema, validateSchema } from 'graphql';
import { visibleSchema } from '../../middleware/auth.ts';
import { graphqlHTTP, resolveReferences } from '../../middleware/graphql.ts';
import { inject } from '../../middleware/testing.ts';
import { codes, type Service, scopesOf, serve } from '../auth/service.ts';

// The directives of Apollo Federation in a subgraph, with their own definitions. A router asks for `_entities`.

const users = [{ id: '1', name: 'NAME', email: 'EMAIL' }];
const schema = buildSubgraphSchema([
  {
    typeDefs: parse(`
    extend schema @link(url: "https://specs.apollo.dev/federation/v2.9",
      import: ["@key", "@authenticated", "@requiresScopes", "@policy"])
    type Query { user: User audit: Audit }
    type User @key(fields: "id") {
      id: ID! name: String @authenticated email: String @requiresScopes(scopes: [["email"]])
    }
    type Audit @key(fields: "id") @requiresScopes(scopes: [["audit"]]) { id: ID! text: String }
    type Plain @key(fields: "id") { id: ID! text: String @policy(policies: [["paid"]]) }
  `),
    resolvers: {
      Query: { user: () => users[0], audit: () => ({ id: '1', text: 'AUDIT' }) },
      User: { __resolveReference: ({ id }: { id: string }) => users.find((user) => user.id === id) },
      Audit: { __resolveReference: ({ id }: { id: string }) => ({ id, text: 'AUDIT' }) },
      Plain: { __resolveReference: async ({ id }: { id: string }) => ({ id, text: 'PLAIN' }) },
    },
  },
]) as GraphQLSchema;

const QUERY = `query ($of: [_Any!]!) {
  _entities(representations: $of) {
    __typename ... on User { id name email } ... on Audit { text } ... on Plain { text }
  }
}`;
const of = ['User', 'Audit', 'Plain'].map((__typename) => ({ __typename, id: '1' }));

async function create(engine: 'compiled' | 'graphql-js', mode: 'reject' | 'null'): Promise<Service> {
  const policies = (names: readonly string[], { headers }: { headers: Record<string, unknown> }) =>
    String(headers['x-scopes']).includes('email') ? names : [];
  return serve({ engine, auth: { scopes: scopesOf, policies, mode } }, schema);
}

describe.each(['compiled', 'graphql-js'] as const)('%s', (engine) => {
  it("mode null: the type and fields of each entity decide about the caller's view of it", async () => {
    const { post } = await create(engine, 'null');
    const entitiesOf = async (scopes?: string) =>
      (await post(QUERY, scopes, { variables: { of } })).body.data?.['_entities'];
    const plain = { __typename: 'Plain', text: null };
    const user = { __typename: 'User', id: '1', name: null, email: null };
    expect(await entitiesOf()).toEqual([user, null, plain]);
    expect(await entitiesOf('')).toEqual([{ ...user, name: 'NAME' }, null, plain]);
    expect(await entitiesOf('email audit')).toEqual([
      { ...user, name: 'NAME', email: 'EMAIL' },
      { __typename: 'Audit', text: 'AUDIT' },
      { ...plain, text: 'PLAIN' },
    ]);
  });

  it('mode reject: entities are refused by the fields that are selected, and by their types', async () => {
    const { post } = await create(engine, 'reject');
    const refused = await post(QUERY, 'audit', { variables: { of } });
    expect([refused.status, ...codes(refused)]).toEqual([403, 'FORBIDDEN', 'FORBIDDEN']);
    const typeOnly = 'query ($of: [_Any!]!) { _entities(representations: $of) { __typename } }';
    expect((await post(typeOnly, 'email', { variables: { of } })).status).toBe(403);
    expect((await post(typeOnly, 'email', { variables: { of: [of[0]] } })).status).toBe(200);
    expect((await post(typeOnly, 'audit', { variables: { of } })).status).toBe(200);
  });

  it('the router reads the SDL with the directives', async () => {
    const { post } = await create(engine, 'reject');
    const { body } = await post('{ _service { sdl } }');
    expect(JSON.stringify(body.data)).toContain('@requiresScopes(scopes: [[\\"audit\\"]])');
  });
});

it.each([
  ['["@key"]', '@federation__authenticated'],
  ['["@key", { name: "@authenticated", as: "@signedIn" }]', '@signedIn'],
])('a directive with another name is an error, because it would require nothing: %s', async (names, use) => {
  const typeDefs = parse(`
    extend schema @link(url: "https://specs.apollo.dev/federation/v2.9", import: ${names})
    type Query { me: String ${use} }
  `);
  const renamed = buildSubgraphSchema([{ typeDefs }]) as GraphQLSchema;
  await expect(serve({ auth: { scopes: scopesOf } }, renamed)).rejects.toThrow(
    expect.objectContaining({ code: 'ERR_OPTION' }),
  );
});

it('the visible part of a subgraph is a valid schema', () => {
  const visible = visibleSchema(schema, []);
  expect(validateSchema(visible)).toEqual([]);
  expect(printSchema(visible)).not.toMatch(/Audit|email/);
  expect(printSchema(visible)).toContain('_entities');
});

describe.each(['compiled', 'graphql-js'] as const)('resolveReferences, engine %s', (engine) => {
  const calls: { ids: string[]; context: unknown }[] = [];
  const load = resolveReferences((users: readonly { id: string }[], context: { wrong?: boolean }) => {
    calls.push({ ids: users.map(({ id }) => id), context });
    if (context.wrong) return [];
    return users.map(({ id }) => {
      if (id === '3') return new GraphQLError('No access');
      return id === '2' ? null : { id, name: `NAME ${id}` };
    });
  });
  const subgraph = buildSubgraphSchema([
    {
      typeDefs: parse(`
        extend schema @link(url: "https://specs.apollo.dev/federation/v2.9", import: ["@key"])
        type Query { hello: String }
        type User @key(fields: "id") { id: ID! name: String }
        type Plain @key(fields: "id") { id: ID! }
      `),
      resolvers: { User: { __resolveReference: load } },
    },
  ]) as GraphQLSchema;
  const ask = async (ids: readonly string[], context: object, alias = '') => {
    const handler = graphqlHTTP(subgraph, { engine, context: () => context, onError: false });
    const query = `query ($of: [_Any!]!) { _entities(representations: $of) { ...F } ${alias} }
      fragment F on _Entity { ... on User { id name } ... on Plain { id } }`;
    const variables = { of: ids.map((id) => ({ __typename: id === '9' ? 'Plain' : 'User', id })) };
    return inject(handler, { query, variables });
  };

  beforeEach(() => {
    calls.length = 0;
  });

  it('one call gets all references to a type, and each gets its own entity, null or error', async () => {
    const { data, errors } = await ask(['1', '2', '9', '3', '1'], {});
    const one = { id: '1', name: 'NAME 1' };
    expect(data).toEqual({ _entities: [one, null, { id: '9' }, null, one] });
    expect(errors?.map(({ message, path }) => [message, path])).toEqual([['No access', ['_entities', 3]]]);
    expect(calls.map(({ ids }) => ids)).toEqual([['1', '2', '3', '1']]);
  });

  it('requests at the same time, and two uses of the field, have calls of their own', async () => {
    const contexts = [{ user: 'a' }, { user: 'b' }];
    const again = 'again: _entities(representations: $of) { ... on User { id } }';
    await Promise.all([ask(['1'], contexts[0] as object), ask(['1', '2'], contexts[1] as object, again)]);
    const seen = calls.map(({ ids, context }) => [ids.length, contexts.indexOf(context as { user: string })]);
    expect(seen.sort()).toEqual([
      [1, 0],
      [2, 1],
      [2, 1],
    ]);
  });

  it('a list of another length is a masked error of each entity', async () => {
    const { data, errors } = await ask(['1', '4'], { wrong: true });
    expect(data).toEqual({ _entities: [null, null] });
    expect(errors?.map(({ message }) => message)).toEqual(['Internal server error', 'Internal server error']);
  });
});

it('resolveReferences refuses another value than a function', () => {
  expect(() => Reflect.apply(resolveReferences, undefined, [[]])).toThrow(
    /resolveReferences: argument "resolveMany" is .*; accepted: a function \(references, context, info\)/,
  );
});

it("entities have the shortest lifetime of the hints of their references' types", async () => {
  const cached = buildSubgraphSchema([
    {
      typeDefs: parse(`
        extend schema @link(url: "https://specs.apollo.dev/federation/v2.9", import: ["@key"])
        directive @cacheControl(maxAge: Int) on OBJECT
        type Query { hello: String }
        type User @key(fields: "id") @cacheControl(maxAge: 60) { id: ID! }
        type Book @key(fields: "id") @cacheControl(maxAge: 30) { id: ID! }
        type Draft @key(fields: "id") @cacheControl(maxAge: 0) { id: ID! }
        type Plain @key(fields: "id") { id: ID! }
      `),
    },
  ]) as GraphQLSchema;
  const handler = graphqlHTTP(cached, { httpCache: true });
  const query = `query ($of: [_Any!]!) { _entities(representations: $of) { __typename
    ... on User { id } ... on Book { id } ... on Draft { id } } }`;
  const lifetimeOf = async (...types: string[]) => {
    const variables = { of: types.map((__typename) => ({ __typename, id: '1' })) };
    return (await inject(handler, { method: 'GET', query, variables })).headers['cache-control'];
  };
  expect(await lifetimeOf('User')).toBe('public, max-age=60');
  expect(await lifetimeOf('User', 'Book', 'Plain')).toBe('public, max-age=30');
  expect(await lifetimeOf('User', 'Draft')).toBe('no-store');
});

it.each([
  [
    'representations',
    'query ($of: [_Any!]!) { _entities(representations: $of) { ... on User { friend { id } } } }',
  ],
  [
    'aliases',
    'query ($of: [_Any!]!) { a: _entities(representations: $of) { ...F } } fragment F on User { friend { id } }',
  ],
])('entities cost as much as there are representations: %s', async (_name, query) => {
  const priced = buildSubgraphSchema([
    {
      typeDefs: parse(`
        extend schema @link(url: "https://specs.apollo.dev/federation/v2.9", import: ["@key"])
        type Query { hello: String }
        type User @key(fields: "id") { id: ID! friend: User }
      `),
    },
  ]) as GraphQLSchema;
  const handler = graphqlHTTP(priced, { cost: { maxCost: 100 }, onError: false });
  const ask = async (length: number) => {
    const of = Array.from({ length }, (_, id) => ({ __typename: 'User', id: String(id) }));
    const { headers, errors } = await inject(handler, { query, variables: { of } });
    return [headers['graphql-cost'], errors?.[0]?.extensions?.['code']];
  };
  expect(await ask(1)).toEqual(['2;max=100', undefined]);
  expect(await ask(50)).toEqual(['100;max=100', undefined]);
  expect(await ask(3000)).toEqual(['6000;max=100', 'COST_LIMIT']);
});
