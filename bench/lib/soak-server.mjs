import { once } from 'node:events';
import { openSync, readdirSync, writeFileSync } from 'node:fs';
import * as modules from 'node:module';
import { join } from 'node:path';
import { queryObjects } from 'node:v8';
import { openFiles } from './open-files.mjs';
import { createSchema, lines } from './soak-schema.mjs';
import { startTelemetry } from './telemetry.mjs';

/** Documents that clients request by id. */
const TRUSTED = { hello: 'query Hello { hello }', lines: 'query ($n: Int!) { lines(count: $n) }' };

/** Serves everything in one process, and replies to messages with its state. `leak` plants a leak of one kind. */
export async function serve({ folder, leak }) {
  if (process.env.BENCH_GRAPHQL === '17') {
    modules.registerHooks({
      resolve: (specifier, context, next) => next(specifier === 'graphql' ? 'graphql17' : specifier, context),
    });
  }
  const [graphqlJs, espalier, { createPubSub }, { memoryFiles }, { inspect }, { default: express }] =
    await Promise.all([
      import('graphql'),
      import('espalier'),
      import('espalier/pubsub'),
      import('espalier/sources'),
      import('espalier/inspect'),
      import('express'),
    ]);
  await observe();
  const { attachSubscriptions, createServer, graphqlHTTP, staticFiles, Upload } = espalier;
  const faults = [];
  process.on('unhandledRejection', (error) => faults.push(String(error?.stack ?? error)));
  const pubsub = createPubSub({ history: { length: 200 } });
  const graphql = graphqlHTTP(createSchema(graphqlJs, pubsub, Upload), {
    ...limitsOf(folder),
    ...FEATURES,
    graphiql: false,
    introspection: true,
    getMutations: false,
    onError: (error) => faults.length < 50 && faults.push(String(error?.stack ?? error)),
  });
  const site = join(folder, 'site');
  const app = express();
  if (leak !== undefined) app.use(createLeak(leak, folder));
  app.use('/static', staticFiles(site, { compress: true }));
  app.use(
    '/memory',
    staticFiles(
      memoryFiles({
        '/page.css': 'p { color: red }\n'.repeat(500),
        '/stored.bin': Buffer.alloc(3 << 20, 'z'),
      }),
      { compress: true },
    ),
  );
  app.use('/inspect', inspect({ guard: ({ headers }) => headers['x-guard'] === 'open' }));
  app.use('/graphql', graphql);
  app.use((error, _req, res, _next) => {
    faults.push(String(error?.stack ?? error));
    res.destroy();
  });
  const server = createServer(app);
  server.headersTimeout = 5000;
  server.requestTimeout = 8000;
  server.keepAliveTimeout = 3000;
  const subscriptions = attachSubscriptions(server, graphql, {
    ping: 5000,
    share: (_, { query }) => (query.includes('shared') ? 'all' : undefined),
  });
  let published = 0;
  setInterval(() => pubsub.publish('tick', ++published), 20);
  setInterval(() => pubsub.publish('bulk', lines(200)), 100);
  process.on('disconnect', () => process.exit());
  process.on('message', () => process.send(stateOf(folder, faults, subscriptions)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.send({ port: server.address().port, version: graphqlJs.version });
}

/** Small caches and short times, so that they are full before the first state. */
const limitsOf = (folder) => ({
  limits: { bodyTimeout: 5000 },
  uploads: { tempDir: join(folder, 'uploads'), maxFileBytes: 4 << 20, maxRequestBytes: 16 << 20 },
});

const FEATURES = {
  batching: true,
  httpCache: { tags: 'Cache-Tag' },
  responseCache: {
    maxBytes: 2 << 20,
    staleWhileRevalidate: '1s',
    key: ({ headers }) => headers['x-user'] ?? '',
  },
  documents: { from: TRUSTED, apq: true, cacheBytes: 4 << 20 },
  cost: { maxCost: 500 },
  budget: { limit: 1000, window: 60_000, key: ({ headers }) => headers['x-client'] },
  context: ({ headers }) => ({ user: headers['x-user'] }),
  cursors: { key: 'a secret of the soak that is long enough' },
  eventStreams: true,
};

async function observe() {
  await startTelemetry({ exportMilliseconds: 5000 });
  const { EspalierInstrumentation } = await import('espalier/otel');
  // The events that the server publishes have no spans, so that the SDK is idle when there is no traffic.
  new EspalierInstrumentation({ names: true, spans: ['phases', 'events', 'files', 'uploads'] });
}

/** Returns middleware that leaks something now and then, to show that the checks find it. */
function createLeak(kind, folder) {
  let requests = 0;
  const kept = [];
  const path = () => join(folder, `uploads/leak${kept.length}`);
  const leaks = {
    heap: () => lines(20_000),
    files: () => openSync(join(folder, 'site/small.css')),
    temporaryFiles: () => openSync(path(), 'w'),
    namedTemporaryFiles: () => writeFileSync(path(), ''),
    timers: () => setTimeout(() => undefined, 3_600_000).unref(),
  };
  return (_req, _res, next) => {
    if (requests++ % 20 === 0) kept.push(leaks[kind]());
    next();
  };
}

const Timeout = setTimeout(() => undefined, 0).constructor;

/** The delay and the function of a timer; undefined if it has ended and something still refers to it. */
function describeTimer(summary) {
  const part = (name) => new RegExp(`${name}: ([^\\n]*?),?\\n`).exec(summary)?.[1];
  return part('_destroyed') === 'true' ? undefined : `${part('_idleTimeout')} ${part('_onTimeout')}`;
}

function stateOf(folder, faults, subscriptions) {
  global.gc();
  global.gc();
  const targets = openFiles();
  const { heapUsed, arrayBuffers, rss } = process.memoryUsage();
  // All timers that exist, also those that do not keep the process alive.
  const timers = queryObjects(Timeout, { format: 'summary' }).map(describeTimer).filter(Boolean);
  const below = (path) => targets.filter((target) => target.startsWith(path)).length;
  return {
    heapUsed,
    arrayBuffers,
    rss,
    files: below(join(folder, 'site')),
    temporaryFiles: below(join(folder, 'uploads')),
    namedTemporaryFiles: readdirSync(join(folder, 'uploads')).length,
    sockets: below('socket:'),
    timers: timers.length,
    timerKinds: timers.sort().join(' | '),
    resources: process.getActiveResourcesInfo().length,
    faults: faults.slice(0, 5),
    subscriptions: subscriptions.stats(),
  };
}
