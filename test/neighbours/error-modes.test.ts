/** @tags once */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from '../tarball.ts';

const COUNT = 200;

/** Executes random queries with espalier, in each mode, and returns them with the results. */
const SCRIPT = `
  import { buildSchema } from 'graphql';
  import { graphqlHTTP } from 'espalier';
  import { inject } from 'espalier/testing';
  const { addResolvers, MODES, randomQuery, SDL } = await import(process.argv[1]);
  let state = 50;
  const random = (below) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return (state >> 8) % below;
  };
  const schema = addResolvers(buildSchema(SDL));
  const options = { errors: { modes: MODES }, onError: false };
  const handler = graphqlHTTP(schema, options);
  const queries = Array.from({ length: ${COUNT} }, () => randomQuery(random));
  const results = [];
  for (const query of queries) {
    for (const onError of MODES) {
      const { body } = await inject(handler, { path: '/', body: { query, onError } });
      const { data, errors = [] } = JSON.parse(String(body));
      results.push({ data, failed: errors.length > 0 });
    }
  }
  process.stdout.write(JSON.stringify({ queries, results }));
`;

function run(cwd: string, args: readonly string[], input = ''): string {
  const { stdout, stderr, status } = spawnSync(process.execPath, args, {
    cwd,
    input,
    encoding: 'utf8',
    maxBuffer: 512 * 1024 * 1024,
  });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

it('each error mode has the data of grafast, for random queries with fields that fail in each way', () => {
  const module = pathToFileURL(join(__dirname, 'failing-schema.mjs')).href;
  const own = JSON.parse(run(root, ['--input-type=module', '--eval', SCRIPT, module]));
  const other = JSON.parse(run(join(__dirname, 'recipes'), ['modes.mjs'], JSON.stringify(own.queries)));
  expect(other.length).toBe(COUNT * 3);
  const failures = new Set(own.results.map(({ failed }: { readonly failed: boolean }) => failed));
  expect(failures).toEqual(new Set([true, false]));
  for (const [index, result] of other.entries()) {
    const query = own.queries[Math.floor(index / 3)];
    expect([query, index % 3, own.results[index]]).toEqual([query, index % 3, result]);
  }
}, 120_000);
