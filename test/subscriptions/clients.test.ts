import type http from 'node:http';
import { createClient } from 'graphql-ws';
import { SubscriptionClient } from 'subscriptions-transport-ws';
import WebSocket from 'ws';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import type { Subscriptions } from '../../types/subscriptions.ts';
import { listen } from './client.ts';
import { type Live, liveSchema } from './schema.ts';
import { until } from './serve.ts';

let server: http.Server;
let url: string;
let live: Live;
let subscriptions: Subscriptions;

beforeAll(async () => {
  const made = liveSchema();
  live = made.live;
  ({ server, url } = await listen());
  subscriptions = attachSubscriptions(server, made.schema, { context: { app: true } });
});
afterAll(async () => {
  await subscriptions.close();
  server.close();
});

describe('the graphql-ws client', () => {
  it('runs queries, mutations and subscriptions', async () => {
    const client = createClient({
      url,
      webSocketImpl: WebSocket,
      lazy: false,
      connectionParams: { token: 't' },
    });
    const results = async (query: string, variables?: Record<string, unknown>): Promise<unknown[]> => {
      const seen: unknown[] = [];
      for await (const result of client.iterate({ query, ...(variables && { variables }) }))
        seen.push(result);
      return seen;
    };
    expect(await results('{ hello }')).toEqual([{ data: { hello: 'Hello world' } }]);
    expect(await results('mutation($v: String!) { set(value: $v) }', { v: 'ü€' })).toEqual([
      { data: { set: 'ü€' } },
    ]);
    expect(await results('subscription { count(to: 3) }')).toEqual([
      { data: { count: 1 } },
      { data: { count: 2 } },
      { data: { count: 3 } },
    ]);
    const [context] = (await results('{ context }')) as { data: { context: string } }[];
    expect(JSON.parse(context?.data.context ?? '')).toEqual({
      app: true,
      connection_params: { token: 't' },
      connectionParams: { token: 't' },
    });
    await client.dispose();
  });
});

describe('the subscriptions-transport-ws client', () => {
  it('runs queries, mutations and subscriptions', async () => {
    const client = new SubscriptionClient(
      url,
      { reconnect: false, connectionParams: { token: 't' } },
      WebSocket,
    );
    const results = (query: string, variables?: Record<string, unknown>): Promise<unknown[]> =>
      new Promise((resolve, reject) => {
        const seen: unknown[] = [];
        client.request({ query, ...(variables && { variables }) }).subscribe({
          next: (result) => seen.push(result),
          error: reject,
          complete: () => resolve(seen),
        });
      });
    expect(await results('{ hello }')).toEqual([{ data: { hello: 'Hello world' } }]);
    expect(await results('mutation($v: String!) { set(value: $v) }', { v: 'ü€' })).toEqual([
      { data: { set: 'ü€' } },
    ]);
    expect(await results('subscription { count(to: 3) }')).toEqual([
      { data: { count: 1 } },
      { data: { count: 2 } },
      { data: { count: 3 } },
    ]);
    await expect(results('{ nothing }')).rejects.toMatchObject({
      message: expect.stringContaining('nothing'),
    });
    client.close();
  });

  it('returns the source when it unsubscribes', async () => {
    const client = new SubscriptionClient(url, { reconnect: false }, WebSocket);
    const first = await new Promise<unknown>((resolve) => {
      const subscription = client.request({ query: 'subscription { events(topic: "a") }' }).subscribe({
        next: (result) => {
          subscription.unsubscribe();
          resolve(result);
        },
      });
      const publish = (): void => {
        if (live.open === 1) live.publish('a', 'first');
        else setImmediate(publish);
      };
      publish();
    });
    expect(first).toEqual({ data: { events: 'first' } });
    await until(() => live.open === 0);
    client.close();
  });
});
