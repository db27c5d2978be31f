/** @tags once slow */
import { spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { buildSchema, introspectionFromSchema } from 'graphql';
import { makeFolder } from '../kit.ts';
import { run } from '../run-command.ts';

const root = join(__dirname, '../..');
const SDL = 'type Query { hello: String, user(id: ID!): User } type User { name: String }';

function write(name: string, content: unknown): string {
  const path = join(makeFolder(), name);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

const check = (schema: string, documents: string, ...more: string[]) =>
  run('check', '--schema', schema, '--documents', documents, ...more);

const FITS = { abc: '{ hello }', def: 'query User($id: ID!) { user(id: $id) { name } }' };
const UNFIT = { ...FITS, old: 'query Old {\n  old\n  user { name }\n}', bad: '{' };

it.each([
  ['SDL', () => write('schema.graphql', SDL)],
  ['an introspection result', () => write('schema.json', introspectionFromSchema(buildSchema(SDL)))],
  [
    'a response to the introspection query',
    () => write('schema.json', { data: introspectionFromSchema(buildSchema(SDL)) }),
  ],
])('espalier check reads the schema from %s', async (_name, make) => {
  const { code, out, err } = await check(make(), write('documents.json', FITS));
  expect([code, out, err]).toEqual([0, '2 documents fit the schema\n', '']);
});

it('espalier check lists the documents that do not fit, with names and positions, and exits with 1', async () => {
  const { code, out, err } = await check(write('schema.graphql', SDL), write('documents.json', UNFIT));
  expect([code, out]).toEqual([1, '']);
  expect(err.split('\n')).toEqual([
    'Old (old)',
    '  2:3 Cannot query field "old" on type "Query".',
    // graphql 16 and 17 name the argument differently.
    expect.stringMatching(/^ {2}3:3 .* of type "ID!" is required, but it was not provided\.$/),
    'bad',
    expect.stringMatching(/^ {2}1:2 Syntax Error/),
    '',
    '2 of 4 documents do not fit the schema',
    '',
  ]);
});

it("espalier check reads Apollo's manifest, directories and several manifests", async () => {
  const manifest = {
    format: 'apollo-persisted-query-manifest',
    version: 1,
    operations: [{ id: 'abc', name: 'Hello', type: 'query', body: '{ hello }' }],
  };
  const directory = join(makeFolder(), 'documents');
  mkdirSync(directory);
  writeFileSync(join(directory, 'def.graphql'), 'query Named { nope }');
  const schema = write('schema.graphql', SDL);
  const both = await check(schema, write('manifest.json', manifest), '--documents', directory);
  expect([both.code, both.err]).toEqual([1, expect.stringContaining('Named (def)')]);
  expect((await check(schema, write('manifest.json', manifest), '--quiet')).out).toBe('');
});

it('espalier check prints a report as JSON', async () => {
  const { code, out } = await check(write('schema.graphql', SDL), write('documents.json', UNFIT), '--json');
  expect(code).toBe(1);
  expect(JSON.parse(out)).toMatchObject({
    documents: 4,
    unfit: [
      { id: 'old', name: 'Old', errors: [{ locations: [{ line: 2, column: 3 }] }, {}] },
      { id: 'bad', errors: [{}] },
    ],
  });
});

it('espalier check applies the limits of graphqlHTTP, or those that --limit sets', async () => {
  const schema = write('schema.graphql', SDL);
  const documents = write('documents.json', { abc: '{ user(id: 1) { name } }' });
  expect((await check(schema, documents)).code).toBe(0);
  const { code, err } = await check(schema, documents, '--limit', 'depth=1', '--limit', 'tokens=100');
  expect([code, err]).toEqual([1, expect.stringMatching(/nested deeper than 1 levels|depth/)]);
  const wrong = await check(schema, documents, '--limit', 'token=5');
  expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining('did you mean "limits.tokens"?')]);
});

it.each([
  [[], /no command; expected: compress, check/],
  [['check'], /no schema; pass its file with --schema/],
  [['check', '--schema', 'a.graphql'], /no documents; pass their file or directory with --documents/],
  [['check', '--schema', 'a', '--documents', 'b', 'c'], /unexpected argument "c"/],
  [['check', '--schema', 'a', '--documents', 'b', '--limit', 'depth'], /--limit is "depth"/],
  [['check', '--no'], /'--no'/],
])('espalier %j exits with 2 and prints the usage', async (args, message) => {
  const { code, err } = await run(...args);
  expect(code).toBe(2);
  expect(err).toMatch(message);
  expect(err).toMatch(/espalier check \[options\] --schema <file>/);
});

it('espalier check exits with 2 for files that it cannot read', async () => {
  const schema = write('schema.graphql', SDL);
  const documents = write('documents.json', FITS);
  for (const [one, other, message] of [
    ['missing.graphql', documents, /^espalier: missing\.graphql: ENOENT/],
    [schema, 'missing.json', /^espalier: missing\.json: ENOENT/],
    [write('bad.graphql', 'type {'), documents, /bad\.graphql: Syntax Error/],
    [write('bad.json', {}), documents, /bad\.json: /],
    [schema, write('list.json', []), /list\.json: the manifest contains \[\]/],
    [schema, write('empty.json', {}), /no documents/],
  ] as const) {
    const { code, out, err } = await check(one, other);
    expect([code, out]).toEqual([2, '']);
    expect(err).toMatch(message);
    expect(err).not.toMatch(/Usage/);
  }
});

it('espalier check names the kinds of schema files if the schema is a directory or another file', () => {
  const documents = write('documents.json', FITS);
  for (const schema of [__dirname, write('schema.txt', SDL)]) {
    // Without Jest, which imports modules in its own way.
    const { status, stderr } = spawnSync(
      process.execPath,
      ['--import', 'tsx', 'src/cli/main.ts', 'check', '--schema', schema, '--documents', documents],
      { cwd: root, encoding: 'utf8' },
    );
    expect([status, stderr]).toEqual([2, expect.stringContaining(`${schema}: not a schema; expected: SDL`)]);
  }
});

it('espalier check ends after its report, also if the module of the schema keeps connections open', () => {
  const schema = write(
    'schema.mjs',
    `import { createServer } from 'node:net';
     import { buildSchema } from 'graphql';
     createServer().listen(0, '127.0.0.1');
     setInterval(() => {}, 1000);
     export const schema = buildSchema(${JSON.stringify(SDL)});`,
  );
  // A report of several writes to the pipe.
  const texts = Object.fromEntries(Array.from({ length: 2000 }, (_, id) => [`id-${id}`, '{ unknown }']));
  const documents = write('documents.json', texts);
  symlinkSync(join(root, 'node_modules'), join(dirname(schema), 'node_modules'), 'junction');
  const { status, signal, stderr } = spawnSync(
    process.execPath,
    ['--import', 'tsx', 'src/cli/main.ts', 'check', '--schema', schema, '--documents', documents],
    { cwd: root, encoding: 'utf8', timeout: 50_000 },
  );
  expect([status, signal]).toEqual([1, null]);
  expect(stderr).toMatch(/2000 of 2000 documents do not fit the schema\n$/);
});
