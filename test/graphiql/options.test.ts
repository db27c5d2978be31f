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
});
