import {
  buildSchema,
  GraphQLError,
  type GraphQLScalarType,
  type GraphQLSchema,
  isObjectType,
  versionInfo,
} from 'graphql';

/** A request and the answer graphql-js gives. */
export interface Case {
  readonly title: string;
  readonly query: string;
  readonly variables?: Record<string, unknown>;
  readonly root?: unknown;
  readonly data?: unknown;
  /** Message, path and locations (line:column) of each error, in order. */
  readonly errors?: readonly string[];
}

const SDL = /* GraphQL */ `
  scalar Any
  enum Colour { RED GREEN }
  input Range { from: Int! = 1, to: Int, label: String = "none", colours: [Colour!] = [RED] }
  input One @oneOf { id: ID, name: String }
  interface Being { name: String! }
  type Cat implements Being { name: String! meows: Boolean }
  type Dog implements Being { name: String! barks: Boolean }
  union Pet = Cat | Dog
  type Node { id: ID name: String! next: Node must: Node! list: [Node!] count: Int }
  type Query {
    text: String, other: String, int: Int, float: Float, bool: Boolean, id: ID, any: Any, colour: Colour
    strict: String!, node: Node, mustNode: Node!, nodes: [Node], strictNodes: [Node!]!, matrix: [[Int!]]
    numbers: [Int], strictNumbers: [Int!], pet: Pet, pets: [Pet], being: Being
    echo(a: Int, b: String = "default", range: Range, one: One, list: [Int], colour: Colour, any: Any): String
    needs(a: Int!): String
  }
  type Mutation { add(n: Int!): Int fail(n: Int!): Int! slow(n: Int!): Int node: Node }
  type Subscription { tick: Int }
`;

/** A schema whose resolvers are what the root value holds, but for the echoes. */
export function makeSchema(): GraphQLSchema {
  const schema = buildSchema(SDL);
  const any = schema.getType('Any') as GraphQLScalarType;
  const serialize = (value: unknown): unknown => (value === 'void' ? undefined : value);
  Object.assign(any, versionInfo.major >= 17 ? { coerceOutputValue: serialize } : { serialize });
  const fields = schema.getQueryType()?.getFields();
  const echo = (_source: unknown, args: unknown): string => JSON.stringify(args);
  Object.assign(fields?.['echo'] ?? {}, { resolve: echo });
  Object.assign(fields?.['needs'] ?? {}, { resolve: echo });
  for (const name of ['Cat', 'Dog']) {
    const type = schema.getType(name);
    if (isObjectType(type)) type.isTypeOf = (value) => (value as { kind?: string }).kind === name;
  }
  return schema;
}

const fails = (text: string) => (): never => {
  throw new Error(text);
};
const later = <T>(value: T): Promise<T> => Promise.resolve(value);
const rejects = (text: string) => (): Promise<never> => Promise.reject(new Error(text));

/** Counts anew in each copy. */
class Counter {
  total = 0;
  add = function (this: Counter, { n }: { n: number }): number {
    this.total += n;
    return this.total;
  };
  slow = async function (this: Counter, { n }: { n: number }): Promise<number> {
    await undefined;
    this.total *= 10 * n;
    return this.total;
  };
}

const cat = { kind: 'Cat', name: 'Tom', meows: true };
const dog = { kind: 'Dog', name: 'Rex', barks: false };

export const CASES: readonly Case[] = [
  {
    title: 'reads properties',
    query: '{ text int }',
    root: { text: 'a', int: 1 },
    data: { text: 'a', int: 1 },
  },
  {
    title: 'calls methods on their object',
    query: '{ text }',
    root: {
      word: 'mine',
      text() {
        return (this as { word: string }).word;
      },
    },
    data: { text: 'mine' },
  },
  { title: 'takes a missing property for null', query: '{ text }', root: {}, data: { text: null } },
  {
    title: 'has no properties in a primitive',
    query: '{ node { name } }',
    root: { node: 5 },
    data: { node: null },
    errors: ['Cannot return null for non-nullable field Node.name. node.name 1:10'],
  },
  {
    title: 'keeps the order of the document',
    query: '{ c: text a: int b: bool }',
    root: { text: 'x', int: 1, bool: true },
    data: { c: 'x', a: 1, b: true },
  },
  {
    title: 'merges fields of one key',
    query: '{ node { id } node { name } }',
    root: { node: { id: 1, name: 'n' } },
    data: { node: { id: '1', name: 'n' } },
  },
  {
    title: 'merges fields through fragments',
    query:
      '{ ...A ...B } fragment A on Query { node { id } } fragment B on Query { node { name next { id } } }',
    root: { node: { id: 1, name: 'n', next: { id: 2 } } },
    data: { node: { id: '1', name: 'n', next: { id: '2' } } },
  },
  {
    title: 'knows its own type',
    query: '{ __typename node { kind: __typename } }',
    root: { node: {} },
    data: { __typename: 'Query', node: { kind: 'Node' } },
  },
  {
    title: 'leaves out what is skipped',
    query:
      'query ($no: Boolean!) { text @skip(if: $no) int @include(if: $no) bool @skip(if: true) @include(if: true) }',
    variables: { no: true },
    root: { int: 2 },
    data: { int: 2 },
  },
  {
    title: 'selects anew for other variables',
    query: 'query ($no: Boolean = false) { text @skip(if: $no) int @include(if: $no) }',
    root: { text: 't' },
    data: { text: 't' },
  },
  {
    title: 'answers with an empty object when nothing is left',
    query: '{ text @skip(if: true) }',
    root: {},
    data: {},
  },
  {
    title: 'awaits promises',
    query: '{ text int }',
    root: { text: later('a'), int: () => later(1) },
    data: { text: 'a', int: 1 },
  },
  {
    title: 'awaits promises at every level',
    query: '{ nodes { name next { name } } }',
    root: { nodes: later([later({ name: later('a'), next: later({ name: 'b' }) }), null, { name: 'c' }]) },
    data: { nodes: [{ name: 'a', next: { name: 'b' } }, null, { name: 'c', next: null }] },
  },
  {
    title: 'keeps the order of the document when promises settle in another',
    query: '{ text int bool }',
    root: {
      text: () =>
        later(1)
          .then(() => 1)
          .then(() => 'late'),
      int: 1,
      bool: later(true),
    },
    data: { text: 'late', int: 1, bool: true },
  },
  {
    title: 'makes a nullable field null when its resolver throws',
    query: '{ text int }',
    root: { text: fails('oh'), int: 1 },
    data: { text: null, int: 1 },
    errors: ['oh text 1:3'],
  },
  {
    title: 'makes it null when its promise is rejected',
    query: '{ text int }',
    root: { text: rejects('oh'), int: 1 },
    data: { text: null, int: 1 },
    errors: ['oh text 1:3'],
  },
  {
    title: 'throws an error that was returned',
    query: '{ text }',
    root: { text: new Error('returned') },
    data: { text: null },
    errors: ['returned text 1:3'],
  },
  {
    title: 'wraps what is no error',
    query: '{ text }',
    root: {
      text: () => {
        throw 'bare';
      },
    },
    data: { text: null },
    errors: ['Unexpected error value: "bare" text 1:3'],
  },
  {
    title: 'lets null climb to the nearest nullable parent',
    query: '{ node { must { must { name } } } int }',
    root: { int: 1, node: { must: { must: { name: null } } } },
    data: { node: null, int: 1 },
    errors: ['Cannot return null for non-nullable field Node.name. node.must.must.name 1:24'],
  },
  {
    title: 'lets null climb to data',
    query: '{ int strict }',
    root: { int: 1 },
    data: null,
    errors: ['Cannot return null for non-nullable field Query.strict. strict 1:7'],
  },
  {
    title: 'lets null climb to data from a promise',
    query: '{ int mustNode { name } }',
    root: { int: 1, mustNode: later({ name: rejects('deep') }) },
    data: null,
    errors: ['deep mustNode.name 1:18'],
  },
  {
    title: 'keeps siblings of a null item',
    query: '{ nodes { name } }',
    root: { nodes: [{ name: 'a' }, { name: fails('b') }, { name: 'c' }] },
    data: { nodes: [{ name: 'a' }, null, { name: 'c' }] },
    errors: ['b nodes.1.name 1:11'],
  },
  {
    title: 'makes a list null for an item that may not be',
    query: '{ strictNumbers int }',
    root: { strictNumbers: [1, null], int: 3 },
    data: { strictNumbers: null, int: 3 },
    errors: ['Cannot return null for non-nullable field Query.strictNumbers. strictNumbers.1 1:3'],
  },
  {
    title: 'completes lists in lists',
    query: '{ matrix }',
    root: { matrix: [[1, 2], [], null, [3, null]] },
    data: { matrix: [[1, 2], [], null, null] },
    errors: ['Cannot return null for non-nullable field Query.matrix. matrix.3.1 1:3'],
  },
  {
    title: 'takes any iterable object for a list',
    query: '{ numbers }',
    root: { numbers: new Set([1, 2]) },
    data: { numbers: [1, 2] },
  },
  {
    title: 'takes generators for lists',
    query: '{ numbers }',
    root: {
      *numbers() {
        yield 1;
        yield later(2);
      },
    },
    data: { numbers: [1, 2] },
  },
  {
    title: 'takes no text for a list',
    query: '{ numbers }',
    root: { numbers: 'no' },
    data: { numbers: null },
    errors: ['Expected Iterable, but did not find one for field "Query.numbers". numbers 1:3'],
  },
  {
    title: 'fills the holes of an array with null',
    query: '{ numbers }',
    root: { numbers: Object.assign([], { 2: 1, length: 3 }) },
    data: { numbers: [null, null, 1] },
  },
  {
    title: 'mixes errors and values of promised items in order',
    query: '{ numbers }',
    root: { numbers: () => [later(1), rejects('x')(), 'no', later(4)] },
    data: { numbers: [1, null, null, 4] },
    errors: ['Int cannot represent non-integer value: "no" numbers.2 1:3', 'x numbers.1 1:3'],
  },
  {
    title: 'serializes built-in scalars',
    query: '{ text int float bool id }',
    root: { text: 12, int: '7', float: '1.5', bool: 0, id: 9 },
    data: { text: '12', int: 7, float: 1.5, bool: false, id: '9' },
  },
  {
    title: 'refuses integers out of range',
    query: '{ int }',
    root: { int: 2 ** 31 },
    data: { int: null },
    errors: ['Int cannot represent non 32-bit signed integer value: 2147483648 int 1:3'],
  },
  {
    title: 'writes the largest and the smallest integer',
    query: '{ numbers }',
    root: { numbers: [2147483647, -2147483648, 0, -0, 10, 99, 100] },
    data: { numbers: [2147483647, -2147483648, 0, 0, 10, 99, 100] },
  },
  {
    title: 'refuses numbers that are not finite',
    query: '{ float a: float }',
    root: { float: Number.NaN },
    data: { float: null, a: null },
    errors: [
      'Float cannot represent non numeric value: NaN float 1:3',
      'Float cannot represent non numeric value: NaN a 1:9',
    ],
  },
  { title: 'writes enum names', query: '{ colour }', root: { colour: 'RED' }, data: { colour: 'RED' } },
  {
    title: 'refuses what is no enum value',
    query: '{ colour }',
    root: { colour: 'BLUE' },
    data: { colour: null },
    errors: ['Enum "Colour" cannot represent value: "BLUE" colour 1:3'],
  },
  {
    title: 'lets custom scalars be objects',
    query: '{ any }',
    root: { any: { a: [1, { b: 'ü"' }], gone: undefined } },
    data: { any: { a: [1, { b: 'ü"' }] } },
  },
  {
    title: 'asks toJSON of custom scalars, with the key',
    query: '{ any b: any }',
    root: { any: { toJSON: (key: string) => `as ${key}` } },
    data: { any: 'as any', b: 'as b' },
  },
  {
    title: 'writes dates',
    query: '{ any }',
    root: { any: new Date(0) },
    data: { any: '1970-01-01T00:00:00.000Z' },
  },
  {
    title: 'writes infinite numbers of custom scalars as null',
    query: '{ any }',
    root: { any: Number.POSITIVE_INFINITY },
    data: { any: null },
  },
  {
    title: 'leaves out what JSON has no text for',
    query: '{ first: any text any }',
    root: { any: later(() => 1), text: 't' },
    data: { text: 't' },
  },
  {
    title: 'escapes text',
    query: '{ text other }',
    root: { text: 'a"\\\n\u0000\u2028é\u{1f600}', other: `${'z'.repeat(300)}"` },
    data: { text: 'a"\\\n\u0000\u2028é\u{1f600}', other: `${'z'.repeat(300)}"` },
  },
  {
    title: 'tells union members apart by isTypeOf',
    query: '{ pets { __typename ... on Cat { meows } ... on Dog { barks } } }',
    root: { pets: [cat, dog] },
    data: {
      pets: [
        { __typename: 'Cat', meows: true },
        { __typename: 'Dog', barks: false },
      ],
    },
  },
  {
    title: 'tells them apart by __typename first',
    query: '{ being { name } }',
    root: { being: { __typename: 'Cat', ...cat } },
    data: { being: { name: 'Tom' } },
  },
  {
    title: 'refuses a type that is none',
    query: '{ being { name } }',
    root: { being: { __typename: 'Bird' } },
    data: { being: null },
    errors: [
      'Abstract type "Being" was resolved to a type "Bird" that does not exist inside the schema. being 1:3',
    ],
  },
  {
    title: 'refuses a type that is not possible',
    query: '{ being { name } }',
    root: { being: { __typename: 'Node' } },
    data: { being: null },
    errors: ['Runtime Object type "Node" is not a possible type for "Being". being 1:3'],
  },
  {
    title: 'refuses a type that is no object type',
    query: '{ being { name } }',
    root: { being: { __typename: 'Being' } },
    data: { being: null },
    errors: ['Abstract type "Being" was resolved to a non-object type "Being". being 1:3'],
  },
  {
    title: 'says when no type fits',
    query: '{ being { name } }',
    root: { being: {} },
    data: { being: null },
    errors: [
      'Abstract type "Being" must resolve to an Object type at runtime for field "Query.being". Either the "Being" type should provide a "resolveType" function or each possible type should provide an "isTypeOf" function. being 1:3',
    ],
  },
  {
    title: 'checks isTypeOf of the type that was found',
    query: '{ being { name } }',
    root: { being: { __typename: 'Cat', kind: 'Dog' } },
    data: { being: null },
    errors: ['Expected value of type "Cat" but got: { __typename: "Cat", kind: "Dog" }. being 1:3'],
  },
  {
    title: 'passes arguments and their defaults',
    query: '{ echo(a: 1) }',
    root: {},
    data: { echo: '{"a":1,"b":"default"}' },
  },
  {
    title: 'passes null on',
    query: '{ echo(a: null, b: null) }',
    root: {},
    data: { echo: '{"a":null,"b":null}' },
  },
  {
    title: 'falls back to the default of an argument whose variable is missing',
    query: 'query ($b: String, $a: Int) { echo(b: $b, a: $a) }',
    root: {},
    data: { echo: '{"b":"default"}' },
  },
  {
    title: 'fills in the defaults of input objects',
    query: 'query ($r: Range) { echo(range: $r) }',
    variables: { r: { to: 3 } },
    root: {},
    data: { echo: '{"b":"default","range":{"from":1,"to":3,"label":"none","colours":["RED"]}}' },
  },
  {
    title: 'fills in defaults for variables left out inside input objects',
    query: 'query ($from: Int = 5, $label: String) { echo(range: { from: $from, label: $label }) }',
    root: {},
    data: { echo: '{"b":"default","range":{"from":5,"label":"none","colours":["RED"]}}' },
  },
  {
    title: 'makes a list of one',
    query: 'query ($l: [Int]) { a: echo(list: 4) b: echo(list: $l) }',
    variables: { l: 5 },
    root: {},
    data: { a: '{"b":"default","list":[4]}', b: '{"b":"default","list":[5]}' },
  },
  {
    title: 'enforces @oneOf in literals',
    query: '{ echo(one: { id: 1 }) }',
    root: {},
    data: { echo: '{"b":"default","one":{"id":"1"}}' },
  },
  {
    title: 'runs mutations one after the other',
    query: 'mutation { a: add(n: 1) b: slow(n: 2) c: add(n: 3) }',
    root: new Counter(),
    data: { a: 1, b: 20, c: 23 },
  },
  {
    title: 'stops a mutation at the first field that may not fail',
    query: 'mutation { a: add(n: 1) f: fail(n: 2) c: add(n: 3) }',
    root: { add: ({ n }: { n: number }) => later(n), fail: rejects('stop') },
    data: null,
    errors: ['stop f 1:25'],
  },
  {
    title: 'executes a subscription event',
    query: 'subscription { tick }',
    root: { tick: 4 },
    data: { tick: 4 },
  },
  {
    title: 'answers introspection',
    query: '{ __type(name: "Colour") { kind enumValues { name } } __schema { queryType { name } } }',
    root: {},
    data: {
      __type: { kind: 'ENUM', enumValues: [{ name: 'RED' }, { name: 'GREEN' }] },
      __schema: { queryType: { name: 'Query' } },
    },
  },
  {
    title: 'keeps the extensions of errors',
    query: '{ text }',
    root: {
      text: () => {
        throw new GraphQLError('coded', { extensions: { code: 'X' } });
      },
    },
    data: { text: null },
    errors: ['coded text 1:3'],
  },
  {
    title: 'keeps the path an error brings',
    query: '{ text }',
    root: {
      text: () => {
        throw new GraphQLError('elsewhere', { path: ['a', 1] });
      },
    },
    data: { text: null },
    errors: ['elsewhere a.1 '],
  },
];
