/** @tags graphql */
import {
  buildSchema,
  type GraphQLInterfaceType,
  type GraphQLObjectType,
  type GraphQLResolveInfo,
  type GraphQLScalarType,
  versionInfo,
} from 'graphql';
import { engines, outcomeOf, prepare, settingsOf, unguardedGraphqlJs } from '../engine/compare.ts';

const schema = buildSchema(`
  scalar Later
  type Dog { name: String calm: String must: String! litter: [Dog!]! friend: Dog }
  type Query { later: Later laters: [Later!] dog: Dog names: [String!] dogs: [Dog!] pet: Pet groups: [[String!]] }
  interface Pet { name: String }
  type Cat implements Pet { name: String }
`);
const laterType = schema.getType('Later') as GraphQLScalarType;
const convert = async (value: unknown): Promise<unknown> => {
  if (value === 'bad') throw new Error('no output');
  return value;
};
Object.assign(laterType, { serialize: convert, coerceOutputValue: convert });
const dogType = schema.getType('Dog') as GraphQLObjectType;
const resolve = async ({ calm }: { calm?: () => unknown }): Promise<unknown> => calm?.();
Object.assign(dogType.getFields()['calm'] as object, { resolve });

const turns = async (count: number): Promise<void> => {
  for (let i = 0; i < count; i++) await new Promise(setImmediate);
};
const fails = (): never => {
  throw new Error('fails');
};
const slow = async (): Promise<string> => {
  await turns(4);
  return 'slow';
};

const CASES = [
  {
    title: 'the output of a scalar that converts values asynchronously',
    query: '{ later laters }',
    root: { later: 'one', laters: ['two', 'three'] },
  },
  {
    title: 'the error of a scalar that converts values asynchronously',
    query: '{ later laters }',
    root: { later: 'bad', laters: ['two', 'bad'] },
  },
  {
    title: 'the errors of promised properties in a list that has failed, until the response contains null',
    query: '{ dog { name litter { name must } } }',
    root: { dog: { name: slow, litter: [{ name: async () => fails(), must: 'first' }, { must: fails }] } },
  },
  {
    title: 'the errors of promises of resolvers in a list that has failed, until the response contains null',
    query: '{ dog { name litter { first: calm second: calm must } } }',
    root: { dog: { name: slow, litter: [{ calm: fails, must: 'first' }, null] } },
  },
  {
    title: 'the promises of an object in a list',
    query: '{ dog { litter { calm name friend { calm must other: calm } must } } }',
    root: {
      dog: {
        litter: [
          { calm: () => 'a', name: slow, friend: { calm: fails, must: slow }, must: async () => 'b' },
          { calm: fails, name: async () => fails(), friend: async () => ({ must: fails }), must: 'c' },
        ],
      },
    },
  },
];

it.each(CASES)('the guard of graphql-js does not change $title', async ({ query, root }) => {
  const [guarded, unguarded] = await Promise.all(
    [engines.graphqlJs, unguardedGraphqlJs].map((engine) =>
      outcomeOf(() => prepare(engine, schema, query)({ rootValue: root })),
    ),
  );
  expect(guarded).toBe(unguarded);
});

/** An asynchronous list that does not end, and the number of calls of its method `return`. */
function endless(...items: (() => unknown)[]) {
  const left = [...items];
  const list = {
    returned: 0,
    [Symbol.asyncIterator]: () => ({
      next: async () => {
        const item = left.shift();
        if (item === undefined) await new Promise(() => undefined);
        return { done: false, value: item?.() };
      },
      return: async () => {
        list.returned += 1;
        return { done: true, value: undefined };
      },
    }),
  };
  return list;
}

const ENDLESS = [
  ['null', () => null],
  ['a promise that rejects', () => Promise.reject(new Error('fails'))],
  ['a promise that rejects later', () => slow().then(fails)],
  ['an error', () => new Error('fails')],
] as const;

it.each(ENDLESS)(
  'the guard of graphql-js closes a list without an end that has failed because of %s',
  async (_, item) => {
    if (versionInfo.major < 17) return;
    for (const query of ['{ names }', '{ dogs { name } }']) {
      const list = endless(() => 'first', item);
      const lists = { names: list, dogs: async () => list };
      const { errors, body } = await prepare(engines.graphqlJs, schema, query)({ rootValue: lists });
      const field = query.startsWith('{ names') ? 'names' : 'dogs';
      expect(errors.map(({ path }) => path)).toEqual([[field, 1]]);
      expect(JSON.parse(body.toString()).data).toEqual({ [field]: null });
      expect(list.returned).toBe(1);
    }
  },
);

it('an array with an iterator of its own, which creates the items, is read once', async () => {
  let reads = 0;
  const unhandled: unknown[] = [];
  const notice = (reason: unknown): unknown => unhandled.push(reason);
  function* create(): Generator<unknown> {
    reads += 1;
    yield ['first', Promise.reject(new Error('fails'))];
  }
  process.on('unhandledRejection', notice);
  for (const engine of Object.values(engines)) {
    reads = 0;
    const groups = Object.assign(['not read'], { [Symbol.iterator]: create });
    const { errors } = await prepare(engine, schema, '{ groups }')({ rootValue: { groups } });
    await turns(2);
    expect([reads, errors.map(({ path }) => path)]).toEqual([1, [['groups', 0, 1]]]);
  }
  process.off('unhandledRejection', notice);
  expect(unhandled).toEqual([]);
});

it('type functions get the schema and types of the application', () => {
  const seen: unknown[] = [];
  const resolveType = (
    _value: unknown,
    _context: unknown,
    info: GraphQLResolveInfo,
    type: unknown,
  ): string => {
    seen.push(
      info.schema === schema,
      info.parentType === schema.getQueryType(),
      type === schema.getType('Pet'),
    );
    return 'Cat';
  };
  const pet = schema.getType('Pet') as GraphQLInterfaceType;
  for (const typeResolver of [resolveType, undefined]) {
    pet.resolveType = typeResolver === undefined ? resolveType : null;
    prepare(
      engines.graphqlJs,
      schema,
      '{ pet { name } }',
      settingsOf({ typeResolver }),
    )({ rootValue: { pet: {} } });
  }
  expect(seen).toEqual(Array(6).fill(true));
});

it.each(Object.entries(engines))(
  'resolveType has no `this` under %s, as with graphql-js alone',
  (_name, engine) => {
    const seen: unknown[] = [];
    const pet = schema.getType('Pet') as GraphQLInterfaceType;
    pet.resolveType = function resolveType(this: unknown): string {
      seen.push(this);
      return 'Cat';
    };
    prepare(engine, schema, '{ pet { name } }')({ rootValue: { pet: {} } });
    pet.resolveType = null;
    expect(seen).toEqual([undefined]);
  },
);

it('a getter is read once', () => {
  let reads = 0;
  const dog = {
    get name() {
      reads += 1;
      return 'Rex';
    },
  };
  prepare(engines.graphqlJs, schema, '{ dog { name } }')({ rootValue: { dog } });
  expect(reads).toBe(1);
});
