// What one large answer over HTTP costs in memory: everything that is allocated from the request's head until its last
// byte is with the kernel, garbage included, because no collection may run in between.
// node --expose-gc --max-semi-space-size=128 engine-memory.mjs [requests, default 20]
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { createServer, request } from 'node:http';
import { fileURLToPath } from 'node:url';

const QUERY = '{ pages { a b c d e f g h i j } }';
const WARMING = 10;
const SHORT = '{ short { a b c d e f g h i j } }';

if (process.send === undefined) await measure(Number(process.argv[2] ?? 20));
else process.once('message', ask);

async function measure(count) {
  const { graphqlHTTP } = await import('espalier');
  const handler = graphqlHTTP(await makeSchema(), { graphiql: false });
  const extras = [];
  const server = createServer((req, res) => {
    // The first one leaves buffers to be freed in the background; the second one waits for that.
    globalThis.gc();
    globalThis.gc();
    const before = used();
    res.on('finish', () => extras.push(used() - before));
    handler(req, res);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const client = fork(fileURLToPath(import.meta.url), { execArgv: [] });
  client.send({ port: server.address().port, count });
  const bytes = await new Promise((resolve) => client.once('message', resolve));
  // The client may have its last byte before we hear of it.
  while (extras.length < WARMING + count) await new Promise(setImmediate);
  server.close();
  const ratios = extras.slice(-count).map((extra) => extra / bytes);
  const later = Math.max(...ratios.slice(1));
  console.log(
    `answer ${(bytes / 1024).toFixed(0)} KiB; extra memory, garbage included, in answers: ${ratios[0].toFixed(2)} for the ` +
      `first request (its document is parsed and compiled), ${later.toFixed(2)} at most for the next ${count - 1}`,
  );
  assert(later <= 3, 'an answer costs more than three times its size');
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
    Object.fromEntries(names.map((name) => [name, `${name}${id} `.padEnd(236, 'lorem ipsum ')])),
  );
  const fields = schema.getQueryType().getFields();
  fields.pages.resolve = () => pages;
  fields.short.resolve = () => pages.slice(0, 1);
  return schema;
}

/** The client is another process, so that its memory is not ours. */
async function ask({ port, count }) {
  let bytes = 0;
  // The first document pays for code that all share; the second one is still new when it is first measured.
  for (let n = 0; n < WARMING; n++) await once(port, SHORT);
  for (let n = 0; n < count; n++) bytes = await once(port, QUERY);
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
