/** @tags node */
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { makeFolder } from '../kit.ts';

const root = resolve(__dirname, '../..');

/** Each set of options, with the names of the files that it needs in addition to those of the sets before it. */
const NEEDED: readonly (readonly [options: string, names: readonly string[]])[] = [
  ['graphqlHTTP(schema)', []],
  ['graphqlHTTP(schema, { auth: false, cost: false, usage: false, idempotency: false })', []],
  ['graphqlHTTP(schema, { clientLimits: false, httpCache: false, responseCache: false })', []],
  ["staticFiles('docs')", []],
  ['graphqlHTTP(schema, { auth: true, caller })', ['auth']],
  ['graphqlHTTP(schema, { cost: true })', ['cost']],
  ['graphqlHTTP(schema, { budget: { limit: 1 } })', []],
  ['graphqlHTTP(schema, { usage: true })', ['usage']],
  ['graphqlHTTP(schema, { idempotency: true, caller })', ['idempotency']],
  ['graphqlHTTP(schema, { clientLimits: true })', ['clients']],
  ['graphqlHTTP(schema, { httpCache: true })', ['cache']],
  ['graphqlHTTP(schema, { responseCache: true })', []],
  ['graphqlHTTP(schema, { documents: { apq: true } })', ['documents']],
  ["staticFiles('docs', { html: true, compress: true, rules: undefined })", []],
  ["staticFiles('docs', { cacheControl: 'vite', keep: { directory: folder } })", ['keep']],
  ["staticFiles('docs', { listing: true })", ['listing']],
  ["staticFiles('docs', { pages: { integrity: true } })", ['pages']],
  // A mistake reads the names of other packages.
  ["(() => { try { staticFiles('docs', { maxage: 1 }); } catch {} })()", ['replaced']],
];

/** The names of the optional files that each statement loads. */
function loadedBy(extension: string, statements: readonly string[]): readonly string[][] {
  const program = `
    import { createRequire } from 'node:module';
    import { buildSchema } from 'graphql';
    import { graphqlHTTP, staticFiles } from '${root}/dist/index.${extension}';
    const { cache } = createRequire(import.meta.url);
    const files = () => Object.keys(cache).flatMap((path) => /optional.(\\w+)\\.(?:make\\.)?cjs$/.exec(path)?.[1] ?? []);
    const schema = buildSchema('type Query { a: Int } type Mutation { a: Int }');
    const caller = () => null;
    const folder = '${makeFolder({})}';
    const known = new Set(files());
    const added = () => files().filter((name) => !known.has(name) && known.add(name));
    console.log(JSON.stringify([[...known], ...[${statements.map((each) => `() => ${each}`).join(', ')}].map((run) => {
      run();
      return added();
    })]));`;
  const args = ['--input-type=module', '--eval', program];
  return JSON.parse(execFileSync(process.execPath, args, { cwd: root, encoding: 'utf8', stdio: 'pipe' }));
}

describe('the code of an option', () => {
  it.each(['mjs', 'cjs'])(
    'espalier loads the code of an option when the first handler with it is created (%s)',
    (extension) => {
      const [imported, ...added] = loadedBy(
        extension,
        NEEDED.map(([statement]) => statement),
      );
      expect(imported).toEqual([]);
      expect(NEEDED.map(([statement], index) => [statement, added[index]])).toEqual(NEEDED);
    },
  );

  it('the test above has an option for each file', () => {
    const built = readdirSync(resolve(root, 'dist/lib/optional')).map((name) => name.split('.')[0]);
    expect([...new Set(built)].sort()).toEqual(NEEDED.flatMap(([, names]) => names).sort());
  });
});
