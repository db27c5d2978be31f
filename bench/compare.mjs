// Compares the build of a commit with that of the working tree, old beside new in one run: node bench/compare.mjs <commit>
// [--only=<load, regexp>] [--rounds=N] [--scale=0.5]. npm run bench:compare -- <commit> builds the working tree before.
//
// Each round starts both servers anew, since two processes of one build differ by a few per cent too. A load is slower if
// the median of the rounds' ratios is above 1.03 and three quarters of the rounds agree; then the exit code is 1. Repeat
// such a load with --only and more rounds, while the machine is quiet.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { given } from './lib/arguments.mjs';
import { createBus, eventOf, QUERY, TYPES } from './lib/event-bus.mjs';
import { measureLoad } from './lib/measure.mjs';
import { ratio } from './lib/report.mjs';
import { frames, openSockets } from './lib/socket-load.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const SLOWER = 1.03;
const CLIENTS = 200;

/** A build, with the graphql that it imports. */
async function load(folder) {
  const { resolve } = createRequire(join(folder, 'package.json'));
  const entry = (name) => import(pathToFileURL(join(folder, `dist/${name}.mjs`)).href);
  return {
    ...(await entry('index')),
    ...(await entry('cache')),
    graphql: await import(pathToFileURL(resolve('graphql')).href),
  };
}

function makeSchema({ graphql: { buildSchema }, Upload }, bus) {
  const schema = buildSchema(`
    scalar Upload
    type Query { hello: String! items: [Item!]! authors: [Author!]! many: [Item]! @cacheControl(maxAge: 600) }
    type Item { id: ID! name: String! price: Float! stock: Int! sold: Boolean! mood: String }
    type Author { id: ID! books: [Book!]! }
    type Book { id: ID! title: String! year: Int! }
    type Mutation { take(file: Upload!): Int! }
    directive @cacheControl(maxAge: Int) on FIELD_DEFINITION
    ${TYPES.replace(/type Query \{[^}]*\}/, '')}
  `);
  const times = (count, make) => Array.from({ length: count }, (_, index) => make(index));
  const item = (id) => ({
    id,
    name: `item ${id}`,
    price: id + 0.5,
    stock: id,
    sold: id % 2 === 0,
    mood: 'good',
  });
  const items = times(20, item);
  const many = times(100, (id) => ({
    ...item(id),
    mood: () => {
      if (id % 20 === 0) throw new Error('no mood');
      return 'good';
    },
  }));
  const authors = times(20, (id) => ({
    id,
    books: times(5, (book) => ({ id: `${id}-${book}`, title: `book ${book}`, year: 1900 + book })),
  }));
  const query = schema.getQueryType().getFields();
  for (const [name, value] of Object.entries({ hello: 'world', items, authors, many })) {
    query[name].resolve = () => value;
  }
  Object.assign(schema.getType('Upload'), {
    parseValue: Upload.parseValue,
    parseLiteral: Upload.parseLiteral,
  });
  schema.getMutationType().getFields().take.resolve = async (_, { file }) => {
    let bytes = 0;
    for await (const chunk of file.createReadStream()) bytes += chunk.length;
    return bytes;
  };
  schema.getSubscriptionType().getFields().event.subscribe = () => bus.subscribe();
  return schema;
}

async function start(folder) {
  const build = await load(folder);
  const { attachSubscriptions, graphqlHTTP, staticFiles } = build;
  const bus = createBus();
  // Those that would print a notice in production are set.
  const options = { graphiql: false, introspection: true, getMutations: true, onError: () => undefined };
  const schema = makeSchema(build, bus);
  const graphql = graphqlHTTP(schema, options);
  const routes = new Map([
    ['/graphql', graphql],
    ['/cached', ifKnown(() => graphqlHTTP(schema, { ...options, responseCache: true }))],
    ['/publish', publisher(bus)],
  ]);
  const files = staticFiles(join(root, 'bench/fixtures/site'));
  const server = createServer((req, res) => {
    const path = req.url.split('?', 1)[0];
    (routes.get(path) ?? files)(req, res, () => res.writeHead(404).end());
  });
  attachSubscriptions(server, graphql, { ping: false });
  return server;
}

/** A handler whose options an earlier build may not have. */
function ifKnown(create) {
  try {
    return create();
  } catch {
    return (_, res) => res.writeHead(501).end();
  }
}

/** Publishes eight events synchronously. */
function publisher(bus) {
  let id = 0;
  return (_, res) => {
    for (let index = 0; index < 8; index++) bus.publish(eventOf(++id));
    res.end();
  };
}

const post = (query, path = '/graphql') => ({
  requests: [
    {
      method: 'POST',
      path,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query }),
    },
  ],
});

const part = (name, body) => `--form\r\ncontent-disposition: form-data; ${name}\r\n\r\n${body}\r\n`;
const UPLOAD = [
  part(
    'name="operations"',
    JSON.stringify({ query: 'mutation ($file: Upload!) { take(file: $file) }', variables: { file: null } }),
  ),
  part('name="map"', '{"0":["variables.file"]}'),
  part('name="0"; filename="file.txt"', 'x'.repeat(16_384)),
  '--form--\r\n',
].join('');

/** Opens the clients of one server once, then publishes and waits until all of them have each event. */
function events(open, arrive) {
  const fleets = new Map();
  return async ({ port, count }) => {
    if (!fleets.has(port)) fleets.set(port, await open(port));
    const bursts = Math.max(1, Math.round(count / (CLIENTS * 8)));
    for (let index = 0; index < bursts; index++) {
      const all = arrive(fleets.get(port), CLIENTS * 8);
      await (await fetch(`http://127.0.0.1:${port}/publish`)).arrayBuffer();
      await all;
    }
    return { operations: bursts * CLIENTS * 8 };
  };
}

const openStream = (port, fleet) =>
  new Promise((resolve, reject) => {
    const path = `/graphql?query=${encodeURIComponent(QUERY)}`;
    const socket = connect(port, '127.0.0.1', () =>
      socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n`),
    );
    socket.once('data', resolve).once('error', reject);
    socket.on('data', (chunk) => {
      fleet.seen += chunk.latin1Slice().split('{"data"').length - 1;
      if (fleet.seen >= fleet.expected) fleet.reached();
    });
  });

async function openStreams(port) {
  const fleet = { seen: 0, expected: Number.POSITIVE_INFINITY, reached: () => undefined };
  await Promise.all(Array.from({ length: CLIENTS }, () => openStream(port, fleet)));
  return fleet;
}

const arriveInStreams = (fleet, count) =>
  new Promise((reached) => Object.assign(fleet, { seen: 0, expected: count, reached }));

const openFleet = (port) => openSockets(port, CLIENTS, { protocol: 'graphql-transport-ws', query: QUERY });

export const topic = {
  contestants: { old: () => start(process.env.BENCH_OLD), new: () => start(root) },
  loads: [
    { name: 'hello', ...post('{ hello }') },
    { name: 'list of 20 × 5', ...post('{ items { id name price stock sold } }') },
    { name: 'nested 20 × 5 × 3', ...post('{ authors { id books { id title year } } }'), count: 10_000 },
    { name: '5 errors in 100 fields', ...post('{ many { mood } }') },
    { name: 'cached', ...post('{ many { id name price } }', '/cached') },
    {
      name: 'upload of 16 kB',
      requests: [
        {
          method: 'POST',
          path: '/graphql',
          headers: {
            'content-type': 'multipart/form-data; boundary=form',
            'graphql-require-preflight': '1',
          },
          body: UPLOAD,
        },
      ],
      count: 5000,
    },
    { name: 'event streams', drive: events(openStreams, arriveInStreams), count: 80_000 },
    { name: 'sockets', drive: events(openFleet, frames), count: 160_000 },
    { name: 'static hit', requests: [{ path: '/small.css' }] },
  ].map((each) => ({ fresh: true, ...each })),
};

/** Builds a commit once, with the packages of the working tree. GraphiQL is that of the working tree. */
function buildOf(commit) {
  const git = (...words) => execFileSync('git', ['-C', root, ...words], { maxBuffer: 2 ** 30 });
  const hash = String(git('rev-parse', '--verify', `${commit}^{commit}`)).trim();
  const folder = join(root, 'artifacts/compare', hash);
  if (existsSync(join(folder, 'dist/index.mjs'))) return folder;
  mkdirSync(folder, { recursive: true });
  execFileSync('tar', ['-x', '-C', folder], { input: git('archive', hash) });
  if (!existsSync(join(folder, 'node_modules')))
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  cpSync(join(root, 'dist/graphiql'), join(folder, 'dist/graphiql'), { recursive: true });
  execFileSync(process.execPath, ['scripts/build.mjs'], { cwd: folder, stdio: 'inherit' });
  return folder;
}

async function compare() {
  const commit = process.argv.slice(2).find((word) => !word.startsWith('--'));
  if (commit === undefined) throw new Error('name a commit: npm run bench:compare -- main');
  const only = new RegExp(given('only', ''));
  const settings = { rounds: Number(given('rounds', 8)), scale: Number(given('scale', 1)) };
  process.env.BENCH_OLD = buildOf(commit);
  console.log(`CPU µs per operation, ${commit} and the working tree; medians of ${settings.rounds} rounds`);
  for (const load of topic.loads.filter(({ name }) => only.test(name))) {
    const measured = await measureLoad(import.meta.url, load, ['old', 'new'], settings).catch(String);
    if (typeof measured === 'string') {
      console.log(`${load.name.padEnd(24)}not measured: ${measured}`);
      continue;
    }
    const [before, now] = measured;
    const ratios = now.rounds.map((cpu, round) => cpu / before.rounds[round]).sort((a, b) => a - b);
    const low = ratios[Math.floor(ratios.length / 4)];
    const high = ratios[Math.ceil((ratios.length * 3) / 4) - 1];
    const isSlower = ratio(now, before) > SLOWER && low > 1;
    if (isSlower) process.exitCode = 1;
    const figures = `${before.cpu.toFixed(1)} -> ${now.cpu.toFixed(1)}`.padStart(20);
    const change = `${ratio(now, before).toFixed(3)} (half of the rounds ${low.toFixed(3)} to ${high.toFixed(3)})`;
    console.log(`${load.name.padEnd(24)}${figures}  ${change}${isSlower ? '  SLOWER' : ''}`);
  }
}

if (process.env.BENCH_ROLE === undefined) await compare();
