// Every topic, one after the other; with --write the tables become docs/benchmarks.md and the plots beside it.
// With --only-write nothing is measured: the last results are written. Other words go to the topics.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { binaryOf } from '../scripts/node-lines.mjs';
import { plot } from './lib/plots.mjs';
import { tables } from './lib/report.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const writes = process.argv.some((word) => word.endsWith('write'));
const measures = !process.argv.includes('--only-write');
const given = process.argv.slice(2).filter((word) => !word.endsWith('write'));
// Half an hour for everything; a word of yours about the length counts instead.
const words = given.some((word) => /^--(quick|scale|rounds)/.test(word)) ? given : [...given, '--scale=0.3'];
const topics = readdirSync(here('.'))
  .filter((name) => name.endsWith('.mjs') && isTopic(name))
  .map((name) => name.slice(0, -4));

// What differs by the line of Node or of graphql is measured once more.
const AGAIN = [
  { topic: 'server', name: 'server-node22', title: 'createServer on Node 22', node: 22, words: [] },
  {
    topic: 'fanout',
    name: 'fanout-graphql17',
    title: 'Subscriptions: private ones with graphql 17 on Node 22',
    node: 22,
    graphql: '17',
    words: ['--only=^raw ws$|espalier, private'],
  },
];
const runs = topics.flatMap((topic) => [
  { topic, name: topic, words: [] },
  ...AGAIN.filter((run) => run.topic === topic),
]);

const PREFACE = `# Benchmarks

Server CPU time (user and system, every thread) for one operation, because that is what a machine runs out of and what
neighbours disturb least. Each contestant is a process of its own on one core, the load generator sits on another;
rounds interleave the contestants and medians are quoted. A ratio (÷) is the median of the ratios within each round; below
1 is cheaper than that peer. Answers are checked before anything is measured.
Repeat it with \`npm install && npm run bench\` in \`bench/\`.
`;

const failed = measures ? runs.filter((run) => !measure(run)).map(({ name }) => name) : [];
if (failed.length > 0) throw new Error(`failed: ${failed.join(', ')}`);
if (writes) write();

/** Soaks, fuzzers and probes lie here too. */
function isTopic(name) {
  return readFileSync(here(name), 'utf8').includes('\nawait runTopic(');
}

function measure(run) {
  const script = here(`${run.topic}.mjs`);
  const env = { ...process.env, BENCH_RESULT: run.name };
  if (run.node !== undefined) env.BENCH_NODE = binaryOf(run.node);
  if (run.graphql !== undefined) env.BENCH_GRAPHQL = run.graphql;
  const { status } = spawnSync(process.execPath, [script, ...run.words, ...words], { stdio: 'inherit', env });
  return status === 0;
}

function write() {
  mkdirSync(here('../docs/images'), { recursive: true });
  const contents = [];
  const parts = [];
  for (const { name, title } of runs) {
    const file = here(`results/${name}.json`);
    if (!existsSync(file)) continue;
    const result = JSON.parse(readFileSync(file, 'utf8'));
    result.title = title ?? result.title;
    writeFileSync(here(`../docs/images/bench-${name}.svg`), plot(result));
    const [heading, ...rest] = tables(result).split('\n\n');
    const image = `![${result.title}: CPU time per operation](images/bench-${name}.svg)`;
    contents.push(`- [${result.title}](#${anchorOf(result.title)})`);
    parts.push([heading, image, ...rest].join('\n\n'));
  }
  writeFileSync(here('../docs/benchmarks.md'), [PREFACE, `${contents.join('\n')}\n`, ...parts].join('\n'));
}

/** As GitHub makes them from headings. */
function anchorOf(heading) {
  return heading
    .toLowerCase()
    .replace(/[^\w -]/g, '')
    .replaceAll(' ', '-');
}
