/** @tags node graphql */
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

type Variables = Record<string, unknown>;
/** Runs one operation to its end. */
type Run = (query: string, variables?: Variables) => Promise<unknown[]>;

const connectionParams = { token: 't' };

function modernClient(): { run: Run; close: () => void | Promise<void> } {
  const client = createClient({ url, webSocketImpl: WebSocket, lazy: false, connectionParams });
  return {
    async run(query, variables) {
      const seen: unknown[] = [];
      for await (const result of client.iterate({ query, ...(variables && { variables }) }))
        seen.push(result);
      return seen;
    },
    close: () => client.dispose(),
  };
}

function legacyClient(): { run: Run; close: () => void } {
  const client = new SubscriptionClient(url, { reconnect: false, connectionParams }, WebSocket);
  return {
    run: (query, variables) =>
      new Promise((resolve, reject) => {
        const seen: unknown[] = [];
        client.request({ query, ...(variables && { variables }) }).subscribe({
          next: (result) => seen.push(result),
          error: reject,
          complete: () => resolve(seen),
        });
      }),
    close: () => client.close(),
  };
}

it.each([
  ['graphql-ws', modernClient],
  ['subscriptions-transport-ws', legacyClient],
])('the client of %s runs queries, mutations and subscriptions', async (_, open) => {
  const { run, close } = open();
  expect(await run('{ hello }')).toEqual([{ data: { hello: 'Hello world' } }]);
  expect(await run('mutation($v: String!) { set(value: $v) }', { v: 'ü€' })).toEqual([
    { data: { set: 'ü€' } },
  ]);
  expect(await run('subscription { count(to: 3) }')).toEqual([
    { data: { count: 1 } },
    { data: { count: 2 } },
    { data: { count: 3 } },
  ]);
  const [context] = (await run('{ context }')) as { data: { context: string } }[];
  expect(JSON.parse(context?.data.context ?? '')).toEqual({
    app: true,
    connection_params: connectionParams,
    connectionParams,
  });
  await expect(run('{ nothing }')).rejects.toMatchObject(
    open === modernClient
      ? [{ message: expect.stringContaining('nothing') }]
      : { message: expect.stringContaining('nothing') },
  );
  await close();
});

describe('the subscriptions-transport-ws client', () => {
  it('the server returns the source when the subscriptions-transport-ws client unsubscribes', async () => {
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

const subscription = 'subscription { count(to: 3) }';

describe('urql', () => {
  it('urql subscribes with the graphql-ws client', async () => {
    const { Client, subscriptionExchange } = await import('@urql/core');
    const socket = createClient({ url, webSocketImpl: WebSocket });
    const client = new Client({
      url: 'http://localhost/graphql',
      preferGetMethod: false,
      exchanges: [
        subscriptionExchange({
          enableAllOperations: true,
          forwardSubscription: (request) => ({
            subscribe: (sink) => ({
              unsubscribe: socket.subscribe({ ...request, query: request.query ?? '' }, sink as never),
            }),
          }),
        }),
      ],
    });
    const seen = await new Promise<unknown[]>((resolve) => {
      const results: unknown[] = [];
      const { unsubscribe } = client.subscription(subscription, {}).subscribe(({ data }) => {
        results.push(data);
        if (results.length === 3) {
          setImmediate(() => unsubscribe());
          resolve(results);
        }
      });
    });
    expect(seen).toEqual([{ count: 1 }, { count: 2 }, { count: 3 }]);
    const { error } = await client.query('{ nothing }', {});
    expect(error?.message).toContain('nothing');
    await socket.dispose();
  });
});
