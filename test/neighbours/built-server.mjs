// A server with every part, for runtimes and bundlers. Prints its port. Ends with its standard input.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { attachSubscriptions, createServer, graphqlHTTP, staticFiles, Upload } from 'espalier';
import { createPubSub } from 'espalier/pubsub';
import express from 'express';
import { GraphQLInt, GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';

const folder = mkdtempSync(join(tmpdir(), 'espalier-runtime-'));
const files = join(folder, 'public');
mkdirSync(files);
writeFileSync(join(files, 'digits.txt'), '0123456789');

const events = createPubSub();
const hello = { type: GraphQLString, resolve: () => 'world' };
const schema = new GraphQLSchema({
  query: new GraphQLObjectType({ name: 'Query', fields: { hello } }),
  mutation: new GraphQLObjectType({
    name: 'Mutation',
    fields: {
      hello,
      secret: { ...hello, extensions: { directives: { authenticated: {} } } },
      read: {
        type: GraphQLString,
        args: { file: { type: Upload } },
        resolve: (_root, { file }) => file.text(),
      },
      tick: {
        type: GraphQLString,
        resolve: async () => {
          for (const tick of [1, 2, 3]) await events.publish('tick', { tick });
          return 'published';
        },
      },
    },
  }),
  subscription: new GraphQLObjectType({
    name: 'Subscription',
    fields: { tick: { type: GraphQLInt, subscribe: () => events.subscribe('tick') } },
  }),
});

// The code of each of these options is a file of its own, and so is the table of names that an unknown option reads.
const graphql = graphqlHTTP(schema, {
  auth: true,
  caller: () => ({ id: 'everyone' }),
  clientLimits: { newOperations: 1000 },
  cost: true,
  documents: { apq: true },
  idempotency: true,
  responseCache: true,
  usage: true,
});
const statics = staticFiles(files, {
  cacheControl: 'vite',
  keep: { directory: join(folder, 'kept') },
  listing: true,
});
const app = express().use('/static', statics).use('/graphql', graphql);
app.get('/mistake', (_request, response) => {
  try {
    staticFiles(files, { maxage: 1 });
  } catch (error) {
    response.send(error.message);
  }
});
const server = createServer(app);
const subscriptions = attachSubscriptions(server, graphql, { share: () => 'everyone' });
server.listen(0, '127.0.0.1', () => console.log(server.address().port));

process.stdin.resume().once('end', async () => {
  await subscriptions.close();
  await events.close();
  server.close();
  server.closeAllConnections();
  rmSync(folder, { recursive: true });
});
