import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { openFiles } from './open-files.mjs';

const lines = (count) => Array.from({ length: count }, (_, index) => `line ${index} of a list`);

/** Serves everything in one process, and replies to messages with its state. */
export async function serve(folder) {
  const [{ attachSubscriptions, createServer, graphqlHTTP, staticFiles, Upload }, { createPubSub }] =
    await Promise.all([import('../../dist/index.mjs'), import('../../dist/pubsub.mjs')]);
  const { default: express } = await import('express');
  const faults = [];
  process.on('unhandledRejection', (error) => faults.push(String(error?.stack ?? error)));
  const pubsub = createPubSub();
  const schema = await createSchema(pubsub, Upload);
  const graphql = graphqlHTTP(schema, {
    batching: true,
    inflate: true,
    graphiql: false,
    introspection: true,
    getMutations: false,
    onError: (error) => faults.length < 50 && faults.push(String(error?.stack ?? error)),
    documentCacheBytes: 4 << 20,
    limits: { bodyTimeout: 5000 },
    uploads: { tempDir: join(folder, 'uploads'), maxFileSize: 4 << 20, maxRequestSize: 16 << 20 },
  });
  const app = express();
  app.use('/static', staticFiles(join(folder, 'site')));
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
    keepAlive: 5000,
    share: (_, { query }) => (query.includes('shared') ? 'all' : undefined),
  });
  let published = 0;
  setInterval(() => pubsub.publish('tick', ++published), 20);
  setInterval(() => pubsub.publish('bulk', lines(200)), 100);
  process.on('disconnect', () => process.exit());
  process.on('message', () => process.send(stateOf(folder, faults, subscriptions)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.send({ port: server.address().port });
}

function stateOf(folder, faults, subscriptions) {
  global.gc();
  global.gc();
  const targets = openFiles();
  const { heapUsed, arrayBuffers, rss } = process.memoryUsage();
  const resources = process.getActiveResourcesInfo();
  return {
    heapUsed,
    arrayBuffers,
    rss,
    files: targets.filter((target) => target.startsWith(join(folder, 'site'))).length,
    temporaryFiles: targets.filter((target) => target.startsWith(join(folder, 'uploads'))).length,
    namedTemporaryFiles: readdirSync(join(folder, 'uploads')).length,
    sockets: targets.filter((target) => target.startsWith('socket:')).length,
    timers: resources.filter((name) => name === 'Timeout' || name === 'Immediate').length,
    faults: faults.slice(0, 5),
    subscriptions: subscriptions.stats(),
  };
}

async function createSchema(pubsub, Upload) {
  const { GraphQLInt, GraphQLList, GraphQLNonNull, GraphQLObjectType, GraphQLSchema, GraphQLString } =
    await import('graphql');
  const count = { count: { type: new GraphQLNonNull(GraphQLInt) } };
  const Query = new GraphQLObjectType({
    name: 'Query',
    fields: () => ({
      hello: { type: GraphQLString, args: { s: { type: GraphQLString } }, resolve: () => 'world' },
      a: { type: Query, args: { x: { type: GraphQLInt } }, resolve: () => ({}) },
      b: { type: Query, resolve: () => ({}) },
      id: { type: GraphQLInt, resolve: () => 1 },
      lines: {
        type: new GraphQLList(GraphQLString),
        args: count,
        resolve: (_, args) => lines(Math.min(args.count, 20_000)),
      },
      slow: {
        type: GraphQLString,
        args: { of: { type: GraphQLInt } },
        resolve: () => new Promise((resolve) => setTimeout(resolve, 200, 'slow')),
      },
    }),
  });
  return new GraphQLSchema({
    query: Query,
    mutation: new GraphQLObjectType({
      name: 'Mutation',
      fields: {
        size: {
          type: GraphQLInt,
          args: { file: { type: Upload } },
          async resolve(_, { file }) {
            let size = 0;
            for await (const chunk of file.createReadStream()) size += chunk.length;
            return size;
          },
        },
        unread: {
          type: GraphQLString,
          args: { file: { type: Upload } },
          resolve: (_, { file }) => file?.filename,
        },
      },
    }),
    subscription: new GraphQLObjectType({
      name: 'Subscription',
      fields: {
        tick: { type: GraphQLInt, subscribe: () => pubsub.subscribe('tick'), resolve: (value) => value },
        shared: { type: GraphQLInt, subscribe: () => pubsub.subscribe('tick'), resolve: (value) => value },
        bulk: {
          type: new GraphQLList(GraphQLString),
          subscribe: () => pubsub.subscribe('bulk'),
          resolve: (value) => value,
        },
      },
    }),
  });
}
