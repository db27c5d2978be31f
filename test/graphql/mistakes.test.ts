import { buildSchema, GraphQLSchema } from 'graphql';
import { type GraphQLOptions, graphqlHTTP, Upload } from '../../middleware/graphql.ts';
import { REPLACED_OPTIONS } from '../../src/graphql/replaced-options.ts';

const schema = buildSchema('type Query { hello: String }');
const environment = process.env['NODE_ENV'];
afterEach(() => {
  process.env['NODE_ENV'] = environment;
});

/** A schema of a second copy of graphql, as isSchema sees it in production. */
function schemaOfAnotherCopy(): unknown {
  process.env['NODE_ENV'] = 'production';
  let other: unknown;
  jest.isolateModules(() => {
    const graphql = require('graphql') as typeof import('graphql');
    other = graphql.buildSchema('type Query { hello: String }');
  });
  expect(other).not.toBeInstanceOf(GraphQLSchema);
  return other;
}

it.each<[string, () => unknown, RegExp]>([
  ['options with a schema', () => ({ schema }), /Pass the schema first: graphqlHTTP\(schema, options\)/],
  ['SDL', () => 'type Query { a: Int }', /Create one from SDL with buildSchema or makeExecutableSchema/],
  ['a promise', () => Promise.resolve(schema), /Await the promise, or pass a function that returns it/],
  ['typeDefs', () => ({ typeDefs: '' }), /makeExecutableSchema\(\{ typeDefs, resolvers \}\)/],
  ['a schema of another copy of graphql', schemaOfAnotherCopy, /another copy of graphql.*npm ls graphql/],
])('graphqlHTTP says what to do when the schema is %s', (_name, value, message) => {
  expect(() => graphqlHTTP(value() as GraphQLSchema)).toThrow(message);
});

it.each(Object.keys(REPLACED_OPTIONS))(
  'graphqlHTTP says what replaces the option %s of other servers',
  (name) => {
    const options = { [name]: true } as GraphQLOptions;
    expect(() => graphqlHTTP(schema, options)).toThrow(`unknown option "${name}"; ${REPLACED_OPTIONS[name]}`);
  },
);

describe('a schema with "scalar Upload" in SDL', () => {
  const sdl = 'scalar Upload type Query { a(file: Upload): Int }';

  it('graphqlHTTP refuses "scalar Upload" in SDL, because the scalar accepts any JSON value', () => {
    expect(() => graphqlHTTP(buildSchema(sdl))).toThrow(
      /the scalar "Upload" of the schema accepts any JSON value/,
    );
  });

  it('graphqlHTTP accepts "scalar Upload" in SDL with multipartUploadsEnabled: false', () => {
    expect(() => graphqlHTTP(buildSchema(sdl), { multipartUploadsEnabled: false })).not.toThrow();
  });

  it('graphqlHTTP accepts "scalar Upload" in SDL if the scalar has the functions of Upload', () => {
    const complete = buildSchema(sdl);
    Object.assign(complete.getType('Upload') as object, { parseValue: Upload.parseValue });
    expect(() => graphqlHTTP(complete)).not.toThrow();
  });
});
