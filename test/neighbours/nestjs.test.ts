/** @tags once */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { freePort, nodeOf, startProgram } from '../programs.ts';
import { snippets } from '../snippets.ts';
import { pack, root, scratchFolder, unpack } from '../tarball.ts';

jest.setTimeout(180_000);

// examples/nestjs as a project of its own, with the packages that its package.json names and no others.

const folder = scratchFolder();
const example = join(root, 'examples', 'nestjs');
const { dependencies, devDependencies } = JSON.parse(readFileSync(join(example, 'package.json'), 'utf8')) as {
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
};

/** Where each package is installed; most have one copy of graphql in common. */
const OTHER_PLACES: Readonly<Record<string, string>> = {
  '@types/node': 'node_modules/@types/node',
  typescript: 'test/neighbours/node_modules/typescript6',
};
const placeOf = (name: string): string =>
  join(root, OTHER_PLACES[name] ?? join('test/neighbours/recipes/node_modules', name));
const installed = Object.entries({ ...dependencies, ...devDependencies }).filter(
  ([name]) => name !== 'espalier',
);

beforeAll(() => {
  cpSync(example, folder, { recursive: true, filter: (path) => !/\/(?:dist|node_modules)$/.test(path) });
  unpack(pack(), folder);
  for (const [name] of installed) {
    mkdirSync(join(folder, 'node_modules', dirname(name)), { recursive: true });
    symlinkSync(placeOf(name), join(folder, 'node_modules', name));
  }
  // What espalier depends on itself.
  const { dependencies: own } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  for (const name of Object.keys(own).filter((each) => !(each in devDependencies)))
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name));
  for (const { name, code } of snippets('ts nestjs')) writeFileSync(join(folder, `${name}.ts`), code);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = (...args: string[]) =>
  spawnSync(nodeOf(22), args, { cwd: folder, encoding: 'utf8', env: { ...process.env, NODE_ENV: '' } });

it('examples/nestjs and the code of docs/nestjs.md compile, and the end-to-end tests pass', () => {
  expect(run('node_modules/typescript/bin/tsc').stdout).toBe('');
  const { status, stdout } = run('--test', '--test-reporter=tap', 'dist/app.e2e.test.js');
  expect([status, stdout]).toEqual([0, expect.stringMatching(/^# pass 8$/m)]);
});

it.each([
  ['the API', []],
  ['the subgraph', ['users']],
])(
  'examples/nestjs/main.ts starts %s, which is ready, and ends with SIGTERM, on Node 24',
  async (_, args) => {
    const port = await freePort();
    const env = { NODE_ENV: 'production', PORT: `${port}` };
    const stop = await startProgram(nodeOf(24), [join(folder, 'dist/main.js'), ...args], { port, env });
    const { status } = await fetch(`http://localhost:${port}/health/ready`);
    await stop();
    expect(status).toBe(200);
  },
);

const majorOf = (version = ''): string => version.replace(/^[~^]/, '').split('.')[0] ?? '';

it.each(installed)('examples/nestjs has the version of %s that the tests run with', (name, range) => {
  const { version, peerDependencies = {} } = JSON.parse(
    readFileSync(join(placeOf(name), 'package.json'), 'utf8'),
  ) as { version: string; peerDependencies?: Record<string, string> };
  expect(majorOf(range)).toBe(majorOf(version));
  const major = majorOf(dependencies['graphql']);
  expect(peerDependencies['graphql'] ?? major).toMatch(new RegExp(`(?<![.\\d])${major}\\b`));
});

it('docs/nestjs.md installs what the example needs besides Nest', () => {
  const page = readFileSync(join(root, 'docs', 'nestjs.md'), 'utf8');
  const named = [...page.matchAll(/^npm install ([^&\n]*)$/gm)].flatMap(([, names = '']) => names.split(' '));
  const names = new Set(named.map((name) => name.replace(/(?<=.)@.*/, '')));
  for (const given of ['common', 'core', 'platform-express']) names.add(`@nestjs/${given}`);
  for (const given of ['reflect-metadata', 'rxjs']) names.add(given);
  expect([...names].sort()).toEqual(Object.keys(dependencies).sort());
  expect(named).toContain(`graphql@${majorOf(dependencies['graphql'])}`);
});
