/** @tags node graphql engine */
// Errors of the executor about values of the server, and errors of the application that only look like them.

import {
  GraphQLEnumType,
  GraphQLError,
  type GraphQLFieldConfig,
  GraphQLInt,
  GraphQLInterfaceType,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLSchema,
  GraphQLString,
  GraphQLUnionType,
} from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { inject } from '../../middleware/testing.ts';

const SECRET = 'sk-live-123';
const id = { type: GraphQLInt };
const typeNames: Record<string, unknown> = {
  Missing: 'NoSuchType',
  Leaf: 'Int',
  Foreign: 'Other',
  Nothing: undefined,
  Wrong: { secret: SECRET },
};
const later = <T>(value: T): Promise<T> => new Promise((resolve) => setImmediate(resolve, value));

/** An interface whose type resolver returns that value, sooner or later. */
const abstract = (name: string, isLate: boolean) =>
  new GraphQLInterfaceType({
    name: isLate ? `${name}Later` : name,
    fields: { id },
    resolveType: () => {
      const resolved = typeNames[name] as string;
      return isLate ? later(resolved) : resolved;
    },
  });
const interfaces = Object.keys(typeNames).flatMap((name) => [abstract(name, false), abstract(name, true)]);
const Member = new GraphQLObjectType({ name: 'Member', fields: { id }, interfaces });
const Other = new GraphQLObjectType({ name: 'Other', fields: { id } });
const Refused = new GraphQLObjectType({ name: 'Refused', fields: { id }, isTypeOf: () => false });
const RefusedLater = new GraphQLObjectType({
  name: 'RefusedLater',
  fields: { id },
  isTypeOf: () => later(false),
});
const Either = new GraphQLUnionType({ name: 'Either', types: [Member], resolveType: () => 'Other' });
const Colour = new GraphQLEnumType({ name: 'Colour', values: { RED: {} } });

type Config = GraphQLFieldConfig<unknown, unknown>;
const field = (type: Config['type'], value: unknown): Config => ({ type, resolve: () => value });
const lateField = (type: Config['type'], value: unknown): Config => ({ type, resolve: () => later(value) });
const Strings = new GraphQLList(GraphQLString);

const server: Record<string, Config> = {
  int: field(GraphQLInt, SECRET),
  intLater: lateField(GraphQLInt, SECRET),
  colour: field(Colour, SECRET),
  coloursInList: field(new GraphQLList(Colour), ['RED', SECRET]),
  list: field(Strings, { secret: SECRET }),
  listLater: lateField(Strings, { secret: SECRET }),
  requiredListLater: lateField(new GraphQLList(new GraphQLNonNull(GraphQLString)), 7),
  textForList: field(Strings, SECRET),
  nested: field(new GraphQLList(Strings), [['a'], SECRET]),
  nestedLater: lateField(new GraphQLList(Strings), [['a'], later({ secret: SECRET })]),
  either: field(Either, { secret: SECRET }),
  refused: field(Refused, { secret: SECRET }),
  refusedLater: field(RefusedLater, { secret: SECRET }),
};
for (const type of interfaces) server[`abstract${type.name}`] = field(type, { secret: SECRET });
for (const type of interfaces) {
  server[`abstractList${type.name}`] = field(new GraphQLList(type), [{ secret: SECRET }]);
}

const LOOKALIKES = [
  'Int cannot represent it, says the application',
  'Expected value of type "Ticket": say which',
  'Expected Iterable, please',
  'Abstract type "art" is not sold here',
  'Runtime Object type "x" is not a possible type for "y".',
  'Subscription field must return Async Iterable. Try it.',
];
const application: Record<string, Config> = {};
for (const [index, message] of LOOKALIKES.entries()) {
  const fail = (): never => {
    throw new GraphQLError(message);
  };
  application[`thrown${index}`] = { type: GraphQLInt, resolve: fail };
  application[`rejected${index}`] = { type: Strings, resolve: async () => fail() };
  application[`returned${index}`] = field(GraphQLInt, new GraphQLError(message));
}

const schema = new GraphQLSchema({
  query: new GraphQLObjectType({ name: 'Query', fields: { ...server, ...application } }),
  types: [Member, Other],
});

const isComposite = (name: string): boolean => /either|refused|abstract/.test(name);

process.env['NODE_ENV'] = 'production';

describe.each(['compiled', 'graphql-js'] as const)('the engine %s', (engine) => {
  const reported: Error[] = [];
  const handler = graphqlHTTP(schema, { engine, onError: (error) => reported.push(error as Error) });
  const ask = async (name: string) => {
    reported.length = 0;
    const result = await inject(handler, {
      query: `{ ${name}${isComposite(name) ? ' { __typename }' : ''} }`,
    });
    return { body: JSON.stringify([result.data, result.errors]), result };
  };
  it.each(Object.keys(server))('masks the error of the executor at %s and reports it once', async (name) => {
    // The compiled engine compiles a document at its second use.
    for (let time = 0; time < 3; time++) {
      const { body, result } = await ask(name);
      expect(body).not.toContain(SECRET);
      expect(result.errors).toHaveLength(1);
      expect(result.errors?.[0]).toMatchObject({
        message: 'Internal server error',
        extensions: { code: 'INTERNAL_SERVER_ERROR' },
      });
      expect(reported).toHaveLength(1);
      expect(reported[0]?.message).not.toBe('Internal server error');
    }
  });

  it.each(Object.keys(application))(
    'sends the error of the application at %s with its message',
    async (name) => {
      for (let time = 0; time < 3; time++) {
        const { result } = await ask(name);
        expect(result.errors?.[0]?.message).toBe(LOOKALIKES[Number(/\d/.exec(name)?.[0])]);
        expect(reported).toEqual([]);
      }
    },
  );
});
