// Runs the tests and prints a line per pass and a total. Arguments go to Jest: npm test -- static.
// npm test: on this Node, with graphql 16 and the compiled engine; without the slow tests unless one is named.
// npm run test:all (--all): also with graphql-js as the engine, with graphql 17, on other versions of Node, with the other
// versions of TypeScript (these come from npm the first time), with Express 4 in the browser, and with more random cases.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { graphql17, installNeighbours } from './neighbours.mjs';
import { binaryOf } from './node-lines.mjs';
import { leftOutPrograms, missingPrograms } from './programs.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const args = process.argv.slice(2).filter((arg) => arg !== '--all');
const all = process.argv.includes('--all');
const here = Number(process.versions.node.split('.')[0]);

// These tests depend neither on the version of Node nor on the engine.
const ONCE = [
  'browser',
  'package',
  'install',
  'neighbours/',
  'readme',
  'snippets',
  'boundaries',
  'words',
  'workflows',
  'scripts',
  'commands',
  'deployment',
  'docs',
  'site/',
  'documents/attacks',
  'documents/reload',
  'caching/(processes|leaks|memory|redis-cluster|shared-caches)',
  'cost/budget',
  'cursors/(faults|refusals)',
  'pubsub/(deployments|history|partition|idle-topics)',
  'redis-(clients|settings)',
  'streaming/single',
  // graphql-query-complexity does not support graphql 17.
  'cost/oracle',
];
// These tests use packages that their own folders install.
const INSTALLED = ['neighbours/', 'site/'];
// These tests take longest, and check in more depth what others check as well.
const SLOW = [
  'browser-caching',
  'browser-dictionaries',
  'browser-event-source',
  'browser-inspect',
  'browser-photo-wall',
  'caching/leaks',
  'caching/memory',
  'caching/processes',
  'caching/redis-cluster',
  'caching/shared-caches',
  'cost/budget',
  'cost/oracle',
  'cursors/faults',
  'cursors/refusals',
  'documents/attacks',
  'documents/reload',
  'engine/document-memory',
  'graphql/floods',
  'graphql/wrapped-responses',
  'otel/metrics',
  'pubsub/(deployments|history|processes|partition|idle-topics|slow-readers)',
  'server/http2-websockets',
  'static/growing-files',
  'static/memory-budget',
  'streaming/single',
  'streaming/slow-clients',
  'subscriptions/slow-clients',
  'uploads/drain',
];
// These tests depend on the version of Node, but not on the default engine: they use no engine, choose one themselves, or
// test the transport of results.
const WITHOUT_DEFAULT_ENGINE = [
  'options',
  'static/',
  'server/',
  'examples/',
  'engine/',
  'pubsub/',
  'caching/redis-store',
  'graphql/wrapped-responses',
  'streaming/slow-clients',
  'subscriptions/slow-clients',
  'uploads/drain',
];
// These tests compute without timers, sockets and files: one version of Node is enough for each version of graphql.
const ONCE_PER_GRAPHQL = ['engine/(fuzz|isolation|tracing)'];

/** The time of one pass: 4 minutes on a machine with 2 cores, more than 10 on a busy one. */
const MAX_MINUTES = 25;

const missing = missingPrograms();
if (missing.length > 0) {
  console.error(missing.join('\n'));
  // The tests that the arguments select may need none of them.
  if (args.length === 0) process.exit(1);
}
for (const text of leftOutPrograms()) console.error(text);

mkdirSync(join(root, 'artifacts'), { recursive: true });
const reports = mkdtempSync(join(root, 'artifacts', 'jest-'));
const results = (await passes()).map(run);
rmSync(reports, { recursive: true });
summarize(results);

async function passes() {
  const first = { node: here, graphql: 16, engine: 'compiled' };
  if (!all) return [{ ...first, skip: args.length > 0 ? INSTALLED : [...INSTALLED, ...SLOW] }];
  await installNeighbours();
  // Downloaded before the tests, which use these versions at the same time.
  for (const line of [22, 24, 26]) binaryOf(line);
  return [
    { ...first, skip: [] },
    { ...first, engine: 'graphql-js', skip: [...ONCE, ...WITHOUT_DEFAULT_ENGINE] },
    // Each version of Node with one of graphql, and each version of graphql with two of Node.
    ...[
      { node: 20, graphql: 16 },
      { node: 22, graphql: 17 },
      { node: 24, graphql: 16 },
      { node: 26, graphql: 17 },
    ]
      .filter(({ node, graphql }) => node !== here || graphql !== 16)
      .map((pass) => ({ ...pass, engine: 'compiled', skip: skippedBy(pass) })),
  ];
}

/** GraphiQL and the clients of incremental delivery run once more with the first Node that has graphql 17. */
function skippedBy({ node, graphql }) {
  if (node !== 22 || graphql !== 17) return [...ONCE, ...ONCE_PER_GRAPHQL];
  const kept = { browser: 'browser-(?!graphiql)', 'neighbours/': 'neighbours/(?!incremental)' };
  return ONCE.map((name) => kept[name] ?? name);
}

function run({ node, graphql, engine, skip }, index) {
  const name = `Node ${node}, graphql ${graphql}, engine ${engine}`;
  console.log(`\n=== ${name} ===`);
  const report = join(reports, `${index}.json`);
  const jest = [
    'node_modules/jest/bin/jest.js',
    ...args,
    // Most of these tests wait for sockets and timers: one worker per core, where Jest would leave one core free.
    '--maxWorkers=2',
    '--json',
    `--outputFile=${report}`,
    '--passWithNoTests',
    '--moduleNameMapper',
    JSON.stringify(mapperFor(graphql, engine)),
    // A list of patterns takes every argument after it, so it comes last.
    ...(skip.length > 0 ? ['--testPathIgnorePatterns', ...skip.map((path) => `<rootDir>/test/${path}`)] : []),
  ];
  const { status } = spawnSync(node === here ? process.execPath : binaryOf(node), jest, {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'], // the report is in the file; progress goes to stderr
    timeout: MAX_MINUTES * 60_000, // a suite that hangs has failed
    env: { ...process.env, GRAPHQL_MAJOR: String(graphql), TEST_ALL: String(all) },
  });
  return { name, status, ...readReport(report) };
}

/** A pass without a report was killed: that is one failure. */
function readReport(report) {
  try {
    const { numPassedTests, numFailedTests, numRuntimeErrorTestSuites, testResults } = JSON.parse(
      readFileSync(report, 'utf8'),
    );
    return {
      passed: numPassedTests,
      failed: numFailedTests + numRuntimeErrorTestSuites,
      messages: testResults
        .filter(({ status }) => status === 'failed')
        .map(({ name, message }) => `${relative(root, name)}\n${message}`),
    };
  } catch {
    return {
      passed: 0,
      failed: 1,
      messages: [`Jest wrote no report: it was stopped, or took over ${MAX_MINUTES} minutes.`],
    };
  }
}

function summarize(results) {
  const failedOf = ({ status, failed }) => Math.max(failed, status === 0 ? 0 : 1);
  // Prints the failures again, because the output of the passes is long.
  for (const { name, messages } of results) {
    for (const message of messages) console.log(`\n=== failed: ${name} ===\n${message}`);
  }
  console.log('');
  for (const result of results) {
    console.log(`${failedOf(result) > 0 ? 'failed' : 'passed'}: ${result.name}`);
  }
  const passed = results.reduce((sum, result) => sum + result.passed, 0);
  const failed = results.reduce((sum, result) => sum + failedOf(result), 0);
  console.log(`\n${passed} passed, ${failed} failed`);
  // A pass that the arguments leave without tests has passed, but one of them has to have some.
  const isEmpty = passed + failed === 0;
  if (isEmpty) {
    const more = all ? '' : '; npm run test:all also runs those in test/neighbours/ and test/site/';
    console.error(`No test matches ${args.join(' ')}${more}.`);
  }
  if (failed > 0 || isEmpty) process.exitCode = 1;
}

function mapperFor(graphql, engine) {
  return {
    ...(graphql === 17 ? { '^graphql$': graphql17 } : {}),
    ...(engine === 'compiled'
      ? {}
      : { '/core/default-engine\\.ts$': '<rootDir>/test/engine/graphql-js-by-default.ts' }),
    '^espalier$': '<rootDir>/middleware/index.ts',
    '^espalier/client$': '<rootDir>/client/index.ts',
    '^espalier/(static|graphql|subscriptions|server|pubsub|sources|testing|otel|inspect|cache)$':
      '<rootDir>/middleware/$1.ts',
  };
}
