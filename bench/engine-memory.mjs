// Memory that one large response allocates, on and off the heap, from the request's head until the kernel has its last
// byte. Garbage is included, because no collection runs in between. The request uses less at any one moment.
// There are three kinds of requests: the first long response of the process, which allocates the buffers; the first
// request of a document, which is parsed, validated and compiled; and all others.
// node --expose-gc --max-semi-space-size=128 engine-memory.mjs [number of requests, default 20]
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { createServer, request } from 'node:http';
import { fileURLToPath } from 'node:url';

const long = (name) => `{ ${name}: pages { a b c d e f g h i j } }`;
const SHORT = '{ short { a b c d e f g h i j } }';
const WARMING = 10;
const FIRST = 'the first long response of the process';
const KINDS = {
  [FIRST]: 1,
  'the first request of a document': 5,
  'other requests': Number(process.argv[2] ?? 20),
};
/** In the order of the kinds. The first document also compiles the code that all of them share. */
function* queries() {
  for (let n = 0; n < WARMING; n++) yield SHORT;
  const names = Object.values(KINDS).flatMap((count, kind) =>
    Array.from({ length: count }, (_, n) => (kind === 2 ? 'again' : `q${kind}n${n}`)),
  );
  // Sent before, so that it is in the document cache.
  names.splice(1, 0, 'again');
  yield* names.map(long);
}

if (process.send === undefined) await measure();
else process.once('message', ask);

async function measure() {
  const { graphqlHTTP } = await import('espalier');
  const handler = graphqlHTTP(await makeSchema(), { graphiql: false });
  const extras = [];
  const server = createServer((req, res) => {
    // The first collection frees buffers in the background; the second waits for it.
    globalThis.gc();
    globalThis.gc();
    const before = used();
    res.on('finish', () => extras.push(used() - before));
    handler(req, res);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const client = fork(fileURLToPath(import.meta.url), process.argv.slice(2), { execArgv: [] });
  client.send({ port: server.address().port });
  const bytes = await new Promise((resolve) => client.once('message', resolve));
  // The client may receive the last byte before this process has measured the request.
  while (extras.length < [...queries()].length) await new Promise(setImmediate);
  server.close();
  report(bytes, extras.slice(WARMING));
}

function report(bytes, [first, _again, ...others]) {
  const ratios = [first, ...others].map((extra) => extra / bytes);
  console.log(
    `response ${(bytes / 1024).toFixed(0)} KiB; extra memory, garbage included, in responses, at most:`,
  );
  for (const [kind, count] of Object.entries(KINDS)) {
    const most = Math.max(...ratios.splice(0, count));
    console.log(`${most.toFixed(2)}  ${kind}`);
    // During the first one V8 collects type feedback and compiles, which is not a cost of the request.
    assert(kind === FIRST || most <= 3, `${kind}: more than three times the response`);
  }
}

function used() {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function makeSchema() {
  const { buildSchema } = await import('graphql');
  const names = [...'abcdefghij'];
  const schema = buildSchema(
    `type Page { ${names.map((name) => `${name}: String`).join(' ')} } type Query { pages: [Page!]! short: [Page!]! }`,
  );
  const pages = Array.from({ length: 200 }, (_, id) =>
    Object.fromEntries(names.map((name) => [name, flat(`${name}${id} `.padEnd(236, 'lorem ipsum '))])),
  );
  const fields = schema.getQueryType().getFields();
  fields.pages.resolve = () => pages;
  fields.short.resolve = () => pages.slice(0, 1);
  return schema;
}

/** A flat string, as it comes from a database. V8 would flatten a concatenated one on its first read. */
function flat(text) {
  return Buffer.from(text).toString();
}

/** The client is another process, so that its memory does not count. */
async function ask({ port }) {
  let bytes = 0;
  for (const query of queries()) bytes = await once(port, query);
  process.send(bytes);
  process.disconnect();
}

function once(port, query) {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' };
    const req = request({ port, host: '127.0.0.1', method: 'POST', headers }, (res) => {
      let bytes = 0;
      res.on('data', (chunk) => {
        bytes += chunk.length;
      });
      res.on('end', () => resolve(bytes));
    });
    req.on('error', reject);
    req.end(JSON.stringify({ query }));
  });
}
