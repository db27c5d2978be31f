// What the tests of express-graphql (1 to 74) and graphql-http (75 to 80) ask of a server, by number in brackets: the cases
// that no other file here has. The other numbers stand in the names of tests beside this one and in test/graphiql.
import { buildSchema, GraphQLError, type GraphQLTypeResolver } from 'graphql';
import request from 'supertest';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import type { GraphQLOptions } from '../../types/graphql.ts';
import { eachExpress } from '../express.ts';

const schema = buildSchema(`
  interface Animal { name: String }
  type Dog implements Animal { name: String barks: Boolean }
  type Query { hello: String later: String animal: Animal fail: String }
  type Mutation { add: Int }
`);
let mutations = 0;
const rootValue = {
  hello: 'world',
  later: async () => 'in a while',
  animal: { name: 'Rex', barks: true },
  fail: () => {
    throw new GraphQLError('on purpose');
  },
  add: () => ++mutations,
};

eachExpress((express) => {
  const serve = (options: GraphQLOptions = {}) =>
    express().use('/graphql', graphqlHTTP(schema, { rootValue, ...options }));
  const post = (body: object, options?: GraphQLOptions) =>
    request(serve(options)).post('/graphql').set('accept', 'application/graphql-response+json').send(body);

  it('lists the errors of validation with their places [4]', async () => {
    const { body } = await post({ query: '{\n  nope\n  never\n}' }, { suggestions: false }).expect(400);
    expect(body).toEqual({
      errors: [
        {
          message: 'Cannot query field "nope" on type "Query".',
          locations: [{ line: 2, column: 3 }],
          extensions: { code: 'GRAPHQL_VALIDATION_FAILED' },
        },
        {
          message: 'Cannot query field "never" on type "Query".',
          locations: [{ line: 3, column: 3 }],
          extensions: { code: 'GRAPHQL_VALIDATION_FAILED' },
        },
      ],
    });
  });

  it('waits for resolvers that take their time [9]', async () => {
    await post({ query: '{ later hello }' }).expect(200, { data: { later: 'in a while', hello: 'world' } });
  });

  it('asks the application for the type of an object [14]', async () => {
    const typeResolver: GraphQLTypeResolver<unknown, unknown> = () => 'Dog';
    const query = '{ animal { __typename ... on Dog { barks } } }';
    await post({ query }, { typeResolver }).expect(200, {
      data: { animal: { __typename: 'Dog', barks: true } },
    });
  });

  it('picks the operation that the body names [24]', async () => {
    const query = 'query A { hello } query B { later }';
    await post({ query, operationName: 'B' }).expect(200, { data: { later: 'in a while' } });
  });

  it('indents every answer when told to [34]', async () => {
    const data = await post({ query: '{ hello }' }, { pretty: true });
    expect(data.text).toBe('{\n  "data": {\n    "hello": "world"\n  }\n}\n');
    const refusal = await post({ query: '' }, { pretty: true });
    expect(refusal.text).toMatch(/^\{\n {2}"errors": \[\n {4}\{\n/);
  });

  it('answers with errors, data and extensions in this order [36]', async () => {
    const engine = () => ({
      extensions: { took: 1 },
      data: { hello: null },
      errors: [new GraphQLError('on purpose')],
    });
    const orders = [await post({ query: '{ hello fail }' }), await post({ query: '{ hello }' }, { engine })];
    expect(orders.map(({ body }) => Object.keys(body))).toEqual([
      ['errors', 'data'],
      ['errors', 'data', 'extensions'],
    ]);
  });

  it('answers a field that fails with 200, null, its path and its place [37]', async () => {
    await post({ query: '{ hello\n  fail }' }).expect(200, {
      errors: [{ message: 'on purpose', locations: [{ line: 2, column: 3 }], path: ['fail'] }],
      data: { hello: 'world', fail: null },
    });
  });

  it('answers a syntax error with its line and column [42]', async () => {
    const { body } = await post({ query: '{\n  hello(\n}' }).expect(400);
    expect(body.errors).toEqual([
      {
        message: expect.stringMatching(/^Syntax Error: Expected Name/),
        locations: [{ line: 3, column: 1 }],
        extensions: { code: 'GRAPHQL_PARSE_FAILED' },
      },
    ]);
  });

  it('shows the IDE for a mutation in the URL, and does not run it [61]', async () => {
    const before = mutations;
    const page = await request(serve()).get('/graphql?query=mutation{add}').set('accept', 'text/html');
    expect([page.status, mutations]).toEqual([200, before]);
    expect(page.text).toMatch(/<title>GraphiQL<\/title>/);
  });

  it('puts nothing of the URL into the page [63]', async () => {
    const hostile = '</script><script>alert(1)</script>';
    const search = new URLSearchParams({ query: hostile, variables: hostile, operationName: hostile });
    const { text } = await request(serve()).get(`/graphql?${search}`).set('accept', 'text/html').expect(200);
    expect(text).not.toMatch(/alert/);
  });
});

/** Where we differ on purpose: rules are added, never replaced, since limits and caches count on them. */
it.each([
  ['a validate of its own [64]', { validate: () => [] }, /unknown option "validate"/],
  ['a parse of its own [67]', { parse: () => undefined }, /unknown option "parse"/],
  ['a function of rules [75]', { validationRules: () => [] }, /"validationRules" is .*; accepted: a list/],
])('refuses %s when it is made', (_what, options, message) => {
  expect(() => graphqlHTTP(schema, options as GraphQLOptions)).toThrow(message);
});
