/** @tags once */
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { nodeOf } from '../programs.ts';
import { pack, root, scratchFolder, type Tarball, unpack } from '../tarball.ts';
import { EXPECTED, exercise } from './exercise.ts';

// The bundle of esbuild in CommonJS is a part of the single executable below, and ncc bundles with webpack.
const BUNDLERS = ['esbuild, ES module', 'rollup', 'rolldown', 'ncc'];
const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

const folder = scratchFolder();
let tarball: Tarball;
beforeAll(() => {
  tarball = pack();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Creates a project with one version of graphql, and returns the path of its server. */
function makeProject(name: string, graphql: string): string {
  const project = join(folder, name);
  if (existsSync(project)) return join(project, 'server.mjs');
  unpack(tarball, project);
  const sources = {
    ...Object.fromEntries([...Object.keys(dependencies), 'express'].map((each) => [each, each])),
    graphql,
  };
  for (const [target, source] of Object.entries(sources)) {
    const parents = [root, __dirname].map((parent) => join(parent, 'node_modules', source));
    const path = join(project, 'node_modules', target);
    mkdirSync(dirname(path), { recursive: true });
    const found = parents.find(existsSync) as string;
    symlinkSync(found, path);
  }
  cpSync(join(__dirname, 'built-server.mjs'), join(project, 'server.mjs'));
  return join(project, 'server.mjs');
}

/** Bundles the server into a folder without node_modules, and returns the messages of the bundler. */
function bundle(bundler: string, entry: string, target: string, node: string = process.execPath): string {
  const args = [join(__dirname, 'bundle.mjs'), bundler, entry, target];
  const { stderr, status } = spawnSync(node, args, { encoding: 'utf8' });
  return status === 0 ? stderr : `exit code ${status}: ${stderr}`;
}

/** Returns the command that starts a bundled server. */
function commandOf(target: string): [command: string, args: string[]] {
  if (existsSync(join(target, 'server'))) return [join(target, 'server'), []];
  const script = ['server.mjs', 'server.cjs'].find((name) => existsSync(join(target, name)));
  return [process.execPath, [String(script)]];
}

describe.each([
  ['16', 'graphql', BUNDLERS],
  // The others are built on one of these, or resolve packages as one of them does.
  ['17', 'graphql17', ['esbuild', 'webpack']],
] as const)('with graphql %s', (major, graphql, bundlers) => {
  it.each(bundlers)(
    `a server with graphql ${major} and every part of espalier works when it is built with %s`,
    async (bundler) => {
      const target = join(folder, `built-${major}-${bundler}`);
      expect(bundle(bundler, makeProject(`project-${major}`, graphql), target)).toBe('');
      expect(await exercise(...commandOf(target), target)).toEqual(EXPECTED);
    },
    120_000,
  );
});

it('a server with graphql 17 and every part of espalier works in a copy of the files that the tracer of Next.js finds', async () => {
  const target = join(folder, 'traced');
  const entry = makeProject('project-17', 'graphql17');
  // On Node 20 the tracer leaves out modules of other packages, such as graphql 17.
  const node = nodeOf(22);
  expect(bundle('traced', entry, target, node)).toBe('');
  expect(await exercise(node, [join(target, entry)], target)).toEqual(EXPECTED);
}, 120_000);

it('a server with graphql 16 and every part of espalier works as a single executable', async () => {
  const target = join(folder, 'executable');
  expect(bundle('single executable', makeProject('project-16', 'graphql'), target)).toBe('');
  // Node warns that such an application can require its own modules only.
  const expected = { ...EXPECTED, stderr: expect.not.stringContaining('espalier') };
  expect(await exercise(...commandOf(target), target)).toEqual(expected);
}, 120_000);

describe('packages that esbuild leaves out of the bundle', () => {
  // Node finds the packages next to the bundle.
  const buildWithout = (names: string): string => {
    const entry = makeProject('project-16', 'graphql');
    const target = join(dirname(entry), names);
    expect(bundle(`external: ${names}`, entry, target)).toBe('');
    return target;
  };

  it('a server works if espalier and graphql are both external', async () => {
    const target = buildWithout('espalier,graphql');
    expect(await exercise(...commandOf(target), target)).toEqual(EXPECTED);
  }, 60_000);

  it('a server with two copies of graphql ends at its start, with a message that names graphql', async () => {
    const target = buildWithout('espalier');
    const server = exercise(...commandOf(target), target);
    await expect(server).rejects.toThrow('bundle either both graphql and espalier or neither');
  }, 60_000);
});

// The server above, which runs in a copy of what the tracer finds, imports it.
it('the tracer of Next.js and Vercel finds all modules of a server that loads espalier with require', () => {
  const project = dirname(makeProject('project-16', 'graphql'));
  const entry = join(project, 'traced.cjs');
  writeFileSync(entry, "require('espalier').graphqlHTTP();");
  const found = bundle('@vercel/nft', entry, project).trim().split('\n');
  const built = readdirSync(join(root, 'dist/graphiql')).filter((name) => name.endsWith('.cjs'));
  const modules = ['index.mjs', 'lib/graphql.mjs', ...built.map((name) => `graphiql/${name}`)];
  expect(found).toEqual(expect.arrayContaining(modules.map((name) => `node_modules/espalier/dist/${name}`)));
});
