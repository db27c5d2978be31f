// Everything that streams, over HTTP/2, in a process of its own: `fork('streaming-server.ts', [folder, 'tls' or ''])`. Its
// parent changes the files, and asks for what is open.
import { readFileSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import express from 'express';
import { buildSchema, versionInfo } from 'graphql';
import { graphqlHTTP, Upload } from '../../middleware/graphql.ts';
import { mcp } from '../../middleware/mcp.ts';
import { createServer } from '../../middleware/server.ts';
import { memoryFiles } from '../../middleware/sources.ts';
import { staticFiles } from '../../middleware/static.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { descriptorsIn } from '../descriptors.ts';

const [, , folder = '', security] = process.argv;
const SIZE = 2_000_000;
let version = 0;

/** Changes the file, in the folder and in the source. */
function change(): void {
  const bytes = Buffer.alloc(SIZE, ++version);
  writeFileSync(join(folder, 'large.bin'), bytes);
  files.set('large.bin', bytes);
}
const files = memoryFiles();
change();

const DEFER =
  versionInfo.major >= 17
    ? 'directive @defer(if: Boolean! = true, label: String) on FRAGMENT_SPREAD | INLINE_FRAGMENT'
    : '';
const schema = buildSchema(`${DEFER}
  scalar Upload
  type Query { now: String, large: String, later: Query }
  type Mutation { up(file: Upload): Int }
  type Subscription { large: String, medium: String }
`);
Object.assign(schema.getType('Upload') as object, {
  parseValue: Upload.parseValue,
  parseLiteral: Upload.parseLiteral,
});
const LARGE = 'x'.repeat(300_000);
let sources = 0;
const rootValue = {
  now: 'now',
  large: LARGE,
  later: () => sleep(20, rootValue),
  up: async ({ file }: { file: Upload }) => (await file).size,
};
for (const field of Object.values(schema.getSubscriptionType()?.getFields() ?? {})) {
  field.subscribe = async function* () {
    sources++;
    try {
      for (;;) {
        yield { large: LARGE, medium: LARGE.slice(0, 30_000) };
        await sleep(5);
      }
    } finally {
      sources--;
    }
  };
}

const documents = { from: { now: 'query now { now }', large: 'query large { large }' }, only: false };
const complaints: string[] = [];
// A client that leaves is no error.
const onError = (error: unknown): void => void complaints.push(String(error));
const uploads = { tempDir: folder };
const graphql = graphqlHTTP(schema, { rootValue, batching: true, documents, uploads, onError });
const app = express();
let errors = 0;
app.use('/disk', staticFiles(folder, { cache: false }));
app.use('/source', staticFiles(files, { cache: false }));
app.use('/graphql', graphql);
app.use('/mcp', mcp(graphql, { name: 'test', version: '1.0.0' }));
app.get('/closed', (_req, res) => {
  res.write(LARGE);
  setImmediate(() => (res as { stream?: { close(code: number): void } }).stream?.close(2));
});
app.use((_error: unknown, _req: unknown, res: express.Response, _next: unknown) => {
  errors++;
  res.status(500).end();
});

const fixture = (name: string): string => readFileSync(`test/fixtures/tls/${name}.pem`, 'utf8');
const tls = security === 'tls' ? { key: fixture('key'), cert: fixture('cert') } : {};
const server = createServer(app, { http2: true, webSockets: true, ...tls });
const subscriptions = attachSubscriptions(server, graphql);
let streams = 0;
server.on('stream', (stream) => {
  streams++;
  stream.once('close', () => streams--);
});
process.on('warning', ({ message }) => complaints.push(message));
process.on('unhandledRejection', (reason) => complaints.push(String(reason)));

process.on('message', async (ask) => {
  if (ask === 'change') change();
  if (ask === 'drain') await server.drain({ timeout: 500 });
  const { connections, operations } = subscriptions.stats();
  const open = { streams, sources, errors, files: descriptorsIn(folder), connections, operations };
  const { heapUsed, external } = process.memoryUsage();
  process.send?.({ open, complaints, bytes: heapUsed + external, cpu: process.cpuUsage() });
});
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
