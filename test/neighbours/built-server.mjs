// A server with every part, for runtimes and bundlers. Prints its port. Ends with its standard input.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { attachSubscriptions, createServer, graphqlHTTP, staticFiles, Upload } from 'espalier';
import { createPubSub } from 'espalier/pubsub';
import express from 'express';
import { GraphQLInt, GraphQLObjectType, GraphQLSchema, GraphQLString } from 'graphql';

const files = mkdtempSync(join(tmpdir(), 'espalier-runtime-'));
writeFileSync(join(files, 'digits.txt'), '0123456789');

const events = createPubSub();
const hello = { type: GraphQLString, resolve: () => 'world' };
const schema = new GraphQLSchema({
  query: new GraphQLObjectType({ name: 'Query', fields: { hello } }),
  mutation: new GraphQLObjectType({
    name: 'Mutation',
    fields: {
      hello,
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

const graphql = graphqlHTTP(schema);
const app = express().use('/static', staticFiles(files)).use('/graphql', graphql);
const server = createServer(app);
const subscriptions = attachSubscriptions(server, graphql, { share: () => 'everyone' });
server.listen(0, '127.0.0.1', () => console.log(server.address().port));

process.stdin.resume().once('end', async () => {
  await subscriptions.close();
  await events.close();
  server.close();
  server.closeAllConnections();
  rmSync(files, { recursive: true });
});
