// Runs the suite on the Node at hand with graphql 16, and with graphql 17 where that runs (Node 22 and later); then once
// more with graphql-js as the default engine.
// With --matrix, or CI=true, on Node 20, 22, 24 and 26: the other lines come from npm as plain binaries.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { binaryOf } from './node-lines.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const args = process.argv.slice(2).filter((arg) => arg !== '--matrix');
const matrix = process.argv.includes('--matrix') || process.env.CI === 'true';
const here = Number(process.versions.node.split('.')[0]);
// Runs once: the browser, the tarball, the consumers, the papers.
const once = ['browser', 'package', 'consumers', 'readme', 'boundaries'];
// Runs once on each Node: another graphql takes no part in it, and would only repeat it.
const elsewhere = ['options', 'static/', 'server/', 'examples/', 'pubsub/(memory|processes|redis)'];
// Most of these wait for sockets and timers: two at a time, where Jest would take all cores but one.
const without = (names) => [
  '--maxWorkers=2',
  '--passWithNoTests',
  '--testPathIgnorePatterns',
  ...names.map((name) => `<rootDir>/test/${name}`),
];

jest(process.execPath, here, 16, []);
if (here >= 22) jest(process.execPath, here, 17, with17(false));
jest(process.execPath, here, 16, without(once), 'graphql-js');
if (matrix) {
  for (const line of [20, 22, 24, 26]) {
    if (line === here) continue;
    const node = binaryOf(line);
    jest(node, line, 16, without(once));
    if (line >= 22) jest(node, line, 17, with17(here >= 22 || line > 22));
  }
}

/** The suite for graphql 17; the IDE in the browser on the first Node that runs it. */
function with17(again) {
  return without([again ? 'browser' : 'browser-(?!graphiql)', ...once.slice(1), ...elsewhere]);
}

function jest(node, line, graphql, extra, engine = 'compiled') {
  console.log(`\n=== Node ${line}, graphql ${graphql}, engine ${engine} ===`);
  const mapped = ['--moduleNameMapper', JSON.stringify(mapperFor(graphql, engine))];
  // A list of patterns takes every word behind it: what was asked for comes first.
  const { status } = spawnSync(node, ['node_modules/jest/bin/jest.js', ...args, ...mapped, ...extra], {
    cwd: root,
    stdio: 'inherit',
    timeout: 15 * 60_000, // a suite that hangs has failed
    env: { ...process.env, GRAPHQL_MAJOR: String(graphql) },
  });
  if (status !== 0) process.exit(status ?? 1);
}

function mapperFor(graphql, engine) {
  return {
    ...(graphql === 17 ? { '^graphql$': 'graphql17' } : {}),
    ...(engine === 'compiled'
      ? {}
      : { '/core/default-engine\\.ts$': '<rootDir>/test/engine/graphql-js-by-default.ts' }),
    '^espalier$': '<rootDir>/middleware/index.ts',
    '^espalier/(static|graphql|subscriptions|server|pubsub)$': '<rootDir>/middleware/$1.ts',
  };
}
