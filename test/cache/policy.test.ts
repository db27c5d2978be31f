/** @tags graphql */
import type { GraphQLObjectType } from 'graphql';
import type { CacheControlOptions } from '../../middleware/index.ts';
import { appOf, cacheControlOf, ENGINES, get, type Resolvers, schemaOf } from './service.ts';

const droid = { id: '1', name: 'R2', kind: 'astromech' };

/** A rule of Apollo's cache control: the schema, the query, and the header. */
interface Rule {
  readonly rule: string;
  readonly schema: string;
  readonly query: string;
  readonly expected: string;
  readonly defaultMaxAge?: number;
  readonly resolvers?: Resolvers;
}

const DROID = 'type Droid { id: ID! name: String! }';
const ONE: Resolvers = { Query: { droid: () => droid } };

const HINTS: Rule[] = [
  {
    rule: 'a root field of an object type without a hint is not cacheable',
    schema: `type Query { droid: Droid } ${DROID}`,
    query: '{ droid { name } }',
    expected: 'no-store',
    resolvers: ONE,
  },
  {
    rule: 'a root field of a scalar type without a hint is not cacheable',
    schema: 'type Query { name: String }',
    query: '{ name }',
    expected: 'no-store',
  },
  {
    rule: 'defaultMaxAge applies to a field of an object type without a hint',
    schema: `type Query { droid: Droid } ${DROID}`,
    query: '{ droid { name } }',
    expected: 'public, max-age=10',
    defaultMaxAge: 10,
    resolvers: ONE,
  },
  {
    rule: 'defaultMaxAge applies to a root field of a scalar type',
    schema: 'type Query { name: String }',
    query: '{ name }',
    expected: 'public, max-age=10',
    defaultMaxAge: 10,
  },
  {
    rule: 'the hint of a field precedes defaultMaxAge',
    schema: `type Query { droid: Droid @cacheControl(maxAge: 60) } ${DROID}`,
    query: '{ droid { name } }',
    expected: 'public, max-age=60',
    defaultMaxAge: 10,
    resolvers: ONE,
  },
  {
    rule: 'the hint of a type applies to fields that return it',
    schema: 'type Query { droid: Droid } type Droid @cacheControl(maxAge: 60) { name: String! }',
    query: '{ droid { name } }',
    expected: 'public, max-age=60',
    resolvers: ONE,
  },
  {
    rule: 'the hint of a type applies to non-null lists of it',
    schema: 'type Query { droids: [Droid!]! } type Droid @cacheControl(maxAge: 60) { name: String! }',
    query: '{ droids { name } }',
    expected: 'public, max-age=60',
    resolvers: { Query: { droids: () => [droid, droid] } },
  },
  {
    rule: 'the hint of a type extension applies',
    schema: `type Query { droid: Droid } ${DROID} extend type Droid @cacheControl(maxAge: 60)`,
    query: '{ droid { name } }',
    expected: 'public, max-age=60',
    defaultMaxAge: 10,
    resolvers: ONE,
  },
  {
    rule: 'maxAge 0 of a type precedes defaultMaxAge',
    schema: 'type Query { droid: Droid } type Droid @cacheControl(maxAge: 0) { name: String! }',
    query: '{ droid { name } }',
    expected: 'no-store',
    defaultMaxAge: 10,
    resolvers: ONE,
  },
  {
    rule: 'the maxAge of a field precedes that of its type',
    schema:
      'type Query { droid: Droid @cacheControl(maxAge: 120) } type Droid @cacheControl(maxAge: 60) { name: String! }',
    query: '{ droid { name } }',
    expected: 'public, max-age=120',
    resolvers: ONE,
  },
  {
    rule: 'a field with maxAge only has the scope of its type',
    schema:
      'type Query { droid: Droid @cacheControl(maxAge: 120) } type Droid @cacheControl(maxAge: 60, scope: PRIVATE) { name: String! }',
    query: '{ droid { name } }',
    expected: 'private, max-age=120',
    resolvers: ONE,
  },
  {
    rule: 'the scope of a field precedes that of its type',
    schema:
      'type Query { droid: Droid @cacheControl(scope: PRIVATE) } type Droid @cacheControl(maxAge: 60, scope: PUBLIC) { name: String! }',
    query: '{ droid { name } }',
    expected: 'private, max-age=60',
    resolvers: ONE,
  },
  {
    rule: 'the lowest maxAge of all fields wins',
    schema:
      'type Query { droid: Droid @cacheControl(maxAge: 120) } type Droid { id: ID! name: String! @cacheControl(maxAge: 30) }',
    query: '{ droid { id name } }',
    expected: 'public, max-age=30',
    resolvers: ONE,
  },
  {
    rule: 'leaf fields without a hint have the lifetime of their parents',
    schema:
      'type Query { droid: Droid @cacheControl(maxAge: 120) } type Droid { id: ID! name: String! @cacheControl(maxAge: 30) }',
    query: '{ droid { id } }',
    expected: 'public, max-age=120',
    resolvers: ONE,
  },
  {
    rule: 'one PRIVATE field makes the result private',
    schema:
      'type Query { droid: Droid @cacheControl(maxAge: 120) } type Droid { id: ID! name: String! @cacheControl(scope: PRIVATE) }',
    query: '{ droid { id name } }',
    expected: 'private, max-age=120',
    resolvers: ONE,
  },
  {
    rule: 'one field of an object type without a hint makes the result uncacheable',
    schema:
      'type Query { droid: Droid @cacheControl(maxAge: 120) } type Droid { name: String! owner: Owner } type Owner { name: String }',
    query: '{ droid { name owner { name } } }',
    expected: 'no-store',
    resolvers: { Query: { droid: () => ({ ...droid, owner: { name: 'Luke' } }) } },
  },
  {
    rule: 'a second root field without a hint makes the result uncacheable',
    schema: 'type Query { a: Int @cacheControl(maxAge: 60) b: Int }',
    query: '{ a b }',
    expected: 'no-store',
  },
  {
    rule: 'aliases of a field have its hint',
    schema: 'type Query { a: Int @cacheControl(maxAge: 60) }',
    query: '{ x: a y: a }',
    expected: 'public, max-age=60',
  },
  {
    rule: '__typename changes nothing',
    schema: `type Query { droid: Droid @cacheControl(maxAge: 60) } ${DROID}`,
    query: '{ __typename droid { __typename } }',
    expected: 'public, max-age=60',
    resolvers: ONE,
  },
  {
    rule: 'a query of __typename alone is not cacheable',
    schema: 'type Query { a: Int }',
    query: '{ __typename }',
    expected: 'no-store',
    defaultMaxAge: 60,
  },
  {
    rule: 'introspection is not cacheable',
    schema: 'type Query { a: Int }',
    query: '{ __schema { queryType { name } } a }',
    expected: 'no-store',
    defaultMaxAge: 60,
  },
];

const NAMED = `
  interface Named @cacheControl(maxAge: 60) { name: String! }
  type Droid implements Named @cacheControl(maxAge: 30) { id: ID! name: String! }
  type Alien implements Named { id: ID! name: String! @cacheControl(maxAge: 5) }
  union Being @cacheControl(maxAge: 40) = Droid | Alien
  type Query { named: Named droid: Droid alien: Alien being: Being }
`;
const BEINGS: Resolvers = {
  Query: { named: () => droid, droid: () => droid, alien: () => droid, being: () => droid },
  Named: { __resolveType: () => 'Droid' },
  Being: { __resolveType: () => 'Droid' },
};

const ABSTRACT: Rule[] = [
  {
    rule: 'a field of an interface type has the hint of the interface',
    schema: NAMED,
    query: '{ named { ... on Droid { id name } } }',
    expected: 'public, max-age=60',
    resolvers: BEINGS,
  },
  {
    rule: 'a field of an object type has the hint of the object type',
    schema: NAMED,
    query: '{ droid { id name } }',
    expected: 'public, max-age=30',
    resolvers: BEINGS,
  },
  {
    rule: 'an object type does not have the hint of its interface',
    schema: NAMED,
    query: '{ alien { id } }',
    expected: 'public, max-age=10',
    defaultMaxAge: 10,
    resolvers: BEINGS,
  },
  {
    rule: 'a field of a union type has the hint of the union',
    schema: NAMED,
    query: '{ being { ... on Droid { id } } }',
    expected: 'public, max-age=40',
    resolvers: BEINGS,
  },
];

const INHERIT = `
  type Query {
    top: Top @cacheControl(maxAge: 1000)
    reader: Reader @cacheControl(maxAge: 40)
    cachedBook: Book @cacheControl(maxAge: 60)
    book: Book
    private: Private @cacheControl(maxAge: 500)
    byType: ByType @cacheControl(maxAge: 500)
    foo: Foo @cacheControl(maxAge: 5)
    typed: Typed @cacheControl(maxAge: 700)
  }
  type Top { droid: Droid @cacheControl(inheritMaxAge: true) droids: [Droid] @cacheControl(inheritMaxAge: true) }
  type Droid { uncached: Droid scalar: String cached: String @cacheControl(maxAge: 30) }
  type Book { title: String cachedTitle: String @cacheControl(maxAge: 30) }
  type Reader { book: Book @cacheControl(inheritMaxAge: true) }
  type Private { foo: Bar @cacheControl(inheritMaxAge: true, scope: PRIVATE) }
  type ByType { inherited: Inherited }
  type Inherited @cacheControl(inheritMaxAge: true) { scalar: String }
  type Foo { bar: Bar @cacheControl(inheritMaxAge: true) defaultBar: Bar }
  type Bar { scalar: String cachedScalar: String @cacheControl(maxAge: 2) }
  type Typed { aged: Aged @cacheControl(inheritMaxAge: true) }
  type Aged @cacheControl(maxAge: 20) { scalar: String }
`;

const INHERITANCE: Rule[] = [
  ['{ top { droid { scalar } } }', 'public, max-age=1000'],
  ['{ top { droid { cached } } }', 'public, max-age=30'],
  ['{ top { droid { uncached { cached } cached } } }', 'no-store'],
  ['{ top { droids { cached } } }', 'public, max-age=30'],
  ['{ top { droids { uncached { cached } cached } } }', 'no-store'],
  ['{ book { cachedTitle } }', 'no-store'],
  ['{ cachedBook { title } }', 'public, max-age=60'],
  ['{ cachedBook { cachedTitle } }', 'public, max-age=30'],
  ['{ reader { book { title } } }', 'public, max-age=40'],
  ['{ reader { book { cachedTitle } } }', 'public, max-age=30'],
  ['{ private { foo { cachedScalar } } }', 'private, max-age=2'],
  ['{ byType { inherited { scalar } } }', 'public, max-age=500'],
  ['{ foo { defaultBar { scalar } } }', 'no-store'],
  ['{ foo { defaultBar { cachedScalar } } }', 'no-store'],
  ['{ foo { bar { scalar } } }', 'public, max-age=5'],
  ['{ foo { bar { cachedScalar } } }', 'public, max-age=2'],
  // The lifetime of the type precedes inheritMaxAge of the field.
  ['{ typed { aged { scalar } } }', 'public, max-age=20'],
].map(([query, expected]) => ({
  rule: `inheritMaxAge: ${query}`,
  schema: INHERIT,
  query: query as string,
  expected: expected as string,
}));

type Scope = 'PUBLIC' | 'PRIVATE' | undefined;
const SCOPES: readonly Scope[] = [undefined, 'PUBLIC', 'PRIVATE'];
const scoped = (scope: Scope, more = ''): string => {
  const words = [more, scope === undefined ? '' : `scope: ${scope}`].filter(Boolean);
  return words.length === 0 ? '' : `@cacheControl(${words.join(', ')})`;
};

/** The scope of a field precedes that of its type, and one private field makes the result private. */
const SCOPE_RULES: Rule[] = SCOPES.flatMap((field) =>
  SCOPES.flatMap((type) =>
    SCOPES.flatMap((leaf) =>
      ['', 'inheritMaxAge: true'].map((inherit): Rule => {
        const isPrivate = (field ?? type) === 'PRIVATE' || leaf === 'PRIVATE';
        return {
          rule: `the scopes ${field} of a field, ${type} of its type and ${leaf} of a leaf${inherit && ', with inheritMaxAge'}`,
          schema: `
            type Query { top: Top @cacheControl(maxAge: 50) }
            type Top { droid: Droid ${scoped(field, inherit || 'maxAge: 40')} }
            type Droid ${scoped(type)} { name: String ${scoped(leaf)} }`,
          query: '{ top { droid { name } } }',
          expected: `${isPrivate ? 'private' : 'public'}, max-age=${inherit === '' ? 40 : 50}`,
        };
      }),
    ),
  ),
);

const INHERITED_SCOPES: Rule[] = [
  {
    rule: 'inheritMaxAge of a type may have a scope',
    schema: `type Query { top: Top @cacheControl(maxAge: 50) } type Top { droid: Droid }
      type Droid @cacheControl(inheritMaxAge: true, scope: PRIVATE) { name: String }`,
    query: '{ top { droid { name } } }',
    expected: 'private, max-age=50',
  },
  {
    rule: 'the scope of a field precedes that of a type with inheritMaxAge',
    schema: `type Query { top: Top @cacheControl(maxAge: 50) } type Top { droid: Droid @cacheControl(scope: PUBLIC) }
      type Droid @cacheControl(inheritMaxAge: true, scope: PRIVATE) { name: String }`,
    query: '{ top { droid { name } } }',
    expected: 'public, max-age=50',
  },
  {
    rule: 'the maxAge of a field precedes inheritMaxAge of its type',
    schema: `type Query { top: Top @cacheControl(maxAge: 50) } type Top { droid: Droid @cacheControl(maxAge: 20) }
      type Droid @cacheControl(inheritMaxAge: true) { name: String }`,
    query: '{ top { droid { name } } }',
    expected: 'public, max-age=20',
  },
  {
    rule: 'inheritMaxAge has no effect on a root field, which has no parent',
    schema: `type Query { droid: Droid @cacheControl(inheritMaxAge: true) } ${DROID}`,
    query: '{ droid { name } }',
    expected: 'public, max-age=10',
    defaultMaxAge: 10,
    resolvers: ONE,
  },
  {
    rule: 'inheritMaxAge of a type has no effect on a root field',
    schema: 'type Query { droid: Droid } type Droid @cacheControl(inheritMaxAge: true) { name: String! }',
    query: '{ droid { name } }',
    expected: 'no-store',
    resolvers: ONE,
  },
  {
    rule: 'inheritMaxAge continues through several levels, and ends at a field without it',
    schema: `type Query { a: A @cacheControl(maxAge: 50) } type A { b: B @cacheControl(inheritMaxAge: true) }
      type B { c: C @cacheControl(inheritMaxAge: true) plain: C } type C { name: String }`,
    query: '{ a { b { c { name } } } }',
    expected: 'public, max-age=50',
  },
  {
    rule: 'a field without inheritMaxAge below a field with it has the default lifetime',
    schema: `type Query { a: A @cacheControl(maxAge: 50) } type A { b: B @cacheControl(inheritMaxAge: true) }
      type B { c: C @cacheControl(inheritMaxAge: true) plain: C } type C { name: String }`,
    query: '{ a { b { c { name } plain { name } } } }',
    expected: 'no-store',
  },
  {
    rule: 'an interface may inherit the lifetime and set a scope',
    schema: `type Query { top: Top @cacheControl(maxAge: 50) } type Top { named: Named }
      interface Named @cacheControl(inheritMaxAge: true, scope: PRIVATE) { name: String }
      type Droid implements Named { name: String }`,
    query: '{ top { named { name } } }',
    expected: 'private, max-age=50',
    resolvers: { Named: { __resolveType: () => 'Droid' } },
  },
  {
    rule: 'a union may inherit the lifetime and set a scope',
    schema: `type Query { top: Top @cacheControl(maxAge: 50) } type Top { being: Being }
      union Being @cacheControl(inheritMaxAge: true, scope: PRIVATE) = Droid
      type Droid { name: String }`,
    query: '{ top { being { ... on Droid { name } } } }',
    expected: 'private, max-age=50',
    resolvers: { Being: { __resolveType: () => 'Droid' } },
  },
];

const SHARED = `
  type Query {
    both: Int @cacheControl(maxAge: 60, sharedMaxAge: 300)
    sharedOnly: Int @cacheControl(sharedMaxAge: 300)
    short: Int @cacheControl(maxAge: 10)
    equal: Int @cacheControl(maxAge: 60, sharedMaxAge: 60)
    private: Int @cacheControl(maxAge: 60, sharedMaxAge: 300, scope: PRIVATE)
    shortOfType: Long @cacheControl(maxAge: 5)
    long: Long
  }
  type Long @cacheControl(maxAge: 60, sharedMaxAge: 600) { a: Int shorter: Int @cacheControl(sharedMaxAge: 100) }
`;

const SHARED_RULES: Rule[] = [
  ['{ both }', 'public, max-age=60, s-maxage=300'],
  ['{ sharedOnly }', 'public, max-age=0, s-maxage=300'],
  ['{ equal }', 'public, max-age=60'],
  ['{ both short }', 'public, max-age=10'],
  ['{ private }', 'private, max-age=60'],
  ['{ long { a } }', 'public, max-age=60, s-maxage=600'],
  ['{ long { shorter } }', 'public, max-age=60, s-maxage=100'],
  ['{ shortOfType { a } }', 'public, max-age=5'],
].map(([query, expected]) => ({
  rule: `sharedMaxAge: ${query}`,
  schema: SHARED,
  query: query as string,
  expected: expected as string,
}));

describe.each(ENGINES)('with the engine %s', (_name, engine) => {
  it.each([...HINTS, ...ABSTRACT, ...INHERITANCE, ...SCOPE_RULES, ...INHERITED_SCOPES, ...SHARED_RULES])(
    'httpCache: $rule',
    async ({ schema, query, expected, defaultMaxAge, resolvers }) => {
      const httpCache: true | CacheControlOptions = defaultMaxAge === undefined || { defaultMaxAge };
      const app = appOf(schemaOf(schema, resolvers), { httpCache, engine });
      // The compiled engine keeps the compiled form from the second execution on.
      for (let i = 0; i < 3; i++) expect(await cacheControlOf(app, query)).toBe(expected);
    },
  );

  it('cacheControl counts fields in named and inline fragments', async () => {
    const app = appOf(
      schemaOf(`
        type Query { a: A @cacheControl(maxAge: 60) }
        type A { x: Int y: Int @cacheControl(maxAge: 20) z: Int @cacheControl(scope: PRIVATE) }
      `),
      { engine },
    );
    const query = (selection: string): string =>
      `{ a { ${selection} } } fragment F on A { y ... G } fragment G on A { z }`;
    expect(await cacheControlOf(app, '{ a { x ... { y } } }')).toBe('public, max-age=20');
    expect(await cacheControlOf(app, query('x ...F'))).toBe('private, max-age=20');
  });

  it('cacheControl counts the root fields of a fragment that is also used below the root', async () => {
    const schema = schemaOf(
      `type Query { self: Query @cacheControl(maxAge: 60) plain: Int aged: Int @cacheControl(maxAge: 5) }`,
      { Query: { self: () => ({}) } },
    );
    const app = appOf(schema, { engine });
    expect(await cacheControlOf(app, '{ self { plain } }')).toBe('public, max-age=60');
    expect(await cacheControlOf(app, '{ self { ...F } ...F } fragment F on Query { plain }')).toBe(
      'no-store',
    );
    expect(await cacheControlOf(app, '{ self { ...F } ...F } fragment F on Query { aged }')).toBe(
      'public, max-age=5',
    );
  });

  it('cacheControl counts fields of @skip and @include for the variables of the request', async () => {
    const app = appOf(
      schemaOf(
        `type Query { a: Int @cacheControl(maxAge: 60) b: Int @cacheControl(maxAge: 5) c: Int @cacheControl(maxAge: 20) }`,
      ),
      { engine },
    );
    const query = 'query ($b: Boolean = false, $c: Boolean!) { a b @include(if: $b) c @skip(if: $c) }';
    expect(await cacheControlOf(app, query, { c: true })).toBe('public, max-age=60');
    expect(await cacheControlOf(app, query, { c: false })).toBe('public, max-age=20');
    expect(await cacheControlOf(app, query, { b: true, c: true })).toBe('public, max-age=5');
    expect(await cacheControlOf(app, query, { b: true, c: false })).toBe('public, max-age=5');
    expect(await cacheControlOf(app, '{ a b @skip(if: true) c @include(if: false) }')).toBe(
      'public, max-age=60',
    );
  });

  it('cacheControl assumes either value of a variable in @skip after 64 combinations', async () => {
    const names = Array.from({ length: 7 }, (_, index) => `v${index}`);
    const schema = schemaOf(
      'type Query { a: Int @cacheControl(maxAge: 60) b: Int @cacheControl(maxAge: 5) }',
    );
    const app = appOf(schema, { engine });
    const query = `query (${names.map((name) => `$${name}: Boolean!`)}) { a ${names.map((name) => `${name}: b @include(if: $${name})`).join(' ')} }`;
    const variablesOf = (bits: number): object =>
      Object.fromEntries(names.map((name, index) => [name, ((bits >> index) & 1) === 1]));
    for (let bits = 127; bits > 63; bits--) {
      expect(await cacheControlOf(app, query, variablesOf(bits))).toBe('public, max-age=5');
    }
    // The combination 65 and later ones have the policy of all fields.
    expect(await cacheControlOf(app, query, variablesOf(0))).toBe('public, max-age=5');
    const other = appOf(schema, { engine });
    expect(await cacheControlOf(other, query, variablesOf(0))).toBe('public, max-age=60');
  });

  it('cacheControl does not depend on the values of resolvers', async () => {
    const schema = schemaOf(
      `type Query { feed: [Item] @cacheControl(maxAge: 60) node: Node }
       type Item { ad: Int @cacheControl(scope: PRIVATE) }
       interface Node @cacheControl(maxAge: 60) { id: ID! }
       type Secret implements Node { id: ID! secret: Int @cacheControl(scope: PRIVATE, maxAge: 1) }
       type Open implements Node { id: ID! }`,
      { Query: { feed: () => [], node: () => ({ id: '1' }) }, Node: { __resolveType: () => 'Open' } },
    );
    const app = appOf(schema, { engine });
    // Both would be public for this user, and private for one that has items or secrets.
    expect(await cacheControlOf(app, '{ feed { ad } }')).toBe('private, max-age=60');
    expect(await cacheControlOf(app, '{ node { id ... on Secret { secret } } }')).toBe('private, max-age=1');
    expect(await cacheControlOf(app, '{ node { id ... on Open { id } } }')).toBe('public, max-age=60');
  });

  it('cacheControl counts a field of an interface for every object type', async () => {
    const schema = schemaOf(
      `type Query { node: Node @cacheControl(maxAge: 60) }
       interface Node { id: ID! at: Int }
       interface Other { at: Int }
       type A implements Node & Other { id: ID! at: Int @cacheControl(maxAge: 7) }
       type B implements Node { id: ID! at: Int @cacheControl(maxAge: 3) }`,
      { Query: { node: () => ({ id: '1' }) }, Node: { __resolveType: () => 'A' } },
    );
    const app = appOf(schema, { engine });
    expect(await cacheControlOf(app, '{ node { at } }')).toBe('public, max-age=3');
    expect(await cacheControlOf(app, '{ node { ... on A { at } } }')).toBe('public, max-age=7');
    expect(await cacheControlOf(app, '{ node { ... on Other { at } } }')).toBe('public, max-age=7');
    expect(await cacheControlOf(app, '{ node { ... on A { ... on Node { at } } } }')).toBe(
      'public, max-age=7',
    );
  });
});

it('cacheControl reads hints of schemas that are created in code', async () => {
  const schema = schemaOf('type Query { a: Int b: Int c: Int d: Int }');
  const fields = (schema.getQueryType() as GraphQLObjectType).getFields();
  const setExtensions = (name: string, extensions: object): unknown =>
    Object.assign(fields[name] as object, { extensions });
  setExtensions('a', { cacheControl: { maxAge: 10 } });
  setExtensions('b', { directives: { cacheControl: { maxAge: 20, scope: 'PRIVATE' } } });
  setExtensions('c', { directives: [{ name: 'cacheControl', args: { maxAge: 30 } }] });
  setExtensions('d', { directives: { cacheControl: [{ maxAge: 40 }] } });
  const app = appOf(schema);
  expect(await cacheControlOf(app, '{ a }')).toBe('public, max-age=10');
  expect(await cacheControlOf(app, '{ b }')).toBe('private, max-age=20');
  expect(await cacheControlOf(app, '{ c }')).toBe('public, max-age=30');
  expect(await cacheControlOf(app, '{ d }')).toBe('public, max-age=40');
});

it('cacheControl works with a function that returns a schema per request', async () => {
  const short = schemaOf('type Query { a: Int @cacheControl(maxAge: 5) }');
  const long = schemaOf('type Query { a: Int @cacheControl(maxAge: 10) }');
  const app = appOf(({ headers }) => (headers['x-tenant'] === 'b' ? long : short));
  await get(app, '{ a }').expect('cache-control', 'public, max-age=5');
  await get(app, '{ a }').set('x-tenant', 'b').expect('cache-control', 'public, max-age=10');
});
