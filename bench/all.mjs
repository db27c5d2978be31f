// Runs every topic, one after the other. With --write the results become docs/benchmarks.md and its plots.
// With --only-write the last results are written without a run. Other arguments are passed to the topics.
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
// Takes half an hour for all topics, unless an argument sets the length.
const words = given.some((word) => /^--(quick|scale|rounds)/.test(word)) ? given : [...given, '--scale=0.3'];
const topics = readdirSync(here('.'))
  .filter((name) => name.endsWith('.mjs') && isTopic(name))
  .map((name) => name.slice(0, -4));

// Topics that are also measured on another version of Node or graphql.
const AGAIN = [
  { topic: 'server', name: 'server-node22', title: 'createServer on Node 22', node: 22, words: [] },
  {
    topic: 'fanout',
    name: 'fanout-graphql17',
    title: 'Private subscriptions with graphql 17 on Node 22',
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

The tables show the CPU time of the server (user and system, all threads) per operation. CPU time limits a
server, and other processes on the machine disturb it least.

- Each server runs in its own process on one core. The load generator runs on another core.
- Rounds interleave the servers, and the tables show medians.
- A ratio (÷) is the median of the ratios within each round. Below 1 means cheaper than that peer.
- Every response is compared with the expected one before the measurement.

Run \`npm install && npm run bench\` in \`bench/\` to repeat it.
`;

const failed = measures ? runs.filter((run) => !measure(run)).map(({ name }) => name) : [];
if (failed.length > 0) throw new Error(`failed: ${failed.join(', ')}`);
if (writes) write();

/** The folder also contains soak tests and fuzzers. */
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

/** The anchor that GitHub generates for a heading. */
function anchorOf(heading) {
  return heading
    .toLowerCase()
    .replace(/[^\w -]/g, '')
    .replaceAll(' ', '-');
}
