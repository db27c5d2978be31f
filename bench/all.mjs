// Runs every topic, one after the other. With --write the results become docs/benchmarks.md and its plots.
// With --only-write the last results are written without a run. Other arguments are passed to the topics.
// --headline measures only the figures of README.md, on the Node that runs this script or on --node=24 (from npm) or
// --node=/path/to/node, and prints their table. With --write the tables become a section of docs/benchmarks.md.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { binaryOf } from '../scripts/node-lines.mjs';
import { headlineRuns, headlineTable } from './lib/headline.mjs';
import { plot } from './lib/plots.mjs';
import { tables } from './lib/report.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const writes = process.argv.some((word) => word.endsWith('write'));
const measures = !process.argv.includes('--only-write');
const isHeadline = process.argv.includes('--headline');
const nodeWord = process.argv.find((word) => word.startsWith('--node='))?.slice('--node='.length);
const given = process.argv
  .slice(2)
  .filter((word) => !word.endsWith('write') && word !== '--headline' && !word.startsWith('--node='));
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
// Topics that need graphql 17.
const ON_17 = { deferred: { node: 22, graphql: '17' } };
const fullRuns = topics.flatMap((topic) => [
  { topic, name: topic, words: [], ...ON_17[topic] },
  ...AGAIN.filter((run) => run.topic === topic),
]);
// The results of other versions of Node are kept next to each other.
const major = versionOf(nodeWord).split('.')[0];
const runs = isHeadline
  ? headlineRuns().map((run) => ({ ...run, name: `headline-${major}-${run.topic}`, node: nodeWord }))
  : fullRuns;

const HEADLINE_TITLE = 'Headline figures';

const PREFACE = `# Benchmarks

The tables show the CPU time of the server (user and system, all threads) per operation. CPU time limits a
server, and other processes on the machine disturb it least.

- Each server runs in its own process on one core. The load generator runs on another core.
- Rounds interleave the servers, and the tables show medians.
- A ratio (÷) is the median of the ratios within each round. Below 1 means cheaper than that peer.
- Every response is compared with the expected one before the measurement.
- Other programs ran on the machine. Differences of less than a fifth between two rows may be noise.

Run \`npm install && npm run bench\` in \`bench/\` to repeat it. \`node bench/all.mjs --headline --node=24\`
measures only the figures of the README, on any version of Node.
`;

const failed = measures ? runs.filter((run) => !measure(run)).map(({ name }) => name) : [];
if (failed.length > 0) throw new Error(`failed: ${failed.join(', ')}`);
if (isHeadline) console.log(`Node ${major}\n\n${headlineOf(major).table}`);
if (writes && isHeadline) writeHeadline();
else if (writes) write();

/** The version of the Node that runs the servers, without its "v". */
function versionOf(node) {
  if (node === undefined) return process.versions.node;
  return /^\d+$/.test(node)
    ? node
    : execFileSync(node, ['--version'], { encoding: 'utf8' }).trim().replace('v', '');
}

/** The folder also contains soak tests and fuzzers. */
function isTopic(name) {
  return readFileSync(here(name), 'utf8').includes('\nawait runTopic(');
}

function measure(run) {
  const script = here(`${run.topic}.mjs`);
  const env = { ...process.env, BENCH_RESULT: run.name };
  if (run.node !== undefined) env.BENCH_NODE = /^\d+$/.test(run.node) ? binaryOf(run.node) : run.node;
  if (run.graphql !== undefined) env.BENCH_GRAPHQL = run.graphql;
  const { status } = spawnSync(process.execPath, [script, ...run.words, ...words], { stdio: 'inherit', env });
  return status === 0;
}

function write() {
  mkdirSync(here('../docs/images'), { recursive: true });
  const contents = [];
  const parts = [];
  for (const { name, title } of fullRuns) {
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
  const lines = headlineLines();
  if (lines.length > 0) {
    contents.unshift(`- [${HEADLINE_TITLE}](#${anchorOf(HEADLINE_TITLE)})`);
    parts.unshift([`## ${HEADLINE_TITLE}`, ...lines].join('\n\n'));
  }
  writeFileSync(here('../docs/benchmarks.md'), [PREFACE, `${contents.join('\n')}\n`, ...parts].join('\n'));
}

/** Replaces the section with the headline figures, and leaves the other results as they are. */
function writeHeadline() {
  const page = here('../docs/benchmarks.md');
  const section = [`## ${HEADLINE_TITLE}`, ...headlineLines()].join('\n\n');
  const item = `- [${HEADLINE_TITLE}](#${anchorOf(HEADLINE_TITLE)})\n`;
  const rest = readFileSync(page, 'utf8')
    .replace(item, '')
    .replace(/^## Headline figures\n[\s\S]*?(?=^## )/m, '');
  writeFileSync(page, rest.replace(/^- \[/m, `${item}- [`).replace(/^## /m, `${section}\n## `));
}

/** The versions of Node with results of --headline. */
function headlineLines() {
  const names = existsSync(here('results')) ? readdirSync(here('results')) : [];
  const majors = new Set(names.flatMap((name) => /^headline-(\d+)-/.exec(name)?.[1] ?? []));
  return [...majors].sort().map((line) => {
    const { conditions, table } = headlineOf(line);
    return `### Headline figures, Node ${line}\n\n${conditions}\n\n${table}`;
  });
}

/** The table of the headline figures of one version of Node, and when and on what they were measured. */
function headlineOf(line) {
  const results = {};
  for (const { topic } of headlineRuns()) {
    const file = here(`results/headline-${line}-${topic}.json`);
    if (existsSync(file)) results[topic] = JSON.parse(readFileSync(file, 'utf8'));
  }
  const [{ date, node, machine } = {}] = Object.values(results);
  const conditions = `${date}. Node ${node}; ${machine?.cpu}, ${machine?.system}.`;
  return { conditions, table: headlineTable(results) };
}

/** The anchor that GitHub generates for a heading. */
function anchorOf(heading) {
  return heading
    .toLowerCase()
    .replace(/[^\w -]/g, '')
    .replaceAll(' ', '-');
}
