// Every topic, one after the other; with --write the tables become docs/benchmarks.md and the plots beside it.
// With --only-write nothing is measured: the last results are written. Other words go to the topics.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { plot } from './lib/plots.mjs';
import { tables } from './lib/report.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const writes = process.argv.some((word) => word.endsWith('write'));
const measures = !process.argv.includes('--only-write');
const words = process.argv.slice(2).filter((word) => !word.endsWith('write'));
const topics = readdirSync(here('.'))
  .filter(
    (name) => name.endsWith('.mjs') && name !== 'all.mjs' && name !== 'harness.mjs' && !name.includes('soak'),
  )
  .map((name) => name.slice(0, -4));

const failed = topics.filter(
  (topic) =>
    measures &&
    spawnSync(process.execPath, [here(`${topic}.mjs`), ...words], { stdio: 'inherit' }).status !== 0,
);
if (failed.length > 0) throw new Error(`failed: ${failed.join(', ')}`);

const PREFACE = `# Benchmarks

Server CPU time (user and system, every thread) for one operation, because that is what a machine runs out of and what
neighbours disturb least. Each contestant is a process of its own on one core, the load generator sits on another;
rounds interleave the contestants and medians are quoted. Answers are checked before anything is measured.
Repeat it with \`npm install && npm run bench\` in \`bench/\`.
`;

if (writes) {
  mkdirSync(here('../docs/images'), { recursive: true });
  const parts = [PREFACE];
  for (const topic of topics) {
    const file = here(`results/${topic}.json`);
    if (!existsSync(file)) continue;
    const result = JSON.parse(readFileSync(file, 'utf8'));
    writeFileSync(here(`../docs/images/bench-${topic}.svg`), plot(result));
    const [heading, ...rest] = tables(result).split('\n\n');
    parts.push(
      [heading, `![${result.title}: CPU time per operation](images/bench-${topic}.svg)`, ...rest].join(
        '\n\n',
      ),
    );
  }
  writeFileSync(here('../docs/benchmarks.md'), parts.join('\n'));
}
