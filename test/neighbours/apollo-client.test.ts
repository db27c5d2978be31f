/** @tags once */
import { execFile } from 'node:child_process';
import type http from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { graphqlHTTP } from 'espalier';
import { createClient } from 'graphql-ws';
import { SubscriptionClient } from 'subscriptions-transport-ws';
import WebSocket from 'ws';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { listen } from '../live/client.ts';
import { liveSchema } from '../live/schema.ts';
import { createSchema } from '../uploads/schema.ts';
import { startServer } from '../uploads/server.ts';

describe('Apollo Client', () => {
  let server: http.Server;
  let url: string;
  let subscriptions: ReturnType<typeof attachSubscriptions>;

  beforeAll(async () => {
    ({ server, url } = await listen());
    subscriptions = attachSubscriptions(server, liveSchema().schema);
  });
  afterAll(async () => {
    await subscriptions.close();
    server.close();
  });

  const subscription = 'subscription { count(to: 3) }';

  it('Apollo Client subscribes over both subprotocols', async () => {
    const { ApolloClient, ApolloLink, gql, InMemoryCache } = await import('@apollo/client/core');
    const { GraphQLWsLink } = await import('@apollo/client/link/subscriptions');
    const { WebSocketLink } = await import('@apollo/client/link/ws');
    const modern = createClient({ url, webSocketImpl: WebSocket });
    const legacy = new SubscriptionClient(url, { reconnect: false }, WebSocket);
    for (const link of [new GraphQLWsLink(modern), new WebSocketLink(legacy)]) {
      const client = new ApolloClient({ link: ApolloLink.from([link]), cache: new InMemoryCache() });
      const seen = await new Promise<unknown[]>((resolve, reject) => {
        const results: unknown[] = [];
        client.subscribe({ query: gql(subscription) }).subscribe({
          next: ({ data }) => results.push(data),
          error: reject,
          complete: () => resolve(results),
        });
      });
      expect(seen).toEqual([{ count: 1 }, { count: 2 }, { count: 3 }]);
      await expect(client.query({ query: gql('{ fails }') })).rejects.toThrow('on purpose');
      client.stop();
    }
    await modern.dispose();
    legacy.close();
  });

  it('apollo-upload-client uploads files without extra headers', async () => {
    const uploads = await startServer(graphqlHTTP(createSchema([])));
    const script = join(__dirname, 'apollo-upload.mjs');
    const { stdout } = await promisify(execFile)(process.execPath, [script, uploads.url]);
    await uploads[Symbol.asyncDispose]();
    expect(JSON.parse(stdout)).toMatchObject({
      one: { filename: 'a.txt', text: 'first' },
      many: [{ text: 'second' }, { text: 'first' }],
    });
  });
});
