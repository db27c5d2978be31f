/** @tags graphql */
import http from 'node:http';
import {
  buildClientSchema,
  buildSchema,
  GraphQLObjectType,
  GraphQLSchema,
  GraphQLString,
  introspectionFromSchema,
  printSchema,
} from 'graphql';
import { authTypeDefs } from '../../middleware/auth.ts';
import { graphqlHTTP, idempotentTypeDefs } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { scopesOf, serve } from './service.ts';

// A protection that a schema declares is in force, or something says that it is not.

const { NODE_ENV } = process.env;
let warn: jest.SpyInstance<void, Parameters<typeof console.warn>>;
beforeEach(() => {
  warn = jest.spyOn(console, 'warn').mockImplementation(() => undefined);
});
afterEach(() => {
  process.env['NODE_ENV'] = NODE_ENV;
  warn.mockRestore();
});

const warnings = (): string[] => warn.mock.calls.map(([line]) => String(line));
const attach = (schema: GraphQLSchema): void => {
  attachSubscriptions(http.createServer(), schema);
};
const inCode = (extensions: object): GraphQLSchema =>
  new GraphQLSchema({
    query: new GraphQLObjectType({
      name: 'Query',
      fields: { salary: { type: GraphQLString, extensions: { ...extensions } } },
    }),
  });
const build = (sdl: string): GraphQLSchema => buildSchema(authTypeDefs + sdl);

/** A new name, because each line is logged once per process. */
let fields = 0;
const declared = (): readonly [string, string, GraphQLSchema][] => {
  const name = `f${fields++}`;
  return [
    ['@authenticated', `Query.${name}`, build(`type Query { ${name}: Int @authenticated }`)],
    ['@policy', `Query.${name}(a:)`, build(`type Query { ${name}(a: Int @policy(policies: [["p"]])): Int }`)],
    [
      '@requiresScopes',
      `In.${name}`,
      build(`input In { ${name}: Int @requiresScopes(scopes: [["a"]]) } type Query { a(i: In): Int }`),
    ],
    ['@authenticated', `E${name}`, build(`enum E${name} @authenticated { A } type Query { e: E${name} }`)],
  ];
};

it('in development, a requirement without the option "auth" is an error that names an element', () => {
  process.env['NODE_ENV'] = 'development';
  for (const [directive, coordinate, schema] of declared()) {
    for (const use of [() => void graphqlHTTP(schema), () => attach(schema)])
      expect(use).toThrow(
        expect.objectContaining({
          code: 'ERR_OPTION',
          message: expect.stringContaining(`${directive} on ${coordinate}`),
        }),
      );
    expect(() => graphqlHTTP(schema, { auth: false })).not.toThrow();
  }
  for (const extensions of [
    { directives: { authenticated: {} } },
    { directives: [{ name: 'policy', args: {} }] },
    { authenticated: true },
  ])
    expect(() => graphqlHTTP(inCode(extensions))).toThrow('on Query.salary');
  expect(warnings()).toEqual([]);
});

it('in production, a requirement without the option "auth" is one warning that names an element', () => {
  process.env['NODE_ENV'] = 'production';
  for (const [owner, use] of [
    [
      'graphqlHTTP',
      (schema: GraphQLSchema) =>
        void graphqlHTTP(schema, { graphiql: false, introspection: false, getMutations: false }),
    ],
    ['attachSubscriptions', attach],
  ] as const) {
    for (const [directive, coordinate, schema] of declared()) {
      use(schema);
      use(schema);
      expect(warnings().filter((line) => line.includes(`${directive} on ${coordinate},`))).toEqual([
        expect.stringMatching(`^espalier: ${owner}: .*auth: false`),
      ]);
    }
  }
});

it('a schema with requirements that a function returns, or that replaces another, is an error in development', async () => {
  const schema = build('type Query { open: String salary: String @authenticated }');
  const errors: unknown[] = [];
  const handler = graphqlHTTP(buildSchema('type Query { open: String }'));
  await expect(handler.replace(schema)).rejects.toThrow('@authenticated on Query.salary');
  const app = graphqlHTTP(() => schema, {
    rootValue: { open: 'OPEN' },
    onError: (error) => errors.push(error),
  });
  const server = http.createServer((req, res) => app(req, res, () => undefined));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const response = await fetch(`http://127.0.0.1:${port}/?query={open}`);
  expect(response.status).toBe(500);
  expect(await response.text()).not.toContain('OPEN');
  expect(String(errors[0])).toContain('@authenticated on Query.salary');
  server.close();
});

it('auth: false serves a schema with requirements to everybody', async () => {
  const service = await serve({ auth: false });
  expect((await service.post('{ secret }')).body).toEqual({ data: { secret: 'SECRET' } });
  await service.close();
});

it('the option "auth" with a schema that lost its directives is a warning', () => {
  const whole = build('type Query { salary: String @authenticated }');
  const auth = { scopes: scopesOf };
  graphqlHTTP(whole, { auth });
  expect(warnings()).toEqual([]);
  graphqlHTTP(buildSchema(printSchema(whole)), { auth });
  expect(warnings()).toEqual([expect.stringContaining('the schema requires nothing of callers')]);
  graphqlHTTP(buildClientSchema(introspectionFromSchema(whole)), { auth });
  // Once per process.
  expect(warnings()).toHaveLength(1);
});

it('a requirement on an argument of a directive is an error, because nothing enforces it', () => {
  const schema = build('directive @d(a: Int @authenticated) on FIELD type Query { a: Int @authenticated }');
  expect(() => graphqlHTTP(schema, { auth: { scopes: scopesOf } })).toThrow('@d(a:)');
});

it('@idempotent of a schema without the option "idempotency" is an error in development, and a warning in production', () => {
  const schema = buildSchema(`${idempotentTypeDefs} type Query { a: Int } type Mutation { pay: Int }`);
  process.env['NODE_ENV'] = 'development';
  expect(() => graphqlHTTP(schema)).toThrow('@idempotent');
  expect(() => graphqlHTTP(schema, { caller: () => null, idempotency: true })).not.toThrow();
  process.env['NODE_ENV'] = 'production';
  graphqlHTTP(schema);
  expect(warnings().filter((line) => line.includes('@idempotent'))).toHaveLength(1);
});

it('@cost of a schema without the options "cost" and "budget" is a warning', () => {
  const schema = buildSchema(`
    directive @cost(weight: String!) on FIELD_DEFINITION
    type Query { heavy: Int @cost(weight: "50") }`);
  graphqlHTTP(schema, { cost: { maxCost: 100 } });
  expect(warnings()).toEqual([]);
  graphqlHTTP(schema);
  expect(warnings()).toEqual([expect.stringContaining('@cost on Query.heavy')]);
});
