// Runs every topic, one after the other. With --write the results become docs/benchmarks/ and its plots.
// With --only-write the last results are written without a run. Other arguments are passed to the topics.
// --headline measures only the figures of README.md, on the Node that runs this script or on --node=24 (from npm) or
// --node=/path/to/node, and prints their table. With --write it becomes a section of docs/benchmarks.md.
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

// The pages of docs/benchmarks/. The last one also has the topics that no other page names.
const PAGES = [
  { file: 'static-files', title: 'static files', names: ['static', 'sites'] },
  { file: 'graphql', title: 'GraphQL', names: ['graphql', 'engine', 'deferred'] },
  {
    file: 'subscriptions',
    title: 'subscriptions',
    names: ['fanout', 'fanout-graphql17', 'streaming', 'pubsub'],
  },
  { file: 'server', title: 'createServer', names: ['server', 'server-node22'] },
  { file: 'other', title: 'uploads and GraphiQL', names: ['uploads', 'graphiql'] },
];

const PREFACE = `# Benchmarks

Every figure is the CPU time that a server needs for one operation: one request, or one message to a
subscriber. CPU time is what limits a server, and other programs on the machine change it least.

![Server CPU time of other packages as a multiple of espalier's](images/diagram-headline.svg)

| results of | compared with |
|---|---|
| [static files](benchmarks/static-files.md) | a prepared Buffer, nginx, sirv, \`@fastify/static\`, \`express.static\` |
| [GraphQL](benchmarks/graphql.md): requests, the compiled engine, \`@defer\` | Apollo Server, GraphQL Yoga, graphql-http, mercurius with and without its JIT |
| [subscriptions](benchmarks/subscriptions.md): WebSockets, event streams, two processes | bare \`ws.send\` and \`res.write\`, graphql-ws, mercurius, subscriptions-transport-ws |
| [createServer](benchmarks/server.md) | \`app.listen\`, bare \`node:http\`, Fastify |
| [uploads and GraphiQL](benchmarks/other.md) | graphql-upload, Yoga, ruru |

## Read the tables

| | CPU µs per request, median (least) | requests/s | ÷ sirv |
|---|---:|---:|---:|
| espalier | 23.6 (20.8) | 41905 | 0.18 |

In the median of the rounds, espalier needed 23.6 µs of CPU time per request, and 20.8 µs in its best round.
It answered 41 905 requests per second. It needed 0.18 times as much CPU time as sirv: below 1 means cheaper.
This ratio is the median of the ratios within each round, so it may differ a little from that of the two
times.

- The CPU time is that of all threads of the server, in user and system mode.
- Each server runs in its own process on one core, and the load generator runs on another.
- The servers take turns in each round.
- Every response is compared with the expected one before the measurement.
- Other programs ran on the machine. A difference of less than a fifth may mean nothing.

## Repeat the measurements

Clone the repository, and run \`npm install && npm run build\` in it. Then run \`npm install && npm run bench\` in
\`bench/\`. This takes half an hour.

\`node bench/static.mjs --quick\` measures one topic in a few minutes, and \`node bench/static.mjs --help\` lists
its options. \`node bench/all.mjs --headline --node=24\` measures only the figures below, on any version of Node.
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

/** Writes the pages of the topics that have results, and the overview. */
function write() {
  mkdirSync(here('../docs/images'), { recursive: true });
  mkdirSync(here('../docs/benchmarks'), { recursive: true });
  const named = PAGES.flatMap(({ names }) => names);
  const others = fullRuns.map(({ name }) => name).filter((name) => !named.includes(name));
  for (const [index, { file, title, names }] of PAGES.entries()) {
    const all = index === PAGES.length - 1 ? [...names, ...others] : names;
    const sections = all.filter((name) => existsSync(here(`results/${name}.json`))).map(sectionOf);
    if (sections.length === 0) continue;
    const top = `# Benchmarks: ${title}\n\n[Benchmarks](../benchmarks.md) explains how to read and repeat these figures.`;
    writeFileSync(here(`../docs/benchmarks/${file}.md`), `${[top, ...sections].join('\n\n')}\n`);
  }
  writeHeadline();
}

/** Draws the plot of a topic, and returns its tables. */
function sectionOf(name) {
  const result = JSON.parse(readFileSync(here(`results/${name}.json`), 'utf8'));
  result.title = fullRuns.find((run) => run.name === name).title ?? result.title;
  writeFileSync(here(`../docs/images/bench-${name}.svg`), plot(result));
  const [heading, ...rest] = tables(result).trimEnd().split('\n\n');
  const image = `![${result.title}: CPU time per operation](../images/bench-${name}.svg)`;
  return [heading, image, ...rest].join('\n\n');
}

/** Writes the overview, if the headline figures were measured. */
function writeHeadline() {
  const lines = headlineLines();
  if (lines.length === 0) return;
  const parts = [PREFACE.trimEnd(), '## Headline figures', ...lines.map((text) => text.trimEnd())];
  writeFileSync(here('../docs/benchmarks.md'), `${parts.join('\n\n')}\n`);
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
