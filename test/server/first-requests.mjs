// A child process without free descriptors: `node first-requests.mjs <directory> <entry of the package>`. Prints the
// statuses of the first requests for each part that uses a package: without a descriptor, and then with enough of them.

import { once } from 'node:events';
import { closeSync, openSync, readdirSync } from 'node:fs';
import { Agent, createServer, request } from 'node:http';
import { connect } from 'node:net';
import { GraphQLInt, GraphQLObjectType, GraphQLSchema } from 'graphql';

const { attachSubscriptions, graphqlHTTP, staticFiles, Upload } = await import(process.argv[3]);

const up = { type: GraphQLInt, args: { file: { type: Upload } }, resolve: () => 1 };
const schema = new GraphQLSchema({
  query: new GraphQLObjectType({ name: 'Query', fields: { hello: { type: GraphQLInt } } }),
  mutation: new GraphQLObjectType({ name: 'Mutation', fields: { up } }),
});
const graphql = graphqlHTTP(schema, {
  onError: false,
  responseCache: true,
  caller: () => null,
  idempotency: true,
});
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

const [script] = readdirSync(new URL('../../dist/graphiql', import.meta.url))
  .filter((name) => name.startsWith('main-'))
  .map((name) => name.replace('.cjs', ''));
const REQUESTS = {
  small: [{ path: '/small.txt' }],
  streamed: [{ path: '/large.bin' }],
  upload: [{ method: 'POST', path: '/graphql', headers }, body],
  page: [{ path: '/graphql', headers: { accept: 'text/html' } }],
  script: [{ path: `/graphql/__graphiql/${script}`, headers: { 'accept-encoding': 'br' } }],
  query: [{ path: '/graphql?query={hello}' }],
  mutation: [
    {
      method: 'POST',
      path: '/graphql',
      headers: { 'content-type': 'application/json', 'idempotency-key': '"1"' },
    },
    '{"query":"mutation { up }"}',
  ],
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

/** The connections stay open, so that later requests need no descriptor for them. */
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

/** Opens a connection for a later handshake of a WebSocket. */
async function openConnection() {
  const socket = connect(server.address().port);
  await once(socket, 'connect');
  return socket;
}

/** Completes the handshake and the first messages of a WebSocket; returns the status and the type of the reply. */
async function openWebSocket(socket) {
  socket.on('error', () => undefined);
  const head = [
    'GET /graphql HTTP/1.1',
    'Host: localhost',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
    'Sec-WebSocket-Protocol: graphql-transport-ws',
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  // A masked text frame; the mask is zero.
  const init = Buffer.from('{"type":"connection_init"}');
  socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | init.length, 0, 0, 0, 0]), init]));
  let received = '';
  for await (const chunk of socket) {
    received += chunk.toString('latin1');
    if (received.includes('connection_ack')) return 'acknowledged';
  }
  return received.slice(0, 12);
}

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

attachSubscriptions(server, graphql);

server.listen(0, '127.0.0.1', async () => {
  // The connection of the agent. The request needs none of the packages.
  await send({ path: '/missing' });
  const sockets = [await openConnection(), await openConnection()];
  await send({ path: '/missing' });
  const descriptors = exhaust();
  const exhausted = { ...(await sendAll()), socket: await openWebSocket(sockets[0]) };
  for (const descriptor of descriptors) closeSync(descriptor);
  console.log(JSON.stringify([exhausted, { ...(await sendAll()), socket: await openWebSocket(sockets[1]) }]));
  process.exit();
});
