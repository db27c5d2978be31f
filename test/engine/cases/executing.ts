import { GraphQLError, type GraphQLResolveInfo } from 'graphql';
import { echo, type Group, later, schemaOf, V17 } from './case.ts';

const SDL = /* GraphQL */ `
  enum Size { S L }
  type Pic { url: String size: Size }
  type Deep { a: String b: String deep: Deep deeper: [Deep] pic(size: Int): Pic must: String! info: String }
  type Query {
    a: String b: String c: String d: String e: String f: String
    sum(x: Int, y: Int = 2): Int args(one: Int, two: Int, three: Int): String
    deep: Deep promised: Deep broken: Broken info: String context: String
  }
  type Broken {
    sync: String syncRaw: String returned: String listed: [String] late: String rejected: String
    empty: String lateReturned: String extended: String noError: String
  }
`;

const where = (_source: unknown, _args: unknown, _context: unknown, info: GraphQLResolveInfo): string => {
  const { fieldName, fieldNodes, returnType, parentType, path, operation, variableValues } = info;
  const variables = V17 ? variableValues['coerced'] : variableValues;
  return JSON.stringify([
    fieldName,
    fieldNodes.length,
    String(returnType),
    parentType.name,
    path,
    operation.name?.value,
    variables,
    info.rootValue === undefined,
    Object.keys(info.fragments),
  ]);
};

const broken = {
  sync: () => {
    throw new Error('sync');
  },
  syncRaw: () => {
    throw 'raw';
  },
  returned: () => new Error('returned'),
  listed: () => ['first', new Error('second'), 'third', new Error('fourth')],
  late: async () => 'late',
  rejected: () => Promise.reject(new Error('rejected')),
  empty: () => Promise.reject(),
  lateReturned: async () => new Error('returned late'),
  extended: async () => {
    throw new GraphQLError('extended', { extensions: { code: 'X' } });
  },
  noError: () => Promise.reject({ some: 'thing' }),
};

const deep = { a: 'x', b: 'y', pic: ({ size }: { size: number }) => ({ url: `pic ${size}`, size: 'L' }) };

export const executing: Group = {
  title: 'execution',
  schema: schemaOf(SDL, {
    'Query.info': where,
    'Deep.info': where,
    'Query.args': echo,
    'Query.sum': (_root, { x, y }: { x: number; y: number }) => x + y,
    'Query.context': (_root, _args, context: unknown) => JSON.stringify(context),
  }),
  cases: [
    {
      title: 'executes every kind of selection',
      query: `query Q($size: Int) { a b x: c ...F deep { deeper { a b } } promised { a } }
        fragment F on Query { d e deep { pic(size: $size) { url size } } }`,
      variables: { size: 100 },
      root: {
        a: () => 'Apple',
        b: 'Banana',
        c: later('Cookie'),
        d: async () => 'Donut',
        e: 'Egg',
        deep: { ...deep, deeper: [deep, null, later(deep)] },
        promised: () => later(deep),
      },
      data: {
        a: 'Apple',
        b: 'Banana',
        x: 'Cookie',
        deep: {
          deeper: [{ a: 'x', b: 'y' }, null, { a: 'x', b: 'y' }],
          pic: { url: 'pic 100', size: 'L' },
        },
        promised: { a: 'x' },
        d: 'Donut',
        e: 'Egg',
      },
    },
    {
      title: 'merges fragments that spread each other',
      query: `{ a ...One ...Two } fragment One on Query { b deep { b deeper: deep { b } } }
        fragment Two on Query { c deep { a deeper: deep { a } } }`,
      root: { a: 'A', b: 'B', c: 'C', deep: { a: 'a', b: 'b', deep: { a: 'aa', b: 'bb' } } },
      data: { a: 'A', b: 'B', deep: { b: 'b', deeper: { b: 'bb', a: 'aa' }, a: 'a' }, c: 'C' },
    },
    {
      title: 'stops at fragments that spread themselves',
      query: 'query Q { a ...Frag ...Frag } fragment Frag on Query { a ...Frag }',
      root: { a: 'b' },
      data: { a: 'b' },
    },
    {
      title: 'omits fields that do not exist',
      query: '{ thisIsIllegal a deep { nor this } }',
      root: { a: 'b', deep: {} },
      data: { a: 'b', deep: {} },
    },
    {
      title: 'writes an empty object for an object field without a selection set',
      query: '{ deep }',
      root: { deep },
      data: { deep: {} },
    },
    {
      title: 'passes the arguments to resolvers',
      query: '{ args(one: 1, three: 3) sum(x: 1) }',
      data: { args: '{"one":1,"three":3}', sum: 3 },
    },
    {
      title: 'passes the context to resolvers',
      query: '{ context }',
      context: { user: 'me' },
      data: { context: '{"user":"me"}' },
    },
    {
      title: 'passes info to resolvers',
      query:
        'query Named($var: String) { result: info deep { deeper { ...F } } } fragment F on Deep { inner: info }',
      variables: { var: 'abc' },
      root: { deep: { deeper: [{}] } },
      data: {
        result:
          '["info",1,"String","Query",{"key":"result","typename":"Query"},"Named",{"var":"abc"},false,["F"]]',
        deep: {
          deeper: [
            {
              inner:
                '["info",1,"String","Deep",{"prev":{"prev":{"prev":{"key":"deep","typename":"Query"},"key":"deeper","typename":"Deep"},"key":0},"key":"inner","typename":"Deep"},"Named",{"var":"abc"},false,["F"]]',
            },
          ],
        },
      },
    },
    {
      title: 'keeps the order of the document when promises settle in another order',
      query: '{ a b c d e }',
      root: {
        a: 'a',
        b: () => new Promise((resolve) => setImmediate(resolve, 'b')),
        c: 'c',
        d: async () => 'd',
        e: 'e',
      },
      data: { a: 'a', b: 'b', c: 'c', d: 'd', e: 'e' },
    },
    {
      title: 'sets fields to null for every kind of error',
      query: `{ broken {
        sync
        syncRaw
        returned
        listed
        late
        rejected
        empty
        lateReturned
        extended
        noError
      } }`,
      root: { broken },
      data: {
        broken: {
          sync: null,
          syncRaw: null,
          returned: null,
          listed: ['first', null, 'third', null],
          late: 'late',
          rejected: null,
          empty: null,
          lateReturned: null,
          extended: null,
          noError: null,
        },
      },
      errors: [
        'sync broken.sync 2:9',
        'Unexpected error value: "raw" broken.syncRaw 3:9',
        'returned broken.returned 4:9',
        'second broken.listed.1 5:9',
        'fourth broken.listed.3 5:9',
        'rejected broken.rejected 7:9',
        'Unexpected error value: undefined broken.empty 8:9',
        'returned late broken.lateReturned 9:9',
        'extended broken.extended 10:9',
        'Unexpected error value: { some: "thing" } broken.noError 11:9',
      ],
    },
    {
      title: 'orders errors by the moment when they set a position to null',
      query: '{ deep { must a } other: promised { must } }',
      root: { deep: { must: () => Promise.reject(new Error('one')) }, promised: later({ must: null }) },
      data: { deep: null, other: null },
      errors: ['Cannot return null for non-nullable field Deep.must. other.must 1:37', 'one deep.must 1:10'],
    },
    {
      title: 'calls the fieldResolver option for fields without a resolver',
      query: '{ a b sum(x: 5) }',
      settings: {
        fieldResolver: (
          _source: unknown,
          _args: unknown,
          _context: unknown,
          { fieldName }: GraphQLResolveInfo,
        ) => (fieldName === 'b' ? later('late b') : fieldName),
      },
      data: { a: 'a', b: 'late b', sum: 7 },
    },
  ],
};
