// Runs tests and prints a total: npm test [-- parts of paths] [options of Jest].
//   no mode       on this Node, with graphql 16 and the compiled engine, without the slow tests unless they are named
//   --matrix      the slow tests, and the other combinations of test/passes.mjs
//   --all         both
//   --part=NAME   one part of them
//   --changed     the test files that a change affects, also slow ones
//   --build       builds dist/ first, which some tests use
//   --durations   writes how long each file took to test/durations.json, which decides the order of later runs
// A file that fails runs once more, alone. If it passes then, the run passes, and lists it as flaky.
import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { installNeighbours } from './neighbours.mjs';
import { binaryOf } from './node-lines.mjs';
import { changedTests, filesThatNeed, root, testFiles } from './test/files.mjs';
import { HERE, mapperOf, PARTS, passesOf } from './test/passes.mjs';
import { findChromium, installCommand, missingPrograms } from './test/programs.mjs';

/** The time of one pass: the longest takes 5 minutes on a machine with 2 fast cores. */
const MAX_MINUTES = 30;
/** When more files fail, the reason is not chance. */
const MAX_RETRIES = 10;
const CORES = availableParallelism();
/** Tests wait for sockets, timers and processes that they have started, so workers share the cores. */
const WORKERS = Math.min(8, 3 * CORES);
/** How many of the slowest files are listed. */
const SLOWEST = 20;

const FLAGS = ['--matrix', '--all', '--changed', '--build', '--durations'];
const has = (flag) => process.argv.includes(flag);
const named = process.argv.find((arg) => arg.startsWith('--part='))?.slice('--part='.length);
const args = process.argv.slice(2).filter((arg) => !FLAGS.includes(arg) && !arg.startsWith('--part='));
if (named !== undefined && !PARTS.includes(named))
  fail(`--part is one of ${PARTS.join(', ')}, not ${named}.`);
const parts =
  named !== undefined
    ? [named]
    : PARTS.filter((part) => has('--all') || (part === 'lowest') !== has('--matrix'));
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
const passes = passesOf(able, { parts, isNamed });
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
if (passes.some(({ graphql, isThorough }) => graphql !== 16 || isThorough)) await installNeighbours();
// Downloaded before the tests, which use these versions at the same time.
const lines = passes.some(({ isThorough }) => isThorough) ? [22, 24, 26] : passes.map(({ node }) => node);
for (const line of lines.filter((line) => line !== HERE)) binaryOf(line);
mkdirSync(join(root, 'artifacts'), { recursive: true });
const reports = mkdtempSync(join(root, 'artifacts', 'jest-'));
const results = passes.map((pass) => ({ name: pass.name, ...runPass(pass) }));
rmSync(reports, { recursive: true });
if (has('--durations')) writeDurations(results);
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

/** Runs the files of a pass, those that fail once more, and returns the result of each and the time of all. */
function runPass(pass) {
  console.log(`\n=== ${pass.name} ===\n${pass.proves}`);
  const started = performance.now();
  const files = runJest(pass, pass.files, WORKERS);
  const seconds = (performance.now() - started) / 1000;
  // Alone, so that nothing else takes the time or the memory that they measure.
  files.push(...runJest(pass, pass.alone, 1));
  const failed = files.filter((result) => result.failed > 0 && result.file !== undefined);
  for (const result of failed.length > MAX_RETRIES ? [] : failed) {
    console.log(`again, alone: ${result.file}`);
    const [again] = runJest(pass, [result.file], 1);
    if (again.failed === 0) files[files.indexOf(result)] = { ...again, flaky: result };
  }
  return { files, seconds };
}

function runJest(pass, files, workers) {
  if (files.length === 0) return [];
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
    `--maxWorkers=${workers}`,
    '--testRunner=<rootDir>/scripts/test/runner.cjs',
    '--testSequencer=<rootDir>/scripts/test/sequencer.cjs',
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

/** Keeps the longest time of each file that ran, and what is known of the others that still exist. */
function writeDurations(results) {
  const path = join(root, 'test/durations.json');
  const known = JSON.parse(readFileSync(path, 'utf8'));
  const measured = {};
  for (const { file, milliseconds = 0 } of results.flatMap(({ files }) => files))
    measured[file] = Math.max(measured[file] ?? 0, Math.round(milliseconds / 100) / 10);
  const entries = testFiles().map((file) => [file, measured[file] ?? known[file]]);
  const durations = Object.fromEntries(entries.filter(([, seconds]) => seconds !== undefined));
  writeFileSync(path, `${JSON.stringify(durations, undefined, 2)}\n`);
}

/** Says where the time of a pass went. */
function summarizeTime({ name, files, seconds }) {
  const cpu = files.reduce((total, { cpuMilliseconds = 0 }) => total + cpuMilliseconds, 0) / 1000;
  const waiting = Math.max(0, Math.round(100 * (1 - cpu / (seconds * CORES))));
  console.log(
    `\n${name}: ${Math.round(seconds)} s, in which tests used ${Math.round(cpu)} s of CPU: ${waiting} % waiting`,
  );
  const slowest = files.toSorted((a, b) => b.milliseconds - a.milliseconds).slice(0, SLOWEST);
  for (const { file, milliseconds, cpuMilliseconds } of slowest)
    console.log(
      `  ${(milliseconds / 1000).toFixed(1)} s, CPU ${(cpuMilliseconds / 1000).toFixed(1)} s: ${file}`,
    );
}

function summarize(results) {
  const sum = (files, member) => files.reduce((total, file) => total + file[member], 0);
  for (const { name, files } of results) {
    for (const { file, failed, text } of files) {
      if (failed > 0) console.log(`\n=== failed: ${file ?? 'the run'} (${name}) ===\n${text}`);
    }
  }
  if (!isNamed) results.forEach(summarizeTime);
  console.log('');
  for (const { name, files } of results)
    console.log(`${sum(files, 'failed') > 0 ? 'failed' : 'passed'}: ${name}`);
  for (const { name, files } of results) {
    for (const { flaky } of files) {
      if (flaky === undefined) continue;
      const tests = flaky.failures.length > 0 ? flaky.failures : ['the whole file'];
      for (const test of tests) console.log(`flaky: ${flaky.file}, ${test} (${name})`);
      console.log(flaky.text);
    }
  }
  if (notice !== '') console.log(`\n${notice}`);
  const all = results.flatMap(({ files }) => files);
  const passed = sum(all, 'passed');
  const failed = sum(all, 'failed');
  // The files may have no test that options such as -t select.
  if (passed + failed === 0) console.log(`No test matches ${args.join(' ')}.`);
  console.log(`\n${passed} passed, ${failed} failed`);
  if (failed > 0 || passed === 0) process.exitCode = 1;
}
