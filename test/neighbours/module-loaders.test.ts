/** @tags once */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { npm, pack, root, scratchFolder, type Tarball, unpack } from '../tarball.ts';
import { EXPECTED, exercise } from './exercise.ts';

const { dependencies, devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const folder = scratchFolder();
const project = join(folder, 'project');
let tarball: Tarball;

beforeAll(() => {
  tarball = pack();
  unpack(tarball, project);
  for (const name of [...Object.keys(dependencies), 'graphql', 'express'])
    link(name, join(root, 'node_modules', name));
  writeFileSync(join(project, 'package.json'), '{ "name": "consumer", "private": true }');
}, 60_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function link(name: string, source: string): void {
  const target = join(project, 'node_modules', name);
  mkdirSync(dirname(target), { recursive: true });
  symlinkSync(source, target);
}

/** Runs a script of Node in the project, and returns its output after a failure. */
function run(args: string[]): string {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: project, encoding: 'utf8' });
  return status === 0 ? '' : stdout + stderr;
}

/** The test of a user: it requests a result and the page with its script. */
const TEST = `
test('the API and GraphiQL respond', async () => {
  const server = express().use('/graphql', graphqlHTTP(buildSchema('type Query { hello: String }'))).listen(0);
  const url = 'http://127.0.0.1:' + server.address().port + '/graphql';
  expect(await (await fetch(url + '?query={hello}')).json()).toEqual({ data: { hello: null } });
  const page = await (await fetch(url, { headers: { accept: 'text/html' } })).text();
  expect((await fetch(new URL(/src="([^"]+)"/.exec(page)[1], url))).status).toBe(200);
  server.close();
  server.closeAllConnections();
});`;

it('a test under Jest that requires espalier can request results and GraphiQL', () => {
  const load = `const express = require('express');
const { graphqlHTTP } = require('espalier');
const { buildSchema } = require('graphql');`;
  writeFileSync(join(project, 'api.test.js'), load + TEST);
  const jest = join(root, 'node_modules/jest/bin/jest.js');
  expect(run([jest, '--rootDir', project, '--testMatch', '**/api.test.js'])).toBe('');
}, 60_000);

it('a test under Vitest that imports espalier can request results and GraphiQL', () => {
  link('vitest', join(__dirname, 'node_modules/vitest'));
  const load = `import express from 'express';
import { graphqlHTTP } from 'espalier';
import { buildSchema } from 'graphql';
import { expect, test } from 'vitest';`;
  writeFileSync(join(project, 'api.spec.mjs'), load + TEST);
  // Without the setting the test and espalier load different copies of graphql 16.
  writeFileSync(
    join(project, 'vitest.config.mjs'),
    `export default { test: { server: { deps: { inline: ['espalier'] } } } };`,
  );
  expect(run([join(__dirname, 'node_modules/vitest/vitest.mjs'), 'run', 'api.spec.mjs'])).toBe('');
}, 60_000);

describe('Yarn PnP', () => {
  const yarn = join(__dirname, 'node_modules/@yarnpkg/cli-dist/bin/yarn.js');
  const app = join(folder, 'app');
  beforeAll(() => {
    mkdirSync(app);
    const { express, graphql } = devDependencies;
    const wanted = { espalier: `file:${tarball.path}`, express, graphql };
    writeFileSync(
      join(app, 'package.json'),
      JSON.stringify({ name: 'app', private: true, dependencies: wanted }),
    );
    // Yarn does not read the settings of npm.
    const setting = (name: string): string => npm(['config', 'get', name], app).trim();
    const cafile = setting('cafile');
    const settings = {
      npmRegistryServer: setting('registry').replace(/\/$/, ''),
      ...(cafile === 'null' ? {} : { httpsCaFilePath: cafile }),
      enableTelemetry: false,
      enableImmutableInstalls: false,
    };
    writeFileSync(join(app, '.yarnrc.yml'), JSON.stringify(settings));
    writeFileSync(join(app, 'yarn.lock'), '');
    const { status, stdout } = spawnSync(process.execPath, [yarn, 'install'], { cwd: app, encoding: 'utf8' });
    if (status !== 0) throw new Error(stdout);
    const source = readFileSync(join(__dirname, 'built-server.mjs'), 'utf8');
    cpSync(join(__dirname, 'built-server.mjs'), join(app, 'server.mjs'));
    writeFileSync(join(app, 'server.cjs'), toCommonJs(source));
  }, 120_000);

  /** Replaces the imports by calls of `require`. */
  const toCommonJs = (source: string): string =>
    source
      .replace(/^import (\w+) from ('.*');$/gm, 'const $1 = require($2);')
      .replace(/^import (\{.*\}) from ('.*');$/gm, 'const $1 = require($2);');

  it.each([
    ['imports', 'server.mjs'],
    ['requires', 'server.cjs'],
  ])(
    'a server under Yarn PnP that %s espalier has every part, GraphiQL included',
    async (_how, script) => {
      expect(await exercise(process.execPath, [yarn, 'node', script], app)).toEqual(EXPECTED);
    },
    60_000,
  );
});
