// A child process without free descriptors: `node first-upload.cjs`. Prints the statuses of two uploads, of which the
// first needs the files of the parser and the second has descriptors for them.
const { closeSync, openSync } = require('node:fs');
const { Agent, createServer, request } = require('node:http');
const { GraphQLInt, GraphQLObjectType, GraphQLSchema } = require('graphql');
const { graphqlHTTP, Upload } = require('../../dist/index.cjs');

const up = { type: GraphQLInt, args: { file: { type: Upload } }, resolve: () => 1 };
const schema = new GraphQLSchema({
  query: new GraphQLObjectType({ name: 'Query', fields: { hello: { type: GraphQLInt } } }),
  mutation: new GraphQLObjectType({ name: 'Mutation', fields: { up } }),
});
const handler = graphqlHTTP(schema, { onError: false });
const server = createServer((req, res) => handler(req, res));

const part = (header, content) =>
  `--b\r\nContent-Disposition: form-data; name=${header}\r\n\r\n${content}\r\n`;
const query = 'mutation ($file: Upload) { up(file: $file) }';
const body =
  part('operations', JSON.stringify({ query, variables: { file: null } })) +
  part('map', '{"0":["variables.file"]}') +
  part('0; filename=a.txt', 'hello') +
  '--b--\r\n';

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

server.listen(0, async () => {
  await send({ path: '/?query={hello}' });
  const headers = { 'content-type': 'multipart/form-data; boundary=b', 'content-length': body.length };
  const statuses = [];
  for (const isExhausted of [true, false]) {
    const descriptors = isExhausted ? exhaust() : [];
    statuses.push(await send({ method: 'POST', headers }, body));
    for (const descriptor of descriptors) closeSync(descriptor);
  }
  console.log(JSON.stringify(statuses));
  process.exit();
});
