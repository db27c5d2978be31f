/**
 * Measures the time for which hostile requests block the event loop of a server with default limits. Each runs
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

const WARM = 20;

const times = (count, make, glue = ' ') =>
  Array.from({ length: count }, (_, index) => make(index)).join(glue);
const nested = (count, open, inner, close = '}') => open.repeat(count) + inner + close.repeat(count);
const filled = (count, make) => Object.fromEntries(Array.from({ length: count }, (_, index) => make(index)));

const SCHEMA = `
  type Query {
    a(x: Int, in: In, list: [Int], inputs: [In], s: String, json: Json, one: One): Query b: Query hello(s: String): String
    u: U wide: Wide id(v: Json): Int n(v: [[[[Int]]]]): Int
  }
  type Wide { ${times(500, (i) => `field${i}: Int`)} }
  union U = A | B
  type A { f: U g: Int h(x: Int): Int }
  type B { f: U g: String h(x: Int): Int }
  input In { a: In b: Int c: [In] d: Int! = 1 ${times(200, (i) => `key${i}: Int`)} }
  input One @oneOf { a: Int b: String }
  scalar Json
  type Mutation { login(password: String): Boolean }
`;

const chain = (length, below) =>
  `{ ...f0 } ${times(length, (i) => `fragment f${i} on Query { ${below(i + 1)} }`)} fragment f${length} on Query { hello }`;

/** Documents, each the whole attack. */
const DOCUMENTS = {
  'nesting, 60 levels': `{ ${nested(60, 'a {', 'hello')} }`,
  'nesting, 3000 levels': `{ ${nested(3000, 'a {', 'hello')} }`,
  'open braces, 40 000': '{a'.repeat(40_000),
  'nested lists, 2400 deep': `{ id(v: ${nested(2400, '[', '1', ']')}) }`,
  'nested objects, 3000 deep': `{ id(v: ${nested(3000, '{a:', '1')}) }`,
  'nested list type': `query ($v: ${nested(2400, '[', 'Int', ']')}) { hello }`,
  'inline fragments, 3000 deep': `{ ${nested(3000, '... {', 'hello')} }`,
  'inline fragments, 195 deep': `{ ${nested(195, '... {', 'hello')} }`,
  'circular fragments': '{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }',
  'a circle of 400 fragments': `{ ...f0 } ${times(400, (i) => `fragment f${i} on Query { a { ...f${(i + 1) % 400} } }`)}`,
  'fragments that spread all others': `{ ...f0 } ${times(45, (i) => `fragment f${i} on Query { ${times(45, (j) => `...f${j}`)} }`)}`,
  'fragments in a chain, 300': chain(300, (i) => `a { ...f${i} }`),
  'fragments in a flat chain, 199': chain(199, (i) => `...f${i}`),
  'fragments that double, 30': chain(30, (i) => `a { ...f${i} } b { ...f${i} }`),
  'fragments that double, 12': chain(12, (i) => `a { ...f${i} } b { ...f${i} }`),
  'unused fragments, 500': `{ hello } ${times(500, (i) => `fragment f${i} on Query { hello }`)}`,
  'aliases, 1600': `{ ${times(1600, (i) => `a${i}: hello`)} }`,
  'aliases within the limit': `{ a { ${times(1000, (i) => `a${i}: hello`)} } }`,
  'a login tried 500 times': `mutation { ${times(500, (i) => `l${i}: login(password: "${i}")`)} }`,
  'directives, 800': `{ hello ${times(800, () => '@include(if: true)')} }`,
  'directives within the limit': `{ hello ${times(200, () => '@include(if: true)')} }`,
  'unknown directives, 2400': `{ hello ${times(2400, () => '@x')} }`,
  'fields, 4990 in one place': `{ a { ${times(4990, () => 'hello')} } }`,
  'fields, 4800 in 25 places': `{ ${times(25, (i) => `a${i}: a { ${times(190, () => 'hello')} }`)} }`,
  'merges within the limit': `{ a { ${times(190, () => 'hello(s: "x")')} } }`,
  'merges of deep fields': `{ ${times(60, () => `a { b { a { b { ${times(20, (i) => `h${i}: hello`)} } } } }`)} }`,
  'merges in unions': `{ u { ${times(90, (i) => `... on A { h(x: 1) x${i}: g } ... on B { h(x: 1) y${i}: g }`)} } }`,
  'merges through fragments': `{ ${times(180, (i) => `...f${i}`)} } ${times(180, (i) => `fragment f${i} on Query { a { b { hello } } }`)}`,
  'conflicts, 180 fields': `{ u { ${times(180, (i) => `... on ${i % 2 ? 'A' : 'B'} { x${i % 40}: g }`)} } }`,
  'unknown fields, 4900': `{ wide { ${times(4900, (i) => `feild${i}`)} } }`,
  'unknown arguments, 1600': `{ a(${times(1600, (i) => `arg${i}: 1`)}) { hello } }`,
  'equal arguments, 1600': `{ a(${times(1600, () => 'x: 1')}) { hello } }`,
  'unknown input keys, 1600': `{ a(in: {${times(1600, (i) => `kye${i}: 1`)}}) { hello } }`,
  'equal input keys, 1600': `{ a(in: {${times(1600, () => 'b: 1')}}) { hello } }`,
  'a list of 4900 wrong values': `{ a(list: [${times(4900, () => '"x"')}]) { hello } }`,
  'a list of 4900 values': `{ a(list: [${times(4900, () => '1')}]) { hello } }`,
  'variable definitions, 1200': `query (${times(1200, (i) => `$v${i}: Int`)}) { hello }`,
  'equal variable definitions, 1200': `query (${times(1200, () => '$v: Int')}) { hello }`,
  'unknown variables, 2400': `{ id(v: [${times(2400, (i) => `$v${i}`)}]) }`,
  'variables in many fragments': `query (${times(100, (i) => `$v${i}: Int`)}) { ${times(200, (i) => `...f${i}`)} } ${times(200, (i) => `fragment f${i} on Query { x${i}: a(x: $v${i % 100}) { hello } }`)}`,
  'operations, 990': times(990, (i) => `query q${i} { hello }`),
  'operations within the limit': times(200, (i) => `query q${i} { hello }`),
  'operations of one name, 990': times(990, () => 'query q { hello }'),
  'operations with fragments in common': `${times(400, (i) => `query q${i} { ...f0 }`)} ${times(190, (i) => `fragment f${i} on Query { ...f${i + 1} }`)} fragment f190 on Query { hello }`,
  'operations with fragments in common, within the limit': `${times(200, (i) => `query q${i} { ...f0 }`)} ${times(190, (i) => `fragment f${i} on Query { ...f${i + 1} }`)} fragment f190 on Query { hello }`,
  'anonymous operations, 1600': times(1600, () => '{ hello }'),
  'type definitions, 600': times(600, (i) => `type T${i} { a: Int }`),
  'a huge number': `{ a(x: ${'9'.repeat(99_000)}) { hello } }`,
  'a huge float': `{ a(x: 1e${'9'.repeat(99_000)}) { hello } }`,
  'a long string': `{ hello(s: "${'x'.repeat(99_000)}") }`,
  'a long string of escapes': `{ hello(s: "${'\\u0041'.repeat(16_000)}") }`,
  'a long block string': `{ hello(s: """${' x\n'.repeat(4900)}""") }`,
  'a block string of quotes': `{ hello(s: """${'\\"""'.repeat(24_000)}""") }`,
  'a long name': `{ ${'a'.repeat(99_000)} }`,
  'a comment': `{ hello } #${'x'.repeat(99_000)}`,
  'comments, 4900': `{ hello ${'#\n'.repeat(4900)} }`,
  'lines, 4900, and an error below': `${'\n'.repeat(4900)}{ wide { ${times(3000, (i) => `q${i}`)} } }`,
  'commas, 99 000': `{ hello ${','.repeat(99_000)} }`,
  'over 100 000 characters': `{ hello } #${'x'.repeat(900_000)}`,
  'over 5000 tokens': `{ ${times(30_000, () => 'q')} }`,
  'broken at its end': `{ ${times(4900, () => 'a')} ${'"'}`,
  'introspection, deep': `{ __schema { types { ${nested(6, 'fields { type {', 'name', '} }')} } } }`,
  'introspection, whole and often': `{ ${times(10, (i) => `s${i}: __schema { types { name fields { name type { name } } } }`)} }`,
  'introspection, aliases of aliases': `{ __schema { ${times(3, (i) => `t${i}: types { ${times(3, (j) => `f${j}: fields { name ${times(4, (k) => `n${k}: name`)} }`)} }`)} } }`,
  'introspection, aliases within the limit': `{ __schema { types { ${times(3, (j) => `f${j}: fields { name type { name } }`)} ${times(3, (j) => `i${j}: inputFields { name type { name } }`)} } } }`,
  NUL: '{ hello\u0000 }',
};

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
    options: { inflate: true },
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
  const rootValue = { hello: 'world', a: () => rootValue, b: () => rootValue, id: 1, wide: {}, login: true };
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

/** Measures iterations of the event loop and keeps the longest, in milliseconds of CPU time and of wall time. */
function watchLoop() {
  let longest = { cpu: 0, clock: 0 };
  let running = true;
  let before = { ...process.cpuUsage(), clock: performance.now() };
  const turn = () => {
    const after = { ...process.cpuUsage(), clock: performance.now() };
    const clock = after.clock - before.clock;
    const cpu = (after.user + after.system - before.user - before.system) / 1000;
    // Helper threads add to the CPU time, other processes to the wall time.
    if (Math.min(cpu, clock) > longest.cpu) longest = { cpu: Math.min(cpu, clock), clock };
    before = after;
    if (running) setImmediate(turn);
  };
  setImmediate(turn);
  return {
    stop: () => {
      running = false;
      return longest;
    },
  };
}

async function measure() {
  const given = (name) => process.argv.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3);
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
