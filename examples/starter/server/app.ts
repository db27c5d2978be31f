import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import DataLoader from 'dataloader';
import { attachSubscriptions, createServer, graphqlHTTP, staticFiles } from 'espalier';
import { createPubSub, redis } from 'espalier/pubsub';
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
  const events = createPubSub<Events>({
    transport: redisUrl && redis(redisUrl, { prefix: 'starter:' }),
  });
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
  const server = createServer(app, { checks: { events: () => events.publish('probe', null) } });
  // The process lives: restart it if this fails.
  app.get('/health/live', server.liveness);
  // The process accepts requests: a load balancer sends none while this fails.
  app.get('/health/ready', server.readiness);
  app.use('/graphql', handler);
  // No script in an upload may run. The name of a picture is random, so another picture never has its URL.
  app.use('/pictures', staticFiles(pictures, { untrusted: true, cacheControl: 'immutable' }));
  // Tools for agents: npm install @modelcontextprotocol/server, set the option documents of graphqlHTTP, then
  // app.use('/mcp', mcp(handler, { name, version })) with mcp of espalier/mcp.
  if (clientDir !== undefined) {
    // Vite adds a hash to the names of its assets. Put no files of your own into public/assets, which have none.
    app.use(staticFiles(clientDir, { html: true, fallback: 'index.html', cacheControl: /^\/assets\// }));
  }

  // Many subscribers that see the same? The option share executes each event once for all of them.
  attachSubscriptions(server, handler);

  /** Lets requests in progress finish, and closes subscriptions so that their clients connect again. */
  async function stop(delay = 0): Promise<void> {
    await server.drain({ delay });
    await events.close().catch(console.error);
  }

  return { server, events, stop };
}
