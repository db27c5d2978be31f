/** @tags node graphql */
import { EventEmitter, on, once } from 'node:events';
import * as http from 'node:http';
import type { AddressInfo } from 'node:net';
import { buildSchema, GraphQLError } from 'graphql';
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';
import { authTypeDefs } from '../../middleware/auth.ts';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import type { GraphQLOptions } from '../../types/graphql.ts';
import type { SubscriptionOptions } from '../../types/subscriptions.ts';
import { until } from '../until.ts';
import { EVENTS, open } from './serve-streams.ts';

// Who is calling, what they may see and when it ends: the same over sockets and in event streams.

const QUERY = 'subscription { secret }';
const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** Serves a subscription whose events have the name in the context. */
async function serve(options: GraphQLOptions, attach: SubscriptionOptions = {}) {
  const bus = new EventEmitter();
  const schema = buildSchema(`${authTypeDefs}
    type Query { hello: String }
    type Subscription { secret: String @authenticated }`);
  Object.assign(schema.getSubscriptionType()?.getFields()['secret'] as object, {
    async *subscribe() {
      for await (const _ of on(bus, 'event')) yield {};
    },
    resolve: (_event: object, _args: object, { name }: { name: string }) => name,
  });
  const handler = graphqlHTTP(schema, {
    graphiql: false,
    onError: false,
    auth: { scopes: (_source, { context }) => (Object(context).name === undefined ? null : []) },
    ...options,
  });
  const server = http.createServer(handler as http.RequestListener);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const subscriptions = attachSubscriptions(server, handler, attach);
  stops.push(() => {
    server.close();
    server.closeAllConnections();
  });
  stops.push(() => subscriptions.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`;
  const publish = (): void => void bus.emit('event');
  return { url, subscriptions, publish, sources: () => bus.listenerCount('event') };
}

/** What a client of a subscription has received, and how its connection ended. */
interface Client {
  readonly text: () => string;
  /** `complete` if the server said so, `dropped` if the client has to connect again. */
  readonly end: () => 'complete' | 'dropped' | undefined;
}

async function overHttp(url: string, accept: string, ending: string): Promise<Client> {
  const reading = await open(url, { params: { query: QUERY }, headers: { accept } });
  const end = () => (!reading.ended ? undefined : reading.body.endsWith(ending) ? 'complete' : 'dropped');
  return { text: () => reading.body, end };
}

async function overSocket(url: string): Promise<Client> {
  let text = '';
  let end: 'complete' | 'dropped' | undefined;
  const client = createClient({ url: url.replace('http', 'ws'), webSocketImpl: WebSocket, retryAttempts: 0 });
  client.subscribe(
    { query: QUERY },
    {
      next: (result) => {
        text += JSON.stringify(result);
      },
      error: (error) => {
        text += JSON.stringify(error);
        // A close of the socket is an event with a code.
        end = Array.isArray(error) ? 'complete' : 'dropped';
        if (error instanceof Object && 'code' in error) text += ` closed with ${String(error.code)}`;
      },
      complete: () => {
        end ??= 'complete';
      },
    },
  );
  stops.push(() => client.dispose());
  return { text: () => text, end: () => end };
}

const CLIENTS: readonly [string, (url: string) => Promise<Client>][] = [
  ['server-sent events', (url) => overHttp(url, EVENTS.accept, 'event: complete\ndata:\n\n')],
  [
    'a multipart subscription',
    (url) => overHttp(url, 'multipart/mixed;subscriptionSpec=1.0', '--graphql--\r\n'),
  ],
  ['a WebSocket', overSocket],
];

describe.each(CLIENTS)('a subscription over %s', (_name, connect) => {
  it("contextPer: 'event' gives each event a fresh context", async () => {
    let calls = 0;
    const { url, publish, sources } = await serve(
      { context: () => ({ name: `call ${++calls}` }) },
      { contextPer: 'event' },
    );
    const client = await connect(url);
    await until(() => sources() === 1);
    const before = calls;
    publish();
    await until(() => client.text().includes(`"secret":"call ${before + 1}"`));
    publish();
    await until(() => client.text().includes(`"secret":"call ${before + 2}"`));
  });

  it("contextPer: 'event' ends the subscription when its caller is signed out", async () => {
    let user: object = { name: 'ada' };
    const { url, publish, sources } = await serve({ context: () => user }, { contextPer: 'event' });
    const client = await connect(url);
    await until(() => sources() === 1);
    publish();
    await until(() => client.text().includes('"secret":"ada"'));
    user = {};
    publish();
    await until(() => client.end() === 'complete');
    expect(client.text()).toContain('UNAUTHENTICATED');
    expect(client.text().match(/"secret"/g)).toHaveLength(1);
  });

  it('expiresAt of onOperation ends the subscription at that time', async () => {
    let expiresAt = Date.now() + 60_000;
    const { url, publish, sources, subscriptions } = await serve({
      context: { name: 'ada' },
      onOperation: () => ({ expiresAt: new Date(expiresAt) }),
    });
    const lasting = await connect(url);
    await until(() => sources() === 1);
    expiresAt = Date.now() + 1500;
    const client = await connect(url);
    await until(() => sources() === 2);
    publish();
    await until(() => client.text().includes('"secret":"ada"'));
    await until(() => client.end() !== undefined);
    expect(client.end()).toBe('dropped');
    expect(Date.now()).toBeGreaterThanOrEqual(expiresAt);
    if (connect === overSocket) expect(client.text()).toContain('closed with 4403');
    await until(() => subscriptions.stats().operations === 1);
    expect(lasting.end()).toBeUndefined();
  });

  it('expiresAt of onOperation in the past refuses the operation', async () => {
    const { url, sources } = await serve({
      context: { name: 'ada' },
      onOperation: () => ({ expiresAt: Date.now() - 1 }),
    });
    const client = await connect(url);
    await until(() => client.end() === 'complete');
    expect(client.text()).toContain('UNAUTHENTICATED');
    expect(sources()).toBe(0);
  });

  it.each(['tomorrow', Number.NaN, null])(
    'expiresAt: %p of onOperation is an unexpected error',
    async (value) => {
      const reported: unknown[] = [];
      const { url } = await serve({
        context: { name: 'ada' },
        onOperation: () => ({ expiresAt: value as number }),
        onError: (error) => void reported.push(error),
      });
      const client = await connect(url);
      await until(() => client.end() === 'complete');
      expect(client.text()).toContain('Internal server error');
      expect(reported).toMatchObject([{ code: 'ERR_OPTION' }]);
    },
  );

  it('disconnect ends a subscription whose context is being created', async () => {
    let finish: (context: object) => void = () => undefined;
    let isCreating = false;
    const { url, subscriptions, sources } = await serve({
      context: (_source, { operation }) =>
        operation === undefined
          ? { name: 'ada' }
          : new Promise<object>((resolve) => {
              isCreating = true;
              finish = resolve;
            }),
    });
    const connecting = connect(url);
    await until(() => isCreating);
    subscriptions.disconnect(({ context }) => (context as { name: string }).name === 'ada');
    finish({ name: 'ada' });
    const client = await connecting;
    await until(() => client.end() !== undefined);
    expect(client.end()).toBe('dropped');
    expect(client.text()).not.toContain('secret');
    expect(sources()).toBe(0);
    expect(subscriptions.stats().connections).toBe(0);
  });

  it('onOperation decides about the subscription', async () => {
    const transports: string[] = [];
    const { url, sources } = await serve({
      context: { name: 'ada' },
      onOperation({ transport, request }) {
        transports.push(`${transport} ${request.headers.host !== undefined}`);
        throw new GraphQLError('Not here');
      },
    });
    const client = await connect(url);
    await until(() => client.end() === 'complete');
    expect(client.text()).toContain('Not here');
    expect(transports).toEqual([`${connect === overSocket ? 'websocket' : 'http'} true`]);
    expect(sources()).toBe(0);
  });
});

it.each([
  ['a Date', (time: number) => new Date(time)],
  ['milliseconds', (time: number) => time],
  ['seconds', (time: number) => time / 1000],
])(
  'a query whose token ends later is answered, and one whose token has ended gets 401 (%s)',
  async (_form, expiryOf) => {
    let time = Date.now() + 60_000;
    const { url } = await serve({
      context: { name: 'ada' },
      onOperation: () => ({ expiresAt: expiryOf(time) }),
    });
    const ask = (): Promise<Response> =>
      fetch(`${url}?query={hello}`, { headers: { accept: 'application/graphql-response+json' } });
    expect((await ask()).status).toBe(200);
    time = Date.now() - 1;
    const refused = await ask();
    expect(refused.status).toBe(401);
    expect(await refused.text()).toContain('UNAUTHENTICATED');
  },
);
