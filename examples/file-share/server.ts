// A file share for a team: `npx tsx examples/file-share/server.ts`. See README.md.
import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import DataLoader from 'dataloader';
import {
  attachSubscriptions,
  type ConnectingSubscription,
  createServer,
  graphqlHTTP,
  staticFiles,
} from 'espalier';
import { createPubSub } from 'espalier/pubsub';
import express, { type RequestHandler } from 'express';
import session from 'express-session';
import helmet from 'helmet';
import { type Context, createSchema, type Events } from './schema.ts';
import { Store } from './store.ts';

declare module 'express-session' {
  interface SessionData {
    userId: string;
  }
}

const {
  PORT = '3000',
  DATA_DIR = fileURLToPath(new URL('data', import.meta.url)),
  SESSION_SECRET = randomBytes(32).toString('hex'),
} = process.env;
const folder = resolve(DATA_DIR);
mkdirSync(folder, { recursive: true }); // staticFiles needs it when it is created

const store = new Store(folder);
const events = createPubSub<Events>();
const sessions = session({
  secret: SESSION_SECRET,
  resave: false,
  saveUninitialized: false,
  cookie: { sameSite: 'lax' },
});

// The same function over HTTP and over sockets. A loader lives for one request, operation or event.
const context = (req: { session?: { userId?: string } }): Context => ({
  userId: req.session?.userId,
  people: new DataLoader((ids: readonly string[]) => store.findPeople(ids)),
});
const graphql = graphqlHTTP(createSchema(store, events), {
  context,
  graphiql: process.env.NODE_ENV !== 'production',
  uploads: { maxFileBytes: 50 * 1024 * 1024, maxFiles: 1 },
});

const app = express();
app.set('trust proxy', 'loopback'); // nginx on the same machine terminates TLS
app.use(helmet(), sessions);
app.post('/sign-in', express.json(), (req, res) => {
  const name: unknown = req.body.name;
  if (typeof name !== 'string' || name === '') return void res.status(400).json({ error: 'Send a name' });
  const person = store.signIn(name);
  req.session.userId = person.id;
  res.json(person);
});
app.use('/graphql', graphql);

// Only readers of a file may download it. Shared caches never store it.
const mayRead: RequestHandler = (req, res, next) => {
  const file = store.find(req.path.slice(1));
  if (file === undefined || !file.readers.has(req.session.userId ?? '')) return void res.sendStatus(404);
  res.attachment(file.name);
  next();
};
app.use('/files', mayRead, staticFiles(folder, { cacheControl: 'private, no-cache' }));
app.use(
  staticFiles(new URL('public/', import.meta.url), {
    html: true,
    fallback: 'index.html',
    cacheControl: /^\/assets\//,
    precompressed: true,
  }),
);

const server = createServer(app).listen(Number(PORT), () => {
  console.log(`File share on http://localhost:${PORT}`);
});
attachSubscriptions(server, graphql, {
  middleware: [sessions],
  contextPer: 'event',
  onConnect: ({ context }: ConnectingSubscription<Context>) => context.userId !== undefined,
});

process.once('SIGTERM', async () => {
  // Downloads that have not ended after a second are cut off.
  await server.drain({ timeout: 1000 });
  await events.close().catch(console.error);
});
