/**
 * Measures the time for which malicious requests block the event loop of a server with default limits. Each runs
 * in its own process, as its first request (cold) and after twenty of them (warm).
 *
 *   node bench/graphql-blocking.mjs [--only=regexp] [--rounds=N] [--most=milliseconds]
 *
 * The measure is the longest iteration of the loop: its CPU time, or its wall time if that is less, so that
 * other processes have little effect. The program prints the shortest and the longest time of the rounds. Exits
 * with 1 when the least time of an attack is over the limit, or when a response is a 5xx.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { given } from './lib/arguments.mjs';
import { DOCUMENTS, nested, rootValue, SCHEMA, times, watchLoop } from './lib/expensive-documents.mjs';

const WARM = 20;

const filled = (count, make) => Object.fromEntries(Array.from({ length: count }, (_, index) => make(index)));

const VARIABLES =
  'query ($v: Json, $i: In, $l: [Int], $x: Int, $n: [[[[Int]]]], $m: [In]) { id(v: $v) a(in: $i, list: $l, x: $x, inputs: $m) { hello } n(v: $n) }';
const withVariables = (text) => `{"query":${JSON.stringify(VARIABLES)},"variables":${text}}`;
const json = (variables) => withVariables(JSON.stringify(variables));

/** Bodies of JSON. */
const BODIES = {
  'variables: 19 900 values': json({ v: Array(19_900).fill(1) }),
  'variables: 200 000 values': json({ v: Array(200_000).fill(1) }),
  'variables: 300 000 empty objects': withVariables(`{"v":[${times(300_000, () => '{}', ',')}]}`),
  'variables: 1900 unknown keys': json({ i: filled(1900, (i) => [`kye${i}`, 1]) }),
  'variables: 60 000 keys': json({ v: filled(60_000, (i) => [`k${i}`, 1]) }),
  'variables: 15 000 wrong values': json({ l: Array(15_000).fill('x') }),
  'variables: wrong objects in a list': json({ m: Array(9000).fill({ nope: 1 }) }),
  'variables: wrong, and 1 MB long': json({ x: 'x'.repeat(1_000_000) }),
  'variables: wrong, a list of long strings': json({ x: Array(9).fill('x'.repeat(100_000)) }),
  'variables: wrong, 1900 members': json({ x: filled(1900, (i) => [`k${i}`, 'x'.repeat(100)]) }),
  'variables: wrong lists in lists': json({ n: Array(100).fill(Array(100).fill(['x'])) }),
  'variables: inputs, 190 deep': withVariables(`{"i":${nested(190, '{"a":', '{}')}}`),
  'variables: lists, 400 000 deep': withVariables(`{"v":${nested(400_000, '[', '1', ']')}}`),
  'variables: objects, 150 000 deep': withVariables(`{"i":${nested(150_000, '{"a":', '{}')}}`),
  'variables: 1e400': withVariables('{"x":1e400}'),
  'variables: 900 000 digits': withVariables(`{"x":${'9'.repeat(900_000)}}`),
  'variables: __proto__': withVariables('{"__proto__":{"x":1},"i":{"__proto__":{"b":"x"}}}'),
  'extensions: 300 000 empty objects': `{"query":"{ hello }","extensions":{"v":[${times(300_000, () => '{}', ',')}]}}`,
  'JSON: lists, 500 000 deep': nested(500_000, '[', '', ']'),
  'JSON: 500 000 open lists': '['.repeat(1_000_000),
  'JSON: 90 000 equal members': `{${times(90_000, () => '"query":1', ',')}}`,
  'JSON: 90 000 members': `{${times(70_000, (i) => `"k${i}":1`, ',')},"query":"{ hello }"}`,
  'JSON: a string of escapes': `{"query":"{ hello }","x":"${'\\u0041'.repeat(170_000)}"}`,
  'JSON: cut off': `{"query":"${'x'.repeat(1_000_000)}`,
  'JSON: __proto__': '{"__proto__":{"query":"{ hello }"},"constructor":{"prototype":{}}}',
  'bytes: broken UTF-8 at the end': Buffer.concat([Buffer.alloc(1_000_000, ' '), Buffer.from([0xff])]),
  'bytes: four-byte characters': `{"query":"{ hello } #${'🐙'.repeat(40_000)}","x":"${'🐙'.repeat(200_000)}"}`,
  'bytes: over the limit': Buffer.alloc(2_000_000, ' '),
  'bytes: all NUL': Buffer.alloc(1_000_000),
  'batch of 10, switched off': JSON.stringify(Array(10).fill({ query: DOCUMENTS['unknown fields, 4900'] })),
};

const batchOf = (count, document) =>
  JSON.stringify(Array.from({ length: count }, (_, i) => ({ query: `${document} #${i}` })));

/** With an option that is off by default. */
const SWITCHED_ON = {
  'batch of 500': { options: { batching: true }, body: batchOf(500, '{ hello }') },
  'batch of 10, merges': {
    options: { batching: true },
    body: batchOf(10, DOCUMENTS['merges within the limit']),
  },
  'batch of 10, 4900 unknown fields': {
    options: { batching: true },
    body: batchOf(10, DOCUMENTS['unknown fields, 4900']),
  },
  'batch of 10, lists of values': {
    options: { batching: true },
    body: batchOf(10, DOCUMENTS['a list of 4900 values']),
  },
  'batch of 10, 1000 aliases': {
    options: { batching: true },
    body: batchOf(10, DOCUMENTS['aliases within the limit']),
  },
  'batch of 10, many tokens': {
    options: { batching: true },
    body: batchOf(10, DOCUMENTS['over 5000 tokens']),
  },
  'gzip bomb, 40 MB': {
    headers: { 'content-encoding': 'gzip' },
    body: gzipSync(Buffer.alloc(40 << 20, ' ')),
  },
};

const attacks = {
  ...Object.fromEntries(Object.entries(DOCUMENTS).map(([name, query]) => [name, { query }])),
  ...Object.fromEntries(Object.entries(BODIES).map(([name, body]) => [name, { body }])),
  ...SWITCHED_ON,
};

if (process.env.BENCH_ROLE === 'server') await serve();
else await measure();

async function serve() {
  const [{ graphqlHTTP }, { buildSchema }, { createServer }] = await Promise.all([
    import('espalier/graphql'),
    import('graphql'),
    import('node:http'),
  ]);
  const options = { rootValue, ...JSON.parse(process.env.BENCH_OPTIONS) };
  const server = createServer(graphqlHTTP(buildSchema(SCHEMA), options));
  let watch;
  process.on('disconnect', () => process.exit());
  process.on('message', async (ask) => {
    if (ask === 'begin') watch = watchLoop();
    // Work that continues after the response is part of the attack.
    await new Promise((resolve) => setTimeout(resolve, 10));
    process.send(ask === 'begin' ? {} : watch.stop());
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  process.send(server.address().port);
}

async function measure() {
  const only = new RegExp(given('only') ?? '');
  const rounds = Number(given('rounds') ?? 3);
  const most = Number(given('most') ?? 50);
  const rows = [];
  for (const [name, attack] of Object.entries(attacks)) {
    if (!only.test(name)) continue;
    const cold = [];
    const warm = [];
    let status;
    for (let round = 0; round < rounds; round++) {
      const seen = await inOneProcess(attack);
      cold.push(seen.cold);
      warm.push(seen.warm);
      ({ status } = seen);
    }
    const least = Math.max(Math.min(...cold), Math.min(...warm));
    rows.push({ name, status, cold, warm, bad: least > most || status >= 500 });
    console.log(line(rows.at(-1)));
  }
  const bad = rows.filter((row) => row.bad);
  console.log(`\n${rows.length} attacks, ${bad.length} over ${most} ms or with a 5xx`);
  process.exitCode = bad.length > 0 ? 1 : 0;
}

function line({ name, status, cold, warm, bad }) {
  const span = (values) =>
    `${Math.min(...values).toFixed(1)} … ${Math.max(...values).toFixed(1)}`.padStart(14);
  return `${bad ? '✗' : ' '} ${name.padEnd(42)} ${status}  cold ${span(cold)} ms  warm ${span(warm)} ms`;
}

async function inOneProcess({ query, body, headers, options = {} }) {
  const child = fork(fileURLToPath(import.meta.url), {
    env: { ...process.env, NODE_ENV: '', BENCH_ROLE: 'server', BENCH_OPTIONS: JSON.stringify(options) },
  });
  const answer = () => new Promise((resolve) => child.once('message', resolve));
  const ask = (message) => {
    child.send(message);
    return answer();
  };
  const port = await answer();
  // A repeated document would come from the cache.
  const bodyOf = (index) => (query === undefined ? body : JSON.stringify({ query: `${query}#${index}` }));
  const send = async (index) => {
    const response = await fetch(`http://127.0.0.1:${port}/graphql`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/graphql-response+json',
        ...headers,
      },
      body: bodyOf(index),
    });
    await response.arrayBuffer();
    return response.status;
  };
  const hold = async (index) => {
    await ask('begin');
    const status = await send(index);
    return { status, ...(await ask('end')) };
  };
  try {
    const first = await hold(0);
    for (let index = 1; index <= WARM; index++) await send(index);
    const later = [];
    for (let index = 1; index <= 3; index++) later.push((await hold(WARM + index)).cpu);
    return { status: first.status, cold: first.cpu, warm: Math.max(...later) };
  } finally {
    child.disconnect();
  }
}
