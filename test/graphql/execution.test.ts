/** @tags graphql engine */
// Cases of the test suites of express-graphql and graphql-http that no other file covers.
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

  it('graphqlHTTP lists validation errors with their locations', async () => {
    const { body } = await post({ query: '{\n  nope\n  never\n}' }, { introspection: false }).expect(400);
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

  it('graphqlHTTP waits for asynchronous resolvers', async () => {
    await post({ query: '{ later hello }' }).expect(200, { data: { later: 'in a while', hello: 'world' } });
  });

  it('graphqlHTTP calls typeResolver for abstract types', async () => {
    const typeResolver: GraphQLTypeResolver<unknown, unknown> = () => 'Dog';
    const query = '{ animal { __typename ... on Dog { barks } } }';
    await post({ query }, { typeResolver }).expect(200, {
      data: { animal: { __typename: 'Dog', barks: true } },
    });
  });

  it('graphqlHTTP executes the operation of operationName', async () => {
    const query = 'query A { hello } query B { later }';
    await post({ query, operationName: 'B' }).expect(200, { data: { later: 'in a while' } });
  });

  it('graphqlHTTP sends errors, data and extensions in this order', async () => {
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

  it('graphqlHTTP sends 200, null, the path and the location for a failed field', async () => {
    await post({ query: '{ hello\n  fail }' }).expect(200, {
      errors: [{ message: 'on purpose', locations: [{ line: 2, column: 3 }], path: ['fail'] }],
      data: { hello: 'world', fail: null },
    });
  });

  it('graphqlHTTP sends the line and column of a syntax error', async () => {
    const { body } = await post({ query: '{\n  hello(\n}' }).expect(400);
    expect(body.errors).toEqual([
      {
        message: expect.stringMatching(/^Syntax Error: Expected Name/),
        locations: [{ line: 3, column: 1 }],
        extensions: { code: 'GRAPHQL_PARSE_FAILED' },
      },
    ]);
  });

  it('graphqlHTTP serves GraphiQL for a mutation in the URL and does not run it', async () => {
    const before = mutations;
    const page = await request(serve()).get('/graphql?query=mutation{add}').set('accept', 'text/html');
    expect([page.status, mutations]).toEqual([200, before]);
    expect(page.text).toMatch(/<title>GraphiQL<\/title>/);
  });

  it('graphqlHTTP writes nothing of the URL into the GraphiQL page', async () => {
    const malicious = '</script><script>alert(1)</script>';
    const search = new URLSearchParams({ query: malicious, variables: malicious, operationName: malicious });
    const { text } = await request(serve()).get(`/graphql?${search}`).set('accept', 'text/html').expect(200);
    expect(text).not.toMatch(/alert/);
  });
});
