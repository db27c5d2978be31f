/** @tags node-lines graphql */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildSchema, introspectionFromSchema } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { inject } from '../../middleware/testing.ts';
import { makeFolder } from '../kit.ts';
import { run } from '../run-command.ts';

const root = join(__dirname, '../..');
const folder = makeFolder();

function write(name: string, content: unknown): string {
  const path = join(folder, name);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

const OLD = `type Query { user(id: ID, first: Int): User, find(by: Filter): User, old: String }
  type User { id: ID, name: String, email: String } input Filter { name: String, age: Int } enum Role { A B }`;
const old = write('old.graphql', OLD);

const check = (sdl: string, ...more: string[]) =>
  run('check', '--schema', write('new.graphql', sdl), '--against', old, ...more);

/** Counts operations as a server does, and returns the file. */
async function usageOf(
  ...documents: readonly (readonly [query: string, variables?: object])[]
): Promise<string> {
  const file = join(mkdtempSync(join(folder, 'usage-')), 'usage.json');
  const handler = graphqlHTTP(buildSchema(OLD), { usage: { file } });
  const headers = { 'graphql-client-name': 'web' };
  for (const [query, variables = {}] of documents)
    await inject(handler, { query, variables: { ...variables }, headers });
  await handler.usage.flush();
  return file;
}

const day = new Date().toISOString().slice(0, 10);

it('espalier check lists breaking and dangerous changes, and exits with 1 if there are breaking ones', async () => {
  const { code, out, err } = await check(OLD.replace(', old: String', '').replace('A B', 'A B C'));
  expect([code, out]).toEqual([1, '']);
  expect(err.split('\n')).toEqual([
    expect.stringMatching(/^breaking {7}.*Query\.old was removed\.$/),
    expect.stringMatching(/^dangerous {6}.*C was added/),
    '',
    '1 breaking change, 1 dangerous change',
    '',
  ]);
});

it('espalier check exits with 0 if there are only dangerous changes, or none', async () => {
  expect(await check(OLD.replace('A B', 'A B C'))).toMatchObject({ code: 0, err: '' });
  expect(await check(`${OLD} type More { a: Int }`)).toEqual({
    code: 0,
    out: 'No change that may break clients\n',
    err: '',
  });
});

it('espalier check says which changes are safe by usage, in which time, and who uses the others', async () => {
  const usage = await usageOf(
    ['{ user(id: 1) { name } }'],
    ['{ user(id: 2) { name email } }'],
    ['{ user { name } }'],
  );
  const later = OLD.replace(', old: String', '').replace(', email: String', '');
  const { code, err } = await check(later, '--usage', usage);
  expect(code).toBe(1);
  expect(err.split('\n')).toEqual([
    expect.stringMatching(/^breaking {7}.*User\.email was removed\.$/),
    `               used by web (1 operation, last on ${day})`,
    expect.stringMatching(/^safe by usage {2}.*Query\.old was removed\.$/),
    '',
    '1 breaking change, 1 breaking change safe by usage, 0 dangerous changes',
    `Usage: 3 operations on 1 day from ${day} to ${day} (UTC). A client that was not active in this time is not known`,
    '',
  ]);
  const safe = await check(OLD.replace(', old: String', ''), '--usage', usage, '--json');
  expect(safe.code).toBe(0);
  expect(JSON.parse(safe.out)).toEqual({
    usage: { from: day, to: day, days: 1, operations: 3 },
    changes: [
      {
        level: 'safe',
        type: 'FIELD_REMOVED',
        coordinate: 'Query.old',
        description: expect.any(String),
        clients: [],
      },
    ],
  });
});

const FIND = 'query ($by: Filter) { find(by: $by) { name } }';

it.each([
  ['an argument that nobody gives is removed', ', first: Int', '', 'safe'],
  ['an argument is removed', 'id: ID, first', 'first', 'breaking'],
  ['an argument that was left out becomes required', 'first: Int', 'first: Int!', 'breaking'],
  ['an argument that nobody gives changes its type', 'first: Int', 'first: String', 'safe'],
  ['a required argument is added', 'first: Int', 'first: Int, more: Int!', 'breaking'],
  ['a required argument of an unused field is added', 'old: String', 'old(a: Int!): String', 'safe'],
  ['an input field that nobody gives is removed', ', age: Int', '', 'safe'],
  ['an input field is removed', '{ name: String, age: Int }', '{ age: Int }', 'breaking'],
  ['an input field that was left out becomes required', 'age: Int', 'age: Int!', 'breaking'],
  ['a required input field is added', 'age: Int', 'age: Int, more: Int!', 'breaking'],
  ['an enum that nobody uses is removed', ' enum Role { A B }', '', 'safe'],
  ['a type changes its kind', 'input Filter { name: String, age: Int }', 'scalar Filter', 'breaking'],
])('espalier check judges by usage when %s', async (_title, pattern, replacement, level) => {
  const usage = await usageOf(['{ user(id: 1) { name } }'], [FIND, { by: { name: 'Ada' } }]);
  const { out } = await check(OLD.replace(pattern, replacement), '--usage', usage, '--json');
  const { changes } = JSON.parse(out) as { readonly changes: readonly { readonly level: string }[] };
  expect(changes.map((change) => change.level)).toEqual([level]);
});

it('espalier check adds the counts of several files', async () => {
  const files = [await usageOf(['{ user { name } }']), await usageOf(['{ old }'])];
  const { code, err } = await check(
    OLD.replace(', old: String', ''),
    ...files.flatMap((file) => ['--usage', file]),
  );
  expect([code, err]).toEqual([1, expect.stringContaining('Usage: 2 operations on 1 day')]);
});

it('espalier check prints Markdown, in which names of clients are only text', async () => {
  const client = '![x](https://a.example)|<b>';
  const usage = write('usage.json', {
    version: 1,
    days: { '2026-01-31': { [client]: { operations: 1200, coordinates: { 'Query.old': 1200 } } } },
  });
  const { code, out, err } = await check(OLD.replace(', old: String', ''), '--usage', usage, '--markdown');
  expect([code, err]).toEqual([1, '']);
  expect(out).toContain(
    '## Schema: 1 breaking change, 0 breaking changes safe by usage, 0 dangerous changes\n\n### Breaking\n',
  );
  expect(out).toContain('| Coordinate | Change | Used by |\n| --- | --- | --- |\n| `Query.old` | ');
  expect(out).toContain(
    '| \\!\\[x\\]\\(https://a.example\\)\\|\\<b\\> \\(1,200 operations, last on 2026-01-31\\) |\n',
  );
  expect(out).toContain('from 2026-01-31 to 2026-01-31 (UTC)');
});

it('espalier check compares an introspection result with a module', () => {
  const json = write('schema.json', { data: introspectionFromSchema(buildSchema(OLD)) });
  const module = write(
    'schema.mjs',
    `import { buildSchema } from 'graphql'; export default buildSchema(${JSON.stringify(OLD)});`,
  );
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction');
  const command = ['--import', 'tsx', 'src/cli/main.ts', 'check', '--schema', module, '--against', json];
  const { status, stdout, stderr } = spawnSync(process.execPath, command, { cwd: root, encoding: 'utf8' });
  expect([status, stdout, stderr]).toEqual([0, 'No change that may break clients\n', '']);
});

it('espalier check reads a schema in TypeScript where Node runs it, and says so elsewhere', () => {
  const typed = write(
    'schema.ts',
    `export const schema: Promise<object> = import('graphql').then(({ buildSchema }) => buildSchema('type Query { a: Int }'));`,
  );
  const command = ['dist/cli.mjs', 'check', '--schema', typed, '--against', typed];
  const { status, stdout, stderr } = spawnSync(process.execPath, command, { cwd: root, encoding: 'utf8' });
  if ('typescript' in process.features && process.features.typescript)
    expect([status, stdout]).toEqual([0, 'No change that may break clients\n']);
  else
    expect([status, stderr]).toEqual([
      2,
      expect.stringContaining('schema.ts: this version of Node does not run TypeScript'),
    ]);
});

it('espalier check exits with 2 if no operation was counted', async () => {
  const usage = write('none.json', { version: 1, days: {} });
  const { code, err } = await check(OLD.replace(', old: String', ''), '--usage', usage);
  expect([code, err]).toEqual([2, expect.stringContaining('none.json: no operation was counted')]);
});

it.each([
  [['--documents', 'b'], /--documents and --against are two checks/],
  [['--limit', 'depth=1'], /--limit needs --documents/],
  [['--json', '--markdown'], /two formats/],
  [['--usage', 'missing.json'], /missing\.json: ENOENT/],
  [['--usage', old], /old\.graphql: /],
])('espalier check --against exits with 2 for %j', async (more, message) => {
  const { code, out, err } = await check(OLD, ...more);
  expect([code, out]).toEqual([2, '']);
  expect(err).toMatch(message);
});

it.each([[['--usage', 'a']], [['--markdown']]])(
  'espalier check --documents exits with 2 for %j',
  async (more) => {
    const { code, err } = await run('check', '--schema', old, '--documents', old, ...more);
    expect([code, err]).toEqual([2, expect.stringContaining(`${more[0]} needs --against`)]);
  },
);
