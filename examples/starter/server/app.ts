import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import DataLoader from 'dataloader';
import { attachSubscriptions, createServer, graphqlHTTP, staticFiles } from 'espalier';
import { createPubSub, type PubSub } from 'espalier/pubsub';
import express from 'express';
import { type Context, createSchema, type Events } from './schema.ts';
import { Store } from './store.ts';

export interface Settings {
  /** The directory of uploaded pictures. */
  readonly dataDir: string;
  /** The directory of the built client; undefined in development, where Vite serves it. */
  readonly clientDir?: string | undefined;
  /** Without Redis, events reach the subscribers of this process only. */
  readonly redisUrl?: string | undefined;
}

/** Creates the server with all its parts. Tests use it without listening. */
export function createApi({ dataDir, clientDir, redisUrl }: Settings) {
  const pictures = join(dataDir, 'pictures');
  mkdirSync(pictures, { recursive: true });

  const store = new Store();
  const events = createPubSub<Events>({ redis: redisUrl, prefix: 'starter:' });
  const handler = graphqlHTTP(createSchema({ store, events, pictures }), {
    context: (): Context => ({ authors: new DataLoader((ids) => store.findAuthors(ids)) }),
    graphiql: process.env.NODE_ENV !== 'production',
    introspection: process.env.NODE_ENV !== 'production',
    getMutations: false,
    uploads: { maxFiles: 1, maxFileBytes: 5_000_000 },
  });

  const app = express();
  app.disable('x-powered-by');
  app.set('trust proxy', 'loopback, uniquelocal');
  let isStopping = false;
  // The process lives: restart it if this fails.
  app.get('/health/live', (_req, res) => void res.json({ status: 'ok' }));
  // The process accepts requests: a load balancer sends none while this fails.
  app.get('/health/ready', async (_req, res) => {
    const isReady = !isStopping && (await canPublish(events));
    res.status(isReady ? 200 : 503).json({ status: isReady ? 'ready' : 'not ready' });
  });
  app.use('/graphql', handler);
  app.use('/pictures', staticFiles(pictures, { maxAge: '1y', immutable: true }));
  if (clientDir !== undefined) {
    // Vite adds a hash to the names of its assets.
    app.use(staticFiles(clientDir, { html: true, fallback: 'index.html', immutable: /^\/assets\// }));
  }

  const server = createServer(app);
  const subscriptions = attachSubscriptions(server, handler);

  /** Lets requests in progress finish, and closes subscriptions so that their clients connect again. */
  async function stop(): Promise<void> {
    isStopping = true;
    if (server.listening) server.close();
    await subscriptions.close({ drain: 1_000 });
    server.closeIdleConnections();
    await events.close();
  }

  return { server, events, stop };
}

/** Whether Redis accepts events, if there is one. */
async function canPublish(events: PubSub<Events>): Promise<boolean> {
  return events.publish('probe', null).then(
    () => true,
    () => false,
  );
}
