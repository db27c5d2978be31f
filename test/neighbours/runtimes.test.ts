/** @tags once */
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pack, root, scratchFolder, unpack } from '../tarball.ts';
import { EXPECTED, exercise } from './exercise.ts';

const modules = join(__dirname, 'node_modules');
const RUNTIMES = [
  ['Node', process.execPath, ['server.mjs']],
  ['Bun', join(modules, '@oven/bun-linux-x64/bin/bun'), ['server.mjs']],
  [
    'Deno',
    join(modules, '@deno/linux-x64-glibc/deno'),
    ['run', '--allow-all', '--node-modules-dir=manual', 'server.mjs'],
  ],
] as const;

const folder = scratchFolder();
const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

beforeAll(() => {
  unpack(pack(), folder);
  const installed = [...Object.keys(dependencies), 'graphql', 'express'];
  for (const name of installed) {
    const target = join(folder, 'node_modules', name);
    mkdirSync(dirname(target), { recursive: true });
    symlinkSync(join(root, 'node_modules', name), target);
  }
  // Deno imports the packages that package.json lists.
  const wanted = Object.fromEntries(['espalier', ...installed].map((name) => [name, '*']));
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ dependencies: wanted }));
  cpSync(join(__dirname, 'built-server.mjs'), join(folder, 'server.mjs'));
}, 60_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

it.each(RUNTIMES)(
  'staticFiles, graphqlHTTP, uploads, GraphiQL and attachSubscriptions work on %s',
  async (_name, command, args) => {
    expect(await exercise(command, [...args], folder)).toEqual(EXPECTED);
  },
  60_000,
);
