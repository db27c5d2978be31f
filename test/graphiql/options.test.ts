/** @tags once */
import { buildSchema } from 'graphql';
import { graphqlHTTP, Method } from '../../middleware/index.ts';
import { resolveGraphiQLOptions } from '../../src/graphiql/options.ts';

const configOf = (options: object) => JSON.parse(resolveGraphiQLOptions(options).config);

describe('the options of GraphiQL', () => {
  it('GraphiQL has a default for every option', () => {
    const { title, config, policy } = resolveGraphiQLOptions({});
    expect(title).toBe('GraphiQL');
    expect(JSON.parse(config)).toEqual({
      headersEditor: true,
      method: 'POST',
      persistHeaders: false,
      theme: 'system',
    });
    expect(policy?.('abc')).toContain("'nonce-abc'");
  });

  it('GraphiQL names its options to users of express-graphql', () => {
    const message = (options: object) => {
      try {
        return resolveGraphiQLOptions(options);
      } catch (error) {
        return String(error);
      }
    };
    expect(message({ headerEditorEnabled: false })).toContain('use graphiql.headersEditor');
    expect(message({ shouldPersistHeaders: true })).toContain('use graphiql.persistHeaders');
    expect(message({ headers: '{"Authorization":"Bearer t0k"}' })).toContain('use graphiql.defaultHeaders');
  });

  it('GraphiQL formats headers that are an object', () => {
    expect(configOf({ defaultHeaders: { a: 'b' } }).defaultHeaders).toBe('{\n  "a": "b"\n}');
  });
});

const schema = buildSchema('type Query { hello: String }');

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
