// Runs tests and prints a total: npm test [-- parts of paths] [options of Jest].
//   no mode     on this Node, with graphql 16 and the compiled engine, without the slow tests unless they are named
//   --matrix    the slow tests, and the other combinations of test/passes.mjs
//   --all       both
//   --changed   the test files that a change affects, also slow ones
//   --build     builds dist/ first, which some tests use
// A file that fails runs once more, alone. If it passes then, the run passes, and lists it as flaky.
import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { installNeighbours } from './neighbours.mjs';
import { binaryOf } from './node-lines.mjs';
import { changedTests, filesThatNeed, root, testFiles } from './test/files.mjs';
import { HERE, mapperOf, passesOf } from './test/passes.mjs';
import { findChromium, installCommand, missingPrograms } from './test/programs.mjs';

/** The time of one pass: the longest takes 10 minutes on a machine with 2 fast cores, and 30 on one with slow ones. */
const MAX_MINUTES = 45;
/** When more files fail, the reason is not chance. */
const MAX_RETRIES = 10;
/** Most tests wait for sockets and timers: one worker per core, where Jest would leave one core free. */
const WORKERS = Math.max(2, Math.min(4, availableParallelism()));

const FLAGS = ['--matrix', '--all', '--changed', '--build'];
const has = (flag) => process.argv.includes(flag);
const args = process.argv.slice(2).filter((arg) => !FLAGS.includes(arg));
const firstOption = args.findIndex((arg) => arg.startsWith('-'));
const patterns = args.slice(0, firstOption < 0 ? undefined : firstOption);
const options = args.slice(patterns.length);

// CI runs every test: a program that is missing is a failure, found before anything is built.
const isCI = process.env.CI === 'true';
const missing = missingPrograms();
const names = missing.map(({ name }) => name).join(', ');
const isNamed = patterns.length > 0 || has('--changed');
if (isCI && missing.length > 0 && !isNamed) fail(`Tests need ${names}. Install: ${installCommand(missing)}`);

const selected = has('--changed') ? changedTests() : testFiles(patterns);
const leftOut = isCI ? [] : filesThatNeed(missing, selected);
const able = selected.filter((file) => !leftOut.includes(file));
const passes = passesOf(able, {
  quick: !has('--matrix'),
  matrix: has('--matrix') || has('--all'),
  isNamed,
});
if (passes.length === 0) {
  if (has('--changed')) fail('No test imports a changed file.');
  const words = args.join(' ');
  if (selected.length === 0) fail(`No test matches ${words}.`);
  if (able.length === 0) fail(`Every test that matches ${words} needs a missing program.`);
  fail(`No test matches ${words} without --all.`);
}
const isPartial = !isCI && missing.length > 0 && (leftOut.length > 0 || !isNamed);
const count = leftOut.length > 0 ? `${leftOut.length} files and parts of others` : 'parts of files';
const notice = isPartial
  ? `Left out: tests that need ${names} (${count}). Install: ${installCommand(missing)}`
  : '';
if (notice !== '') console.log(notice);
if (has('--build')) build();
if (passes.some(({ node, graphql, isThorough }) => node !== HERE || graphql !== 16 || isThorough)) {
  await installNeighbours();
  // Downloaded before the tests, which use these versions at the same time.
  for (const line of [22, 24, 26]) binaryOf(line);
}
mkdirSync(join(root, 'artifacts'), { recursive: true });
const reports = mkdtempSync(join(root, 'artifacts', 'jest-'));
const results = passes.map((pass) => ({ name: pass.name, files: runPass(pass) }));
rmSync(reports, { recursive: true });
summarize(results);

function fail(message) {
  console.error(message);
  process.exit(1);
}

function build() {
  console.log('Building dist/');
  const script = join(root, 'scripts/build.mjs');
  const { status, stdout, stderr } = spawnSync(process.execPath, [script], { cwd: root, encoding: 'utf8' });
  if (status !== 0) fail(`${stdout}${stderr}The build failed.`);
}

/** Runs the files of a pass, those that fail once more, and returns the result of each. */
function runPass(pass) {
  console.log(`\n=== ${pass.name} ===`);
  const results = runJest(pass, pass.files);
  const failed = results.filter((result) => result.failed > 0 && result.file !== undefined);
  if (failed.length > MAX_RETRIES) return results;
  for (const result of failed) {
    console.log(`again, alone: ${result.file}`);
    const [again] = runJest(pass, [result.file]);
    if (again.failed > 0) continue;
    results[results.indexOf(result)] = { ...again, flaky: result };
  }
  return results;
}

function runJest(pass, files) {
  const report = join(reports, 'report.json');
  rmSync(report, { force: true });
  // Warnings of Node and Jest, which matter only when a test fails.
  const errors = join(reports, 'stderr.txt');
  const stderr = openSync(errors, 'w');
  const jest = [
    'node_modules/jest/bin/jest.js',
    '--reporters=<rootDir>/scripts/test/reporter.mjs',
    '--verbose=false', // otherwise Jest prints the console of a single file
    '--forceExit', // otherwise a failed test that left a server open keeps Jest from ending
    `--maxWorkers=${WORKERS}`,
    '--moduleNameMapper',
    JSON.stringify(mapperOf(pass)),
    ...options,
    '--runTestsByPath',
    ...files,
  ];
  const { status } = spawnSync(pass.node === HERE ? process.execPath : binaryOf(pass.node), jest, {
    cwd: root,
    stdio: ['ignore', 'inherit', stderr],
    timeout: MAX_MINUTES * 60_000, // a suite that hangs has failed
    env: {
      ...process.env,
      CHROMIUM_PATH: findChromium(),
      GRAPHQL_MAJOR: String(pass.graphql),
      TEST_ALL: String(pass.isThorough),
      TEST_REPORT: report,
    },
  });
  closeSync(stderr);
  const results = readReport(report, status);
  if (results.some(({ failed }) => failed > 0)) console.log(readFileSync(errors, 'utf8'));
  return results;
}

/** A run of Jest without a report, or with another error than failed tests, is one failure. */
function readReport(report, status) {
  const failure = (text) => ({ passed: 0, failed: 1, failures: [], text });
  try {
    const results = JSON.parse(readFileSync(report, 'utf8'));
    if (status === 0 || results.some(({ failed }) => failed > 0)) return results;
    return [...results, failure(`Jest ended with ${status}.`)];
  } catch {
    return [failure(`Jest wrote no report: it was stopped, or took over ${MAX_MINUTES} minutes.`)];
  }
}

function summarize(results) {
  const sum = (files, member) => files.reduce((total, file) => total + file[member], 0);
  for (const { name, files } of results) {
    for (const { file, failed, text } of files) {
      if (failed > 0) console.log(`\n=== failed: ${file ?? 'the run'} (${name}) ===\n${text}`);
    }
    for (const { flaky } of files) {
      if (flaky === undefined) continue;
      const tests = flaky.failures.length > 0 ? flaky.failures : ['the whole file'];
      for (const test of tests) console.log(`flaky: ${flaky.file}, ${test} (${name})`);
      console.log(flaky.text);
    }
  }
  console.log('');
  for (const { name, files } of results)
    console.log(`${sum(files, 'failed') > 0 ? 'failed' : 'passed'}: ${name}`);
  if (notice !== '') console.log(`\n${notice}`);
  const all = results.flatMap(({ files }) => files);
  const passed = sum(all, 'passed');
  const failed = sum(all, 'failed');
  // The files may have no test that options such as -t select.
  if (passed + failed === 0) console.log(`No test matches ${args.join(' ')}.`);
  console.log(`\n${passed} passed, ${failed} failed`);
  if (failed > 0 || passed === 0) process.exitCode = 1;
}
