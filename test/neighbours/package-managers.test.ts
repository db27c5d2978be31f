/** @tags once */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { npm, pack, scratchFolder } from '../tarball.ts';
import { EXPECTED, exercise } from './exercise.ts';

// The packed tarball in an empty folder, as each package manager installs it.

jest.setTimeout(180_000);

const modules = join(__dirname, 'node_modules');
const PNPM = join(modules, 'pnpm/bin/pnpm.cjs');
const YARN = join(modules, '@yarnpkg/cli-dist/bin/yarn.js');
const BUN = join(modules, '@oven/bun-linux-x64/bin/bun');
/** ES modules need a loader of Yarn besides `.pnp.cjs`. */
const REGISTER =
  'data:text/javascript,import { register } from "node:module"; import { pathToFileURL } from "node:url"; register("./.pnp.loader.mjs", pathToFileURL("./"));';
const folder = scratchFolder();

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a package manager, whose caches stay in the folder. */
function run(cwd: string, command: string, ...args: string[]): void {
  const env = {
    ...process.env,
    NODE_ENV: '',
    YARN_ENABLE_TELEMETRY: '0',
    YARN_GLOBAL_FOLDER: join(folder, 'yarn'),
    BUN_INSTALL_CACHE_DIR: join(folder, 'bun'),
    npm_config_store_dir: join(folder, 'pnpm'),
  };
  execFileSync(command, args, { cwd, env, stdio: ['ignore', 'ignore', 'inherit'] });
}

const install: Record<string, (cwd: string, packages: string[]) => void> = {
  npm: (cwd, packages) => void npm(['install', '--ignore-scripts', '--prefer-offline', ...packages], cwd),
  // Each package finds only the packages that it names.
  pnpm: (cwd, packages) => run(cwd, process.execPath, PNPM, 'add', '--ignore-scripts', ...packages),
  // There is no node_modules: a package that does not name what it loads cannot start.
  'Yarn PnP': (cwd, packages) => {
    writeFileSync(join(cwd, 'yarn.lock'), '');
    run(cwd, process.execPath, YARN, 'add', '--mode=skip-build', ...packages);
  },
  Bun: (cwd, packages) => run(cwd, BUN, 'add', '--ignore-scripts', ...packages),
};

it.each(Object.keys(install))(
  'staticFiles, graphqlHTTP, uploads, GraphiQL and attachSubscriptions work as %s installs them',
  async (name) => {
    const cwd = join(folder, name.replace(' ', '-'));
    mkdirSync(cwd);
    writeFileSync(join(cwd, 'package.json'), '{ "name": "consumer", "private": true }');
    const tarball = name === 'Yarn PnP' ? `espalier@file:${pack().path}` : pack().path;
    install[name]?.(cwd, [tarball, 'express@5', 'graphql@16']);
    cpSync(join(__dirname, 'built-server.mjs'), join(cwd, 'server.mjs'));
    const args =
      name === 'Yarn PnP' ? ['--require', './.pnp.cjs', '--import', REGISTER, 'server.mjs'] : ['server.mjs'];
    expect(await exercise(process.execPath, args, cwd)).toEqual(EXPECTED);
  },
);
