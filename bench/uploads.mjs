// Uploads by the GraphQL multipart request specification, compared with graphql-upload and Yoga. Each resolver reads its file.
import { once } from 'node:events';
import { request } from 'node:http';
import { runTopic } from './harness.mjs';

process.env.NODE_ENV = 'production';

const BOUNDARY = 'espalier-benchmark';
const MIB = 2 ** 20;
const QUERY = 'mutation ($file: Upload!) { take(file: $file) }';
const HEADERS = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` };
const CLOSING = Buffer.from(`\r\n--${BOUNDARY}--\r\n`);

/** A form up to the first byte of its file. */
const OPENING = Buffer.from(
  [
    `--${BOUNDARY}`,
    'content-disposition: form-data; name="operations"',
    '',
    JSON.stringify({ query: QUERY, variables: { file: null } }),
    `--${BOUNDARY}`,
    'content-disposition: form-data; name="map"',
    '',
    '{"0":["variables.file"]}',
    `--${BOUNDARY}`,
    'content-disposition: form-data; name="0"; filename="file.bin"',
    'content-type: application/octet-stream',
    '',
    '',
  ].join('\r\n'),
);

/** Random bytes, as in a compressed photograph, line breaks included. */
function noise(size) {
  const bytes = Buffer.alloc(size);
  let state = 1;
  for (let index = 0; index < size; index++) {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    bytes[index] = state >>> 24;
  }
  return bytes;
}

const PIECE = noise(MIB);
const small = (size) => ({
  method: 'POST',
  path: '/graphql',
  headers: HEADERS,
  body: Buffer.concat([OPENING, PIECE.subarray(0, size), CLOSING]),
});

/** One mutation that counts the bytes of its file. */
async function makeSchema(Upload, read) {
  const { GraphQLFloat, GraphQLNonNull, GraphQLObjectType, GraphQLSchema } = await import('graphql');
  const take = {
    type: GraphQLFloat,
    args: { file: { type: new GraphQLNonNull(Upload) } },
    resolve: (_, { file }) => read(file),
  };
  return new GraphQLSchema({
    query: new GraphQLObjectType({ name: 'Query', fields: { bytes: { type: GraphQLFloat } } }),
    mutation: new GraphQLObjectType({ name: 'Mutation', fields: { take } }),
  });
}

function count(stream) {
  return new Promise((resolve, reject) => {
    let bytes = 0;
    stream
      .on('data', (chunk) => {
        bytes += chunk.length;
      })
      .on('end', () => resolve(bytes))
      .on('error', reject);
  });
}

async function espalier(options) {
  const [{ default: express }, { graphqlHTTP, Upload }] = await Promise.all([
    import('express'),
    import('espalier'),
  ]);
  const schema = await makeSchema(Upload, (file) => count(file.createReadStream()));
  const uploads = { maxFileBytes: 2 ** 31, ...options };
  return express().use('/graphql', graphqlHTTP(schema, { uploads }));
}

/** graphql-upload with the least code that executes a request. A complete GraphQL server would use more CPU time. */
async function graphqlUpload() {
  const [{ default: express }, { graphql }, { default: Upload }, { default: receive }] = await Promise.all([
    import('express'),
    import('graphql'),
    import('graphql-upload/GraphQLUpload.mjs'),
    import('graphql-upload/graphqlUploadExpress.mjs'),
  ]);
  const schema = await makeSchema(Upload, async (file) => count((await file).createReadStream()));
  return express().use('/graphql', receive(), async (req, res) => {
    const { query, variables } = req.body;
    res.json(await graphql({ schema, source: query, variableValues: variables }));
  });
}

async function yoga() {
  const [{ default: express }, { createYoga }, { GraphQLScalarType }] = await Promise.all([
    import('express'),
    import('graphql-yoga'),
    import('graphql'),
  ]);
  const schema = await makeSchema(new GraphQLScalarType({ name: 'Upload' }), async (file) => {
    let bytes = 0;
    for await (const chunk of file.stream()) bytes += chunk.length;
    return bytes;
  });
  const app = createYoga({
    schema,
    graphqlEndpoint: '/graphql',
    logging: false,
    maxRequestBodySize: 2 ** 31,
  });
  return express().use('/graphql', app);
}

/** Sends large files one after the other, without keeping one in memory. */
async function sendLarge({ port, count: uploads, size }) {
  for (let index = 0; index < uploads; index++) {
    const length = OPENING.length + size + CLOSING.length;
    const headers = { ...HEADERS, 'content-length': length };
    const req = request({ port, method: 'POST', path: '/graphql', headers });
    const answered = once(req, 'response');
    req.write(OPENING);
    for (let sent = 0; sent < size; sent += MIB) if (!req.write(PIECE)) await once(req, 'drain');
    req.end(CLOSING);
    const [res] = await answered;
    const body = (await res.setEncoding('utf8').toArray()).join('');
    if (JSON.parse(body).data?.take !== size) throw new Error(`the response is ${res.statusCode} ${body}`);
  }
  return { operations: uploads };
}

const large = (mebibytes, uploads) => ({
  name: `${mebibytes} MiB`,
  unit: 'upload',
  count: uploads,
  connections: 1,
  warmup: 1,
  columns: ['peakRssMiB'],
  drive: ({ port, count }) => sendLarge({ port, count, size: mebibytes * MIB }),
});

const taken = (size) => ({ status: 200, body: `{"data":{"take":${size}}}` });

export const topic = {
  name: 'uploads',
  title: 'Uploads',
  about:
    'One file per request to a mutation that reads it to its end, all under Express 5. graphql-upload runs with the least ' +
    'code that executes a request. The others are complete GraphQL servers.',
  packages: ['express', 'graphql', 'graphql-upload', 'graphql-yoga', 'multer'],
  ratios: ['graphql-upload', 'Yoga'],
  contestants: {
    espalier: () => espalier(),
    'espalier, streaming': () => espalier({ streaming: true }),
    'graphql-upload': graphqlUpload,
    Yoga: yoga,
  },
  loads: [
    { name: '1 KiB', requests: [small(1024)], expect: taken(1024), count: 4000 },
    { name: '64 KiB', requests: [small(65536)], expect: taken(65536), count: 3000 },
    large(256, 2),
    { ...large(1024, 1), name: '1 GiB, memory', fresh: true, contestants: ['espalier', 'graphql-upload'] },
  ],
};

await runTopic(import.meta.url, topic);
