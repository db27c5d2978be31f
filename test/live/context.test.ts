/** @tags node graphql engine */
import http from 'node:http';
import session from 'express-session';
import { GraphQLError } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import type {
  ConnectingSubscription,
  ContextDetails,
  SubscriptionOptions,
} from '../../types/subscriptions.ts';
import { eachExpress } from '../express.ts';
import { listen } from '../kit.ts';
import { connect, LEGACY, MODERN, type RawClient } from './client.ts';
import { liveSchema } from './schema.ts';
import { serve, until } from './serve.ts';

const QUERY = '{ context }';
const run = (id: string, query = QUERY, type = 'subscribe'): object => ({ id, type, payload: { query } });

/** The context that the resolver of one query sees. */
async function contextOf(client: RawClient, type = 'subscribe'): Promise<Record<string, unknown>> {
  client.send(run('q', QUERY, type));
  const messages = await client.until((message) => message['type'] === 'complete');
  const result = messages.find(({ id, type: kind }) => id === 'q' && kind !== 'complete');
  return JSON.parse((result as { payload: { data: { context: string } } }).payload.data.context);
}

async function open(url: string, protocol = MODERN, headers = {}, payload = {}): Promise<RawClient> {
  const client = await connect(url, protocol, { headers });
  client.send({ type: 'connection_init', payload });
  await client.until(({ type }) => type === 'connection_ack');
  return client;
}

describe('one context function for HTTP and sockets', () => {
  eachExpress((express) => {
    it('a function of headers, url, state and members of middleware works over HTTP and sockets', async () => {
      const { schema } = liveSchema();
      const context = async (req: {
        headers: http.IncomingHttpHeaders;
        state: Record<string, unknown>;
        socket: { remoteAddress?: string };
        session?: { user: string };
      }) => ({
        user: req.headers.authorization,
        session: req.session?.user,
        address: req.socket.remoteAddress,
        state: req.state['tenant'],
      });
      const middleware = (req: object, _res: unknown, next: () => void): void => {
        Object.assign(req, { session: { user: 'ann' }, state: { tenant: 'acme' } });
        next();
      };
      const handler = graphqlHTTP(schema, { context });
      const app = express();
      app.use(middleware);
      app.use('/graphql', handler);
      const { server, port } = await listen(app);
      const subscriptions = attachSubscriptions(server, handler, { middleware: [middleware] });
      const expected = { user: 'token', session: 'ann', address: '127.0.0.1', state: 'acme' };
      const response = await fetch(`http://127.0.0.1:${port}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: 'token' },
        body: JSON.stringify({ query: QUERY }),
      });
      const { data } = (await response.json()) as { data: { context: string } };
      expect(JSON.parse(data.context)).toEqual(expected);
      for (const [protocol, type] of [
        [MODERN, 'subscribe'],
        [LEGACY, 'start'],
      ] as const) {
        const client = await open(`ws://127.0.0.1:${port}/graphql`, protocol, { authorization: 'token' });
        expect(await contextOf(client, type)).toMatchObject(expected);
        await client.close();
      }
      await subscriptions.close();
    });
  });

  eachExpress((express) => {
    it('a function that reads req.session of express-session works over HTTP and both subprotocols', async () => {
      const { schema } = liveSchema();
      const sessions = session({ secret: 'test', resave: false, saveUninitialized: false });
      const handler = graphqlHTTP(schema, {
        context: (req: { session?: { user?: string } }) => ({ user: req.session?.user ?? 'not signed in' }),
        rootValue: {},
      });
      const app = express().use(sessions);
      app.get('/login', (req, res) => {
        Object.assign(req.session, { user: 'ann' });
        res.end();
      });
      app.use('/graphql', handler);
      const { server, port } = await listen(app);
      const subscriptions = attachSubscriptions(server, handler, { middleware: [sessions] });
      const login = await fetch(`http://127.0.0.1:${port}/login`);
      const cookie = login.headers.get('set-cookie')?.split(';')[0] as string;
      for (const [headers, user] of [
        [{ cookie }, 'ann'],
        [{}, 'not signed in'],
      ] as const) {
        const response = await fetch(`http://127.0.0.1:${port}/graphql`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...headers },
          body: JSON.stringify({ query: QUERY }),
        });
        const { data } = (await response.json()) as { data: { context: string } };
        expect(JSON.parse(data.context)).toEqual({ user });
        for (const [protocol, type] of [
          [MODERN, 'subscribe'],
          [LEGACY, 'start'],
        ] as const) {
          const client = await open(`ws://127.0.0.1:${port}/graphql`, protocol, headers);
          expect(await contextOf(client, type)).toMatchObject({ user });
          await client.close();
        }
      }
      await subscriptions.close();
    });
  });

  it('the second argument of the context function contains transport, connectionParams and operation', async () => {
    const { schema } = liveSchema();
    const seen: ContextDetails[] = [];
    const context = (_source: object, details: ContextDetails): object => {
      seen.push(details);
      return {};
    };
    const handler = graphqlHTTP(schema, { context });
    const server = http.createServer((req, res) => handler(req, res));
    const { port } = await listen(server);
    const subscriptions = attachSubscriptions(server, handler);
    const url = `127.0.0.1:${port}/graphql`;
    await fetch(`http://${url}?query={hello}`, { headers: { 'apollo-require-preflight': '1' } });
    const client = await open(`ws://${url}`, MODERN, {}, { token: 't' });
    await contextOf(client);
    expect(seen).toMatchObject([
      { transport: 'http', connectionParams: undefined, operation: { query: '{hello}' } },
      { transport: 'websocket', connectionParams: { token: 't' }, operation: undefined },
      { transport: 'websocket', connectionParams: { token: 't' }, operation: { query: QUERY } },
    ]);
    await subscriptions.close();
  });
});

describe('contextPer', () => {
  const counting = (options: SubscriptionOptions = {}): SubscriptionOptions => {
    let count = 0;
    return { context: async () => ({ count: ++count }), ...options };
  };

  it('each operation gets a new context by default, so that a loader in it is never stale', async () => {
    const { url } = await serve(counting());
    const client = await open(url);
    expect([(await contextOf(client))['count'], (await contextOf(client))['count']]).toEqual([2, 3]);
  });

  it('with contextPer: "connection" all operations of a connection get the same context', async () => {
    const { url } = await serve(counting({ contextPer: 'connection' }));
    const client = await open(url);
    expect([(await contextOf(client))['count'], (await contextOf(client))['count']]).toEqual([1, 1]);
    expect((await contextOf(await open(url)))['count']).toBe(2);
  });

  it.each([undefined, () => 'all'])(
    'with contextPer: "event" each event of a subscription gets a new context, share: %p',
    async (share) => {
      let count = 0;
      const values: unknown[] = [];
      const { schema, live } = liveSchema();
      const handler = graphqlHTTP(schema, {
        context: () => ({ count: ++count }),
        fieldResolver(value, _args, context: { count: number }) {
          values.push(context.count);
          return value;
        },
      });
      const server = http.createServer();
      const { port } = await listen(server);
      const subscriptions = attachSubscriptions(server, handler, {
        contextPer: 'event',
        ...(share && { share }),
      });
      delete schema.getSubscriptionType()?.getFields()['events']?.resolve;
      const client = await open(`ws://127.0.0.1:${port}/graphql`);
      client.send(run('1', 'subscription { events(topic: "a") }'));
      await until(() => live.open === 1);
      for (const event of ['x', 'y', 'z']) {
        live.publish('a', event);
        expect(await client.next()).toMatchObject({ payload: { data: { events: event } } });
      }
      // 1: the connection, 2: the operation.
      expect(values).toEqual([3, 4, 5]);
      await subscriptions.close();
    },
  );

  it('with contextPer: "event" and share, an event uses the context of a subscriber that is still connected', async () => {
    const users: unknown[] = [];
    const { schema, live } = liveSchema();
    delete schema.getSubscriptionType()?.getFields()['events']?.resolve;
    const handler = graphqlHTTP(schema, {
      context: (_source, { connectionParams }) => ({ user: connectionParams?.['user'] }),
      fieldResolver(value, _args, context: { user: string }) {
        users.push(context.user);
        return value;
      },
    });
    const server = http.createServer();
    const { port } = await listen(server);
    const subscriptions = attachSubscriptions(server, handler, { contextPer: 'event', share: () => 'all' });
    const clients = [];
    for (const user of ['ann', 'bob']) {
      const client = await open(`ws://127.0.0.1:${port}/graphql`, MODERN, {}, { user });
      client.send(run('1', 'subscription { events(topic: "a") }'));
      clients.push(client);
      await until(() => subscriptions.stats().operations === clients.length);
    }
    const [ann, bob] = clients as [RawClient, RawClient];
    await until(() => live.open === 1);
    live.publish('a', 'first');
    await bob.next();
    await ann.close();
    await until(() => subscriptions.stats().connections === 1);
    live.publish('a', 'second');
    await bob.next();
    expect(users).toEqual(['ann', 'bob']);
    await subscriptions.close();
  });

  it.each(['operation', 'connection'] as const)(
    'with contextPer: "%s" operations get the parameters of the client and what onConnect added',
    async (contextPer) => {
      const onConnect = ({ context, connectionParams }: ConnectingSubscription<{ user?: unknown }>) => {
        context.user = connectionParams['token'];
      };
      const { url } = await serve(counting({ contextPer, onConnect }));
      for (const token of ['ann', 'bob']) {
        const client = await open(url, MODERN, {}, { token });
        for (let i = 0; i < 2; i++) {
          const context = await contextOf(client);
          expect(context).toMatchObject({ user: token, connection_params: { token } });
        }
      }
    },
  );

  it.each([
    ['a GraphQLError', new GraphQLError('not now'), 'not now'],
    ['another error', new Error('secret'), 'Internal server error'],
  ])('%s of the context function ends that operation only', async (_, error, message) => {
    const { url } = await serve({
      context: async (_websocket: object, { operation }: ContextDetails) => {
        if (operation?.query.includes('deep') === true) throw error;
        return {};
      },
    });
    const client = await open(url);
    client.send(run('1', '{ deep { hello } }'));
    const [failed] = await client.until(({ type }) => type === 'error');
    expect(failed).toMatchObject({ id: '1', payload: [{ message }] });
    expect(JSON.stringify(failed)).not.toContain('secret');
    expect(await contextOf(client)).toHaveProperty('connection_params');
  });

  it('an operation that is cancelled while its context is created never starts', async () => {
    let resolveContext: () => void = () => undefined;
    const { url, live, subscriptions } = await serve({
      context: (_websocket: object, { operation }: ContextDetails) =>
        operation === undefined ? {} : new Promise<object>((resolve) => (resolveContext = () => resolve({}))),
    });
    const client = await open(url);
    client.send(run('1', 'subscription { events(topic: "a") }'));
    await until(() => subscriptions.stats().operations === 1);
    client.send({ id: '1', type: 'complete' });
    await until(() => subscriptions.stats().operations === 0);
    resolveContext();
    expect(await client.silence()).toEqual([]);
    expect(live.calls).toEqual({});
  });
});
