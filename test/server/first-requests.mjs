// A child process without free descriptors: `node first-requests.mjs <directory>`. Prints the statuses of the first
// requests for each part that uses a package: without a descriptor, and then with enough of them.
import { closeSync, openSync } from 'node:fs';
import { Agent, createServer, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { GraphQLInt, GraphQLObjectType, GraphQLSchema } from 'graphql';
import { graphqlHTTP, staticFiles, Upload } from '../../dist/index.mjs';

const up = { type: GraphQLInt, args: { file: { type: Upload } }, resolve: () => 1 };
const schema = new GraphQLSchema({
  query: new GraphQLObjectType({ name: 'Query', fields: { hello: { type: GraphQLInt } } }),
  mutation: new GraphQLObjectType({ name: 'Mutation', fields: { up } }),
});
const graphql = graphqlHTTP(schema, { onError: false });
const files = staticFiles(process.argv[2]);
const server = createServer((req, res) => {
  if (req.url.startsWith('/graphql')) return graphql(req, res);
  files(req, res, (error) => {
    res.statusCode = error?.statusCode ?? error?.status ?? 500;
    res.end(String(error));
  });
});

const part = (header, content) =>
  `--b\r\nContent-Disposition: form-data; name=${header}\r\n\r\n${content}\r\n`;
const query = 'mutation ($file: Upload) { up(file: $file) }';
const body =
  part('operations', JSON.stringify({ query, variables: { file: null } })) +
  part('map', '{"0":["variables.file"]}') +
  part('0; filename=a.txt', 'hello') +
  '--b--\r\n';
const headers = { 'content-type': 'multipart/form-data; boundary=b', 'content-length': body.length };

const REQUESTS = {
  small: [{ path: '/small.txt' }],
  streamed: [{ path: '/large.bin' }],
  upload: [{ method: 'POST', path: '/graphql', headers }, body],
  page: [{ path: '/graphql', headers: { accept: 'text/html' } }],
};

/** Opens files until no descriptor is left. */
function exhaust() {
  const descriptors = [];
  try {
    for (;;) descriptors.push(openSync('/dev/null'));
  } catch {
    return descriptors;
  }
}

/** The connection stays open, so that later requests need no descriptor for it. */
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

function send(options, content) {
  const { port } = server.address();
  return new Promise((resolve, reject) => {
    const req = request({ port, agent, ...options }, (res) => {
      res.resume().on('end', () => setImmediate(resolve, res.statusCode));
    });
    req.on('error', reject).end(content);
  });
}

async function sendAll() {
  const statuses = {};
  for (const [name, [options, content]] of Object.entries(REQUESTS))
    statuses[name] = await send(options, content);
  return statuses;
}

server.listen(0, '127.0.0.1', async () => {
  await send({ path: '/graphql?query={hello}' });
  // The packages are loaded in the background after the start.
  await sleep(500);
  const descriptors = exhaust();
  const exhausted = await sendAll();
  for (const descriptor of descriptors) closeSync(descriptor);
  console.log(JSON.stringify([exhausted, await sendAll()]));
  process.exit();
});
