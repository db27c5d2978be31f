/** @tags once */
import { resolveGraphiQLOptions } from '../../src/graphiql/options.ts';

describe('the options of GraphiQL', () => {
  it('GraphiQL has a default for every option', () => {
    const { config, policy } = resolveGraphiQLOptions({});
    expect(JSON.parse(config)).toEqual({});
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
    expect(message({ headerEditorEnabled: false })).toContain('can always edit headers');
    expect(message({ shouldPersistHeaders: true })).toContain('headers are not stored');
    expect(message({ headers: '{"Authorization":"Bearer t0k"}' })).toContain('does not store them');
  });
});
