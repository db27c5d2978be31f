import { buildSchema } from 'graphql';
import { type GraphQLOptions, graphqlHTTP, Method } from '../../middleware/index.ts';

const schema = buildSchema('type Query { hello: String }');

const operationsOf = (options: GraphQLOptions, version?: '3.1' | '3.2'): Record<string, object> =>
  graphqlHTTP(schema, options).openapi('/graphql', { version }).paths['/graphql'] as Record<string, object>;

describe('openapi()', () => {
  it('openapi() describes QUERY in OpenAPI 3.2 only', () => {
    expect(Object.keys(operationsOf({}))).toEqual(['get', 'post', 'head']);
    expect(Object.keys(operationsOf({}, '3.1'))).toEqual(['get', 'post', 'head']);
    expect(Object.keys(operationsOf({}, '3.2'))).toEqual(['get', 'post', 'head', 'query']);
    expect(Object.keys(operationsOf({ methods: [Method.POST] }, '3.2'))).toEqual(['post']);
  });

  it('openapi() describes the body and the responses of QUERY', () => {
    expect(operationsOf({ batching: true, statusCodes: '2026' }, '3.2')['query']).toMatchObject({
      requestBody: { required: true, content: { 'application/json': {} } },
      responses: { 200: {}, 400: {}, 415: {}, 422: { description: expect.stringContaining('mutation') } },
    });
  });
});

describe('the option graphiql.method', () => {
  it('graphqlHTTP throws if GraphiQL would send QUERY and methods does not contain it', () => {
    const methods = [Method.GET, Method.POST];
    expect(() => graphqlHTTP(schema, { graphiql: { method: 'QUERY' }, methods })).toThrow(
      expect.objectContaining({ code: 'ERR_OPTION', message: expect.stringContaining('add Method.QUERY') }),
    );
    const endpoint = 'https://api.example.com/graphql';
    expect(() => graphqlHTTP(schema, { graphiql: { method: 'QUERY', endpoint }, methods })).not.toThrow();
    expect(() => graphqlHTTP(schema, { graphiql: { method: 'QUERY' } })).not.toThrow();
  });
});
