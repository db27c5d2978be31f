/** @tags node graphql */
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { attachSubscriptions, graphqlHTTP } from 'espalier';
import { createPubSub } from 'espalier/pubsub';
import { subscribe } from 'espalier/testing';
import express from 'express';
import { buildSchema, GraphQLError } from 'graphql';
import type { SubscriptionOptions } from '../../types/subscriptions.ts';
import { until } from '../until.ts';

const SDL = `
  type Query { hello: String }
  type Subscription { tick: Int, count(to: Int!): Int, user: String, large(size: Int = 10000): String, secret: Int }
`;

/** The state of a source that counts without end. */
interface Source {
  produced: number;
  isOpen: boolean;
}

function createApi(options: Parameters<typeof graphqlHTTP>[1] = {}) {
  const events = createPubSub<{ tick: { tick: number } }>();
  const source: Source = { produced: 0, isOpen: false };
  const rootValue = {
    hello: 'world',
    tick: async () => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      return events.subscribe('tick');
    },
    async *count({ to }: { to: number }) {
      for (let count = 1; count <= to; count++) yield { count };
    },
    async *user(_args: object, { user }: { user?: string }) {
      yield { user };
    },
    async *large({ size }: { size: number }) {
      source.isOpen = true;
      try {
        for (;;) {
          source.produced++;
          yield { large: 'x'.repeat(size) };
        }
      } finally {
        source.isOpen = false;
      }
    },
    async *secret() {
      yield { secret: 1 };
      throw new Error('the password is hunter2');
    },
  };
  const handler = graphqlHTTP(buildSchema(SDL), { rootValue, onError: false, ...options });
  return { handler, events, source };
}

/** A server that does not listen. */
function serve(handler: ReturnType<typeof graphqlHTTP>, options: SubscriptionOptions = {}): Server {
  const server = createServer(express().use('/graphql', handler));
  const subscriptions = attachSubscriptions(server, handler, options);
  return Object.assign(server, { subscriptions });
}

async function collect<T>(results: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const result of results) list.push(result);
  return list;
}

const TRANSPORTS = ['websocket', 'event-stream'] as const;
const targets = {
  'a handler': (handler: ReturnType<typeof graphqlHTTP>) => handler,
  'a server': (handler: ReturnType<typeof graphqlHTTP>) => serve(handler),
};
const rows = TRANSPORTS.flatMap((transport) =>
  Object.entries(targets).map(([name, create]) => [name, transport, create] as const),
);

describe.each(rows)('subscribe to %s over %s', (name, transport, create) => {
  const title = `of ${name} over ${transport}`;

  it(`subscribe returns the results ${title} in order`, async () => {
    const query = 'subscription ($to: Int!) { count(to: $to) }';
    const results = await subscribe(create(createApi().handler), {
      query,
      variables: { to: 100 },
      transport,
    });
    const counts = (await collect(results)).map(({ data }) => data?.['count']);
    expect(counts).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
  });

  it(`subscribe ${title} resolves when the source stream is open, so no event is lost`, async () => {
    const { handler, events } = createApi();
    const target = create(handler);
    const subscriptions = [1, 2, 3].map(() =>
      subscribe(target, { query: 'subscription { tick }', transport }),
    );
    const results = await Promise.all(subscriptions);
    for (const tick of [1, 2]) await events.publish('tick', { tick });
    for (const result of results) {
      expect([(await result.next()).value, (await result.next()).value]).toEqual([
        { data: { tick: 1 } },
        { data: { tick: 2 } },
      ]);
      await result.return();
    }
    while ((await events.stats()).streams > 0) await new Promise((resolve) => setTimeout(resolve, 1));
    await events.close();
  });

  it(`subscribe ${title} gives the context function the headers and cookies of the request`, async () => {
    const context = ({ headers, socket }: IncomingMessage) => ({
      user: `${headers['x-user']} ${headers.cookie} ${socket.remoteAddress}`,
    });
    const results = await subscribe(create(createApi({ context }).handler), {
      query: 'subscription { user }',
      headers: { 'x-user': 'ada' },
      cookies: { id: '7' },
      remoteAddress: '203.0.113.7',
      transport,
    });
    expect(await collect(results)).toEqual([{ data: { user: 'ada id=7 203.0.113.7' } }]);
  });

  it(`subscribe ${title} returns the errors of a refused operation as its only result`, async () => {
    const results = await subscribe(create(createApi().handler), {
      query: 'subscription { nothing }',
      transport,
    });
    const [result, ...others] = await collect(results);
    expect([result?.data, result?.errors?.[0]?.extensions?.['code'], others]).toEqual([
      undefined,
      'GRAPHQL_VALIDATION_FAILED',
      [],
    ]);
  });

  it(`subscribe ${title} masks unexpected errors of the source`, async () => {
    const environment = process.env['NODE_ENV'];
    process.env['NODE_ENV'] = 'production';
    const { handler } = createApi();
    process.env['NODE_ENV'] = environment;
    const results = await collect(
      await subscribe(create(handler), { query: 'subscription { secret }', transport }),
    );
    expect(results).toEqual([
      { data: { secret: 1 } },
      { errors: [expect.objectContaining({ message: 'Internal server error' })] },
    ]);
    expect(JSON.stringify(results)).not.toContain('hunter2');
  });

  it(`subscribe ${title} slows the source down while the test does not read`, async () => {
    const { handler, source } = createApi();
    const results = await subscribe(create(handler), { query: 'subscription { large }', transport });
    let produced = -1;
    while (produced !== source.produced) {
      produced = source.produced;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect(produced).toBeLessThan(1000);
    for (let read = 0; read < produced + 200; read++) {
      expect((await results.next()).value?.data?.['large']).toHaveLength(10_000);
    }
    await results.return();
    await until(() => !source.isOpen);
  });

  it(`subscribe ${title} keeps few large results while the test does not read`, async () => {
    const { handler, source } = createApi();
    const query = 'subscription { large(size: 1000000) }';
    const results = await subscribe(create(handler), { query, transport });
    let produced = -1;
    while (produced !== source.produced) {
      produced = source.produced;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(produced).toBeLessThan(8);
    await results.return();
    await until(() => !source.isOpen);
  });

  it(`leaving the loop over the results ${title} ends the subscription`, async () => {
    const { handler, source } = createApi();
    const target = create(handler);
    for await (const { data } of await subscribe(target, { query: 'subscription { large }', transport })) {
      expect(data?.['large']).toHaveLength(10_000);
      break;
    }
    await until(() => !source.isOpen);
  });

  it(`the signal of subscribe ${title} disconnects the client`, async () => {
    const { handler, source } = createApi();
    const controller = new AbortController();
    const { signal } = controller;
    const results = await subscribe(create(handler), { query: 'subscription { large }', transport, signal });
    await results.next();
    controller.abort(new Error('enough'));
    await expect(collect(results)).rejects.toThrow('enough');
    await until(() => !source.isOpen);
    expect((await results.next()).done).toBe(true);
    await expect(subscribe(handler, { query: '{ hello }', transport, signal })).rejects.toThrow('enough');
  });
});

it.each(TRANSPORTS)(
  'subscribe over %s rejects with the reason of a signal that is aborted before the source is open',
  async (transport) => {
    let isCalled = false;
    const rootValue = {
      tick: () => {
        isCalled = true;
        return new Promise(() => undefined);
      },
    };
    const { handler } = createApi({ rootValue });
    let turns = 0;
    const headersHaveArrived = () => isCalled && ++turns > 20;
    for (const waits of [() => true, () => isCalled, headersHaveArrived]) {
      const controller = new AbortController();
      const { signal } = controller;
      const results = subscribe(handler, { query: 'subscription { tick }', transport, signal });
      const rejected = expect(results).rejects.toThrow('enough');
      await until(waits);
      controller.abort(new Error('enough'));
      await rejected;
    }
  },
);

describe('subscribe over WebSockets', () => {
  it('subscribe sends connectionParams, and returns the payload of the acknowledgement', async () => {
    const { handler } = createApi();
    const server = serve(handler, {
      context: () => ({}),
      onConnect: ({ connectionParams, context }) => {
        Object.assign(context as object, { user: connectionParams['token'] });
        return { session: 's1' };
      },
    });
    const results = await subscribe(server, {
      query: 'subscription { user }',
      connectionParams: { token: 'ada' },
    });
    expect(results.acknowledgement).toEqual({ session: 's1' });
    expect(await collect(results)).toEqual([{ data: { user: 'ada' } }]);
  });

  it('subscribe runs queries over the socket', async () => {
    expect(await collect(await subscribe(createApi().handler, { query: '{ hello }' }))).toEqual([
      { data: { hello: 'world' } },
    ]);
  });

  it('subscribe rejects with the close code of a connection that onConnect refuses', async () => {
    const { handler } = createApi();
    const refused = serve(handler, { onConnect: () => false });
    await expect(subscribe(refused, { query: '{ hello }' })).rejects.toMatchObject({
      name: 'ConnectionClosedError',
      code: 4403,
      reason: 'Forbidden',
      message: 'The server closed the connection with 4403: Forbidden',
    });
    const message = serve(handler, {
      onConnect: () => {
        throw new GraphQLError('The token has expired');
      },
    });
    await expect(subscribe(message, { query: '{ hello }' })).rejects.toThrow('4403: The token has expired');
  });

  it.each([
    ['an unknown path', { path: '/nowhere' }, 404],
    ['another origin', { headers: { origin: 'https://evil.example' } }, 403],
  ])('subscribe rejects with the status of a refused handshake: %s', async (_name, request, status) => {
    const server = serve(createApi().handler);
    await expect(subscribe(server, { query: '{ hello }', ...request })).rejects.toMatchObject({
      name: 'ConnectionClosedError',
      status,
    });
  });

  it('the middleware of attachSubscriptions runs for subscribe', async () => {
    const { handler } = createApi({ context: (req: { user?: string }) => ({ user: req.user }) });
    const server = serve(handler, {
      middleware: [(req, _res, next) => next(void Object.assign(req, { user: 'ada' }))],
    });
    expect(await collect(await subscribe(server, { query: 'subscription { user }' }))).toEqual([
      { data: { user: 'ada' } },
    ]);
  });

  it('the limits of attachSubscriptions apply to subscribe', async () => {
    const server = serve(createApi().handler, { limits: { messageBytes: 1000 } });
    const variables = { text: 'x'.repeat(2000) };
    await expect(subscribe(server, { query: '{ hello }', variables })).rejects.toMatchObject({ code: 1009 });
  });

  it('a server that closes its subscriptions ends those of subscribe with its code', async () => {
    const { handler } = createApi();
    const server = createServer();
    const subscriptions = attachSubscriptions(server, handler);
    const results = await subscribe(server, { query: 'subscription { tick }' });
    expect(subscriptions.stats()).toMatchObject({ connections: 1, operations: 1, sources: 1 });
    await subscriptions.close();
    await expect(results.next()).rejects.toMatchObject({ code: 1001, reason: 'Going away' });
    expect(subscriptions.stats()).toMatchObject({ connections: 0, operations: 0 });
  });

  it('subscribe joins the group of equal subscriptions that share a source', async () => {
    const { handler, events } = createApi();
    const server = createServer();
    const subscriptions = attachSubscriptions(server, handler, { share: () => 'all' });
    const query = 'subscription { tick }';
    const first = await subscribe(server, { query });
    const second = await subscribe(server, { query });
    expect(subscriptions.stats()).toMatchObject({ connections: 2, sources: 1, groups: 1 });
    await events.publish('tick', { tick: 1 });
    for (const results of [first, second]) {
      expect((await results.next()).value).toEqual({ data: { tick: 1 } });
      await results.return();
    }
    await subscriptions.close();
    await events.close();
  });

  it('subscribe to a handler does not change the event streams of a server with onConnect', async () => {
    const { handler } = createApi();
    const server = serve(handler, { onConnect: () => true });
    await collect(await subscribe(handler, { query: '{ hello }' }));
    const request = { query: 'subscription { tick }', transport: 'event-stream' } as const;
    await expect(subscribe(server, request)).rejects.toMatchObject({ name: 'ConnectionClosedError' });
  });
});

describe('mistakes in calls of subscribe', () => {
  it('subscribe to an Express app names the server and the event stream as alternatives', async () => {
    const app = express().use('/graphql', createApi().handler);
    await expect(subscribe(app, { query: '{ hello }' })).rejects.toThrow(
      'an Express app has no WebSockets; pass the server of attachSubscriptions(server, handler)',
    );
    const results = await subscribe(app, {
      query: 'subscription { count(to: 2) }',
      transport: 'event-stream',
    });
    expect(await collect(results)).toHaveLength(2);
  });
});
