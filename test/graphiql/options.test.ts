import { buildSchema } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { resolveGraphiQLOptions } from '../../src/graphiql/options.ts';

const schema = buildSchema('type Query { hello: String }');
const configOf = (options: object) => JSON.parse(resolveGraphiQLOptions(options).config);

describe('the options of GraphiQL', () => {
  it('GraphiQL has a default for every option', () => {
    const { title, config, policy } = resolveGraphiQLOptions({});
    expect(title).toBe('GraphiQL');
    expect(JSON.parse(config)).toEqual({
      headersEditor: true,
      method: 'POST',
      persistHeaders: false,
      subscriptions: true,
      theme: 'system',
      inputValueDeprecation: true,
      schemaDescription: true,
    });
    expect(policy?.('abc')).toContain("'nonce-abc'");
  });

  it('GraphiQL accepts the option names of express-graphql', () => {
    const headers = '{"Authorization":"Bearer t0k"}';
    expect(
      configOf({
        defaultQuery: '{ hello }',
        headerEditorEnabled: false,
        shouldPersistHeaders: true,
        headers,
        subscriptionEndpoint: 'ws://localhost/live',
      }),
    ).toMatchObject({
      defaultQuery: '{ hello }',
      headersEditor: false,
      persistHeaders: true,
      defaultHeaders: headers,
      subscriptionEndpoint: 'ws://localhost/live',
    });
  });

  it('GraphiQL formats headers that are an object', () => {
    expect(configOf({ defaultHeaders: { a: 'b' } }).defaultHeaders).toBe('{\n  "a": "b"\n}');
  });

  it.each([
    [{ title: 1 }, /option "graphiql.title" is 1; accepted: a string/],
    [{ theme: 'pink' }, /option "graphiql.theme" is "pink"; accepted: 'system', 'light' or 'dark'/],
    [{ headersEditor: 'yes' }, /option "graphiql.headersEditor" is "yes"; accepted: a boolean/],
    [
      { defaultHeaders: { a: 1 } },
      /option "graphiql.defaultHeaders" is \{"a":1\}; accepted: JSON text, or an object of strings/,
    ],
    [{ endpoint: 'http://' }, /option "graphiql.endpoint" is "http:\/\/"; accepted: a URL/],
    [{ endpoint: 'http://a;script-src/' }, /option "graphiql.endpoint" is/],
    [{ subscriptionEndpoint: 'javascript:alert(1)' }, /option "graphiql.subscriptionEndpoint" is/],
    [{ csp: 'none' }, /option "graphiql.csp" is "none"; accepted: a boolean, or extra sources by directive/],
    [
      { csp: { 'img-src': "x; script-src 'unsafe-inline'" } },
      /"graphiql.csp" is .*accepted: directives as in the header/,
    ],
    [{ csp: { 'img-src': ['a', 'b, c'] } }, /"graphiql.csp" is/],
    [{ csp: { 'img-src': 'a\r\nX-Header: b' } }, /"graphiql.csp" is/],
    [{ csp: { imgSrc: 'a' } }, /"graphiql.csp" is \{"imgSrc":"a"\}/],
    [
      { headers: '{}', defaultHeaders: '{}' },
      /"headers" .* is the name in express-graphql of "defaultHeaders"/,
    ],
    [{ titel: 'x' }, /unknown option "graphiql.titel"; did you mean "graphiql.title"\?/],
    [{ websocketClient: 'v1' }, /unknown option "graphiql.websocketClient"/],
  ])('graphqlHTTP rejects the GraphiQL options %j', (graphiql, message) => {
    expect(() => graphqlHTTP(schema, { graphiql: graphiql as object })).toThrow(
      expect.objectContaining({
        name: 'TypeError',
        code: 'ERR_OPTION',
        message: expect.stringMatching(message),
      }),
    );
  });

  it.each([1, 'true', null, []])('graphqlHTTP rejects graphiql: %j', (graphiql) => {
    expect(() => graphqlHTTP(schema, { graphiql: graphiql as never })).toThrow(
      /option "graphiql" is .*; accepted: a boolean, .*options, or a function of the request/,
    );
  });
});
