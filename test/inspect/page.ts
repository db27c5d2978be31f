import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { makeExecutableSchema } from '@graphql-tools/schema';
import express from 'express';
import { GraphQLError } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { inspect } from '../../middleware/inspect.ts';
import { createPubSub } from '../../middleware/pubsub.ts';
import { createServer } from '../../middleware/server.ts';
import { staticFiles } from '../../middleware/static.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { listen } from '../kit.ts';
import { ready } from '../live/client.ts';
import { events } from '../live/connect-clients.ts';

const typeDefs = `
  directive @cacheControl(maxAge: Int) on FIELD_DEFINITION
  type Query {
    product(id: ID): String
    search(text: String): [String!] @cacheControl(maxAge: 60)
    basket: String
    stock: Int
    price: Int @deprecated
  }
  type Mutation { checkout: String }
  type Subscription { events(topic: String!): String }
`;

/** A shop with the page at /inspect, for the browser test and for the screenshots of the documentation. */
export async function startShop() {
  const pubsub = createPubSub<{ orders: string }>();
  const resolvers = {
    Query: {
      product: () => 'Secateurs',
      search: async () => {
        await pause(4 + Math.random() * 20);
        return ['Secateurs', 'Trellis'];
      },
      basket: () => {
        throw new GraphQLError('Sign in to see your basket', { extensions: { code: 'UNAUTHENTICATED' } });
      },
      stock: () => 7,
      price: () => 9,
    },
    Mutation: {
      checkout: async () => {
        await pause(30 + Math.random() * 60);
        await pubsub.publish('orders', 'order');
        return 'ok';
      },
    },
    Subscription: {
      events: { subscribe: () => pubsub.subscribe('orders'), resolve: (event: string) => event },
    },
  };
  const schema = makeExecutableSchema({ typeDefs, resolvers });
  const handler = graphqlHTTP(schema, { onError: false, httpCache: true, responseCache: true, usage: {} });
  const folder = mkdtempSync(join(tmpdir(), 'shop-'));
  mkdirSync(join(folder, 'assets'));
  writeFileSync(join(folder, 'assets', 'shop.css'), 'body { color: green }'.repeat(400));
  const app = express();
  const server = createServer(app);
  app.use('/inspect', inspect());
  app.use('/graphql', handler);
  app.use(staticFiles(folder));
  const { url: origin } = await listen(server);
  const subscriptions = attachSubscriptions(server, handler);
  const send = (query: string, client = 'web') =>
    fetch(`${origin}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'graphql-client-name': client },
      body: JSON.stringify({ query }),
    });
  return {
    origin,
    send,
    asset: () => fetch(`${origin}/assets/shop.css`),
    async subscribe() {
      const client = await ready(`${origin.replace('http', 'ws')}/graphql`);
      client.send(events('1', 'orders'));
      return client;
    },
    async close() {
      await subscriptions.close();
      await pubsub.close();
      await server.drain({ timeout: 100 });
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export type Shop = Awaited<ReturnType<typeof startShop>>;
