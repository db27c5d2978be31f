import { createErrorFormatter, MASKED } from '../../src/graphql/errors.ts';
import { CASES, makeSchema } from './cases.ts';
import { engines, prepare, seen, settingsOf } from './compare.ts';

const schema = makeSchema();

describe.each(Object.entries(engines))('executing with %s', (_name, engine) => {
  it.each(CASES)('$title', async ({ query, variables, root, data, errors = [] }) => {
    const run = prepare(engine, schema, query);
    const outcome = await run({ rootValue: fresh(root), variableValues: variables });
    const body = JSON.parse(outcome.body.toString());
    expect(body.data).toEqual(data);
    expect(Object.keys(body)).toEqual(errors.length === 0 ? ['data'] : ['errors', 'data']);
    const shown = outcome.errors.map((error) =>
      [
        error.message,
        error.path?.join('.'),
        error.locations?.map(({ line, column }) => `${line}:${column}`).join() ?? '',
      ].join(' '),
    );
    expect(shown).toEqual(errors);
  });
});

describe('the bytes of the compiled engine', () => {
  it.each(CASES)('are those of graphql-js: $title', async ({ query, variables, root }) => {
    const inputs = () => ({ rootValue: fresh(root), variableValues: variables });
    const reference = seen(await prepare(engines.graphqlJs, schema, query)(inputs()));
    const ours = await prepare(engines.compiled, schema, query)(inputs());
    expect(seen(ours)).toBe(reference);
  });

  it.each(CASES)('are those of graphql-js where errors are masked: $title', async (example) => {
    const { query, variables, root } = example;
    const masking = settingsOf({
      maskedMessage: MASKED,
      formatErrors: createErrorFormatter({ formatError: undefined }),
    });
    const inputs = () => ({ rootValue: fresh(root), variableValues: variables });
    const reference = seen(await prepare(engines.graphqlJs, schema, query, masking)(inputs()));
    expect(seen(await prepare(engines.compiled, schema, query, masking)(inputs()))).toBe(reference);
  });

  it('are made at once when every resolver is', () => {
    const run = prepare(engines.compiled, schema, '{ text nodes { name } }');
    expect(run({ rootValue: { text: 'a', nodes: [{ name: 'b' }] } })).toMatchObject({ kind: 'data' });
  });
});

/** Some roots are changed by their mutations. */
function fresh(root: unknown): unknown {
  return typeof root === 'object' && root !== null && 'total' in root ? { ...root } : root;
}
