import { buildSchema, type GraphQLObjectType, type GraphQLScalarType } from 'graphql';
import { engines, outcomeOf, prepare, unguardedGraphqlJs } from './compare.ts';

const schema = buildSchema(`
  scalar Later
  type Dog { name: String calm: String must: String! litter: [Dog!]! friend: Dog }
  type Query { later: Later laters: [Later!] dog: Dog }
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
