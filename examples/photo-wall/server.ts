// A wall of pictures that updates live in every open tab: `npm start`. See README.md.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { attachSubscriptions, createServer, graphqlHTTP, staticFiles } from 'espalier';
import { presence } from 'espalier/presence';
import { createPubSub, redis } from 'espalier/pubsub';
import { memoryFiles } from 'espalier/sources';
import { signUrl } from 'espalier/static';
import { receiveFiles } from 'espalier/uploads';
import express, { type ErrorRequestHandler } from 'express';
import { addPhoto, createSchema, type Events } from './schema.ts';
import { openStore } from './store.ts';

const {
  PORT = '3000',
  HOST = '127.0.0.1',
  DATA_DIR = fileURLToPath(new URL('data', import.meta.url)),
  REDIS_URL,
  // Several processes need the same secret.
  CURSOR_KEY = randomBytes(32).toString('hex'),
  LINK_KEY = randomBytes(32).toString('hex'),
} = process.env;
const folder = resolve(DATA_DIR);
const TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif'];

const store = await openStore(folder, new URL('pictures/', import.meta.url)).catch((error: Error) =>
  giveUp(`the pictures cannot be kept in ${folder}: ${error.message}`),
);
// With a history, open tabs continue after a lost connection without a gap.
const events = createPubSub<Events>({
  transport: REDIS_URL && redis(REDIS_URL, { prefix: 'photo-wall:' }),
  history: {},
  onError: report,
});
const MAX_BYTES = 10 * 1024 * 1024;
const schema = createSchema(store, events, presence(events));
const graphql = graphqlHTTP(schema, {
  cursors: { key: CURSOR_KEY },
  uploads: { maxFileBytes: MAX_BYTES, maxFiles: 1 },
});

// A plain form adds pictures without JavaScript, and those that are only for who has a link.
const form = receiveFiles({ files: { photo: 1 }, maxFileBytes: MAX_BYTES, accept: TYPES });
const forPage = headers(
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; " +
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
);
const app = express();
app.disable('x-powered-by');
// Users choose the content of these files. With `untrusted`, no script in them runs.
app.use('/uploads', staticFiles(store.pictures, { untrusted: true, cacheControl: 'immutable' }));
const keys = LINK_KEY;
app.use('/unlisted', staticFiles(store.unlisted, { untrusted: true, signed: { keys } }));
app.post('/photos', form, async (req, res) => {
  const { files, body } = form.form(req);
  const [file] = files.photo;
  if (file === undefined) return void res.status(400).send('Choose a picture.');
  if (body['for'] === 'link') {
    const name = await store.addUnlisted(await file.bytes());
    // The browser shows the picture, and its address is the link.
    return res.redirect(303, signUrl(`/unlisted/${name}`, { keys, expiresIn: '1d' }));
  }
  res.redirect(303, `/uploads/${(await addPhoto(store, events, file)).file}`);
});
const showRefusal: ErrorRequestHandler = (error, _req, res, next) => {
  if (!(error.status < 500)) return next(error);
  res.status(error.status).type('text').send(error.message);
};
app.use('/photos', showRefusal);
app.use('/graphql', graphql);
app.use('/modules/graphql-ws', staticFiles(new URL('.', import.meta.resolve('graphql-ws/client'))));
app.use(
  '/modules',
  staticFiles(
    memoryFiles({ 'espalier-client.mjs': readFileSync(new URL(import.meta.resolve('espalier/client'))) }),
  ),
);
app.use('/', staticFiles(new URL('public/', import.meta.url), { html: true, setHeaders: forPage }));

const server = createServer(app);
const sockets = attachSubscriptions(server, graphql);
server.on('error', (error: NodeJS.ErrnoException) =>
  giveUp(
    error.code === 'EADDRINUSE'
      ? `port ${PORT} is in use; choose another one with PORT=${Number(PORT) + 1} npm start`
      : error.message,
  ),
);
if (!/^\d{1,5}$/.test(PORT) || Number(PORT) > 65_535)
  giveUp(`PORT is "${PORT}"; expected a number from 0 to 65535`);
server.listen(Number(PORT), HOST, () => {
  const url = `http://localhost:${(server.address() as AddressInfo).port}`;
  const shared =
    REDIS_URL === undefined
      ? 'this process only (REDIS_URL joins several)'
      : `Redis at ${new URL(REDIS_URL).host}`;
  console.log(
    `Photo wall  ${url}/\nGraphQL     ${url}/graphql\nPictures    ${folder}\nEvents      ${shared}`,
  );
});

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void shutDown());

/** Finishes open requests, closes the sockets and ends the process. A second signal ends it immediately. */
async function shutDown(): Promise<void> {
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));
  const closed = once(server, 'close');
  server.close();
  await sockets.close({ drain: 500 });
  setTimeout(() => server.closeAllConnections(), 10_000).unref();
  await closed;
  await events.close().catch(report);
}

function headers(policy: string): (res: ServerResponse) => void {
  return (res) => {
    res.setHeader('content-security-policy', policy);
    res.setHeader('x-content-type-options', 'nosniff');
    res.setHeader('referrer-policy', 'same-origin');
  };
}

function report(error: Error): void {
  console.error(`photo wall: ${error.message}`);
}

function giveUp(reason: string): never {
  report(new Error(reason));
  process.exit(1);
}
