// Every topic, one after the other; with --write the tables become docs/benchmarks.md. Other words go to the topics.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { tables } from './lib/report.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const words = process.argv.slice(2).filter((word) => word !== '--write');
const topics = readdirSync(here('.'))
  .filter((name) => name.endsWith('.mjs') && name !== 'all.mjs' && name !== 'harness.mjs')
  .map((name) => name.slice(0, -4));

const failed = topics.filter(
  (topic) => spawnSync(process.execPath, [here(`${topic}.mjs`), ...words], { stdio: 'inherit' }).status !== 0,
);
if (failed.length > 0) throw new Error(`failed: ${failed.join(', ')}`);

const PREFACE = `# Benchmarks

Server CPU time (user and system, every thread) for one operation, because that is what a machine runs out of and what
neighbours disturb least. Each contestant is a process of its own on one core, the load generator sits on another;
rounds interleave the contestants and medians are quoted. Answers are checked before anything is measured.
Repeat it with \`npm install && npm run bench\` in \`bench/\`.
`;

if (process.argv.includes('--write')) {
  const results = topics.map((topic) => JSON.parse(readFileSync(here(`results/${topic}.json`), 'utf8')));
  writeFileSync(here('../docs/benchmarks.md'), [PREFACE, ...results.map(tables)].join('\n'));
}
