/** @tags node graphql */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { buildSchema, GraphQLError } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { connect, handshake, LEGACY, listen, MODERN, PATIENT, ready } from './client.ts';
import { liveSchema } from './schema.ts';
import { NOTHING, serve, serveOpen, serveReady, until } from './serve.ts';
import { upgradeRequest, wire } from './wire.ts';

const events = { id: '1', type: 'subscribe', payload: { query: 'subscription { events(topic: "a") }' } };
const queryMessage = { id: 'q', type: 'subscribe', payload: { query: '{ context }' } };

describe('the context', () => {
  /** The context as a resolver of one connection sees it. */
  const contextOf = async (url: string, payload: Record<string, unknown> | undefined): Promise<unknown> => {
    const client = await ready(url, MODERN, payload);
    client.send(queryMessage);
    const { data } = (await client.next())['payload'] as { data: { context: string } };
    await client.close();
    return data.context === null ? null : JSON.parse(data.context);
  };

  it('the context is a copy of a static value, so that no client gets the parameters of another', async () => {
    const shared = Object.freeze({ app: 1 });
    const { url } = await serve({ context: shared });
    for (const token of ['a', 'b']) {
      const params = { token };
      expect(await contextOf(url, params)).toEqual({
        app: 1,
        connection_params: params,
        connectionParams: params,
      });
    }
    expect(shared).toEqual({ app: 1 });
  });

  it('the context is the return value of a function of the WebSocket', async () => {
    const { url } = await serve({
      context: async (websocket) => ({ protocol: websocket.protocol, path: websocket.request?.url }),
    });
    expect(await contextOf(url, undefined)).toEqual({
      protocol: MODERN,
      path: '/graphql',
      connection_params: {},
      connectionParams: {},
    });
  });

  it('the context function may return the same object twice: it is never written to', async () => {
    const same = { app: 1 };
    const { url } = await serve({ context: () => same });
    await contextOf(url, { token: 'a' });
    expect(same).toEqual({ app: 1 });
  });

  it('the context keeps prototype and accessors, and onConnect gets the same object as resolvers', async () => {
    class Session {
      user = 'ann';
      get greeting(): string {
        return `hello ${this.user}`;
      }
    }
    const seen: unknown[] = [];
    const { url } = await serve({
      context: () => new Session(),
      onConnect: ({ context }) => void seen.push(context),
    });
    await (await ready(url)).close();
    expect(seen[0]).toBeInstanceOf(Session);
    expect((seen[0] as Session).greeting).toBe('hello ann');
  });

  it('the context has the members that onConnect adds', async () => {
    const { url } = await serve({
      onConnect: ({ context, connectionParams }) => {
        Object.assign(context as object, { user: connectionParams['token'] });
      },
    });
    expect(await contextOf(url, { token: 'ann' })).toMatchObject({ user: 'ann' });
  });

  it('the context never contains members of the parameters', async () => {
    const { client } = await serveOpen({ context: { admin: false } });
    client.send(
      '{"type":"connection_init","payload":{"__proto__":{"admin":true},"admin":true,"constructor":1}}',
    );
    await client.next();
    client.send(queryMessage);
    const { data } = (await client.next())['payload'] as { data: { context: string } };
    expect(JSON.parse(data.context)).toMatchObject({ admin: false });
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });

  it('the parameters never become headers of the request', async () => {
    const { url } = await serve({
      context: ({ request }) => ({ headers: request?.headers }),
      onConnect: ({ request, context }) => void Object.assign(context as object, { later: request.headers }),
    });
    const params = { authorization: 'forged', 'x-user': 'admin', host: 'forged' };
    const { headers, later } = (await contextOf(url, params)) as Record<string, Record<string, string>>;
    for (const seen of [headers, later]) {
      expect(seen).toHaveProperty('upgrade', 'websocket');
      expect(JSON.stringify(seen)).not.toMatch(/forged|admin/);
    }
  });

  it.each([['a string'], [5], [[1, 2]]])(
    'the context of a socket may be %j, which has no members',
    async (context) => {
      const { url } = await serve({ context: () => context });
      expect(await contextOf(url, { token: 'a' })).toEqual(context);
    },
  );

  it('the context, limits, rules and masking of a graphqlHTTP handler apply', async () => {
    const { schema } = liveSchema();
    const { server, url } = await listen();
    const handler = graphqlHTTP(schema, {
      context: { of: 'handler' },
      limits: { depth: 2 },
      formatError: (error) => ({ ...error, extensions: { formatted: true } }),
    });
    const subscriptions = attachSubscriptions(server, handler);
    expect(await contextOf(url, undefined)).toMatchObject({ of: 'handler' });
    const client = await ready(url);
    client.send({ ...queryMessage, payload: { query: '{ deep { deep { hello } } }' } });
    expect(await client.next()).toMatchObject({
      type: 'error',
      payload: [{ extensions: { formatted: true } }],
    });
    client.send({ ...queryMessage, payload: { query: '{ crashes }' } });
    expect(await client.next()).toMatchObject({
      type: 'next',
      payload: { errors: [{ message: 'Internal server error' }] },
    });
    await subscriptions.close();
    server.close();
  });

  it('introspection is disabled if the handler disables it', async () => {
    const { schema } = liveSchema();
    const { server, url } = await listen();
    const subscriptions = attachSubscriptions(server, graphqlHTTP(schema, { introspection: false }));
    for (const query of ['{ __schema { types { name } } }', '{ __type(name: "Query") { name } }']) {
      const client = await ready(url);
      client.send({ ...queryMessage, payload: { query } });
      const error = await client.next();
      expect(error).toMatchObject({ id: 'q', type: 'error' });
      expect(JSON.stringify(error)).not.toContain('Subscription');
    }
    await subscriptions.close();
    server.close();
  });

  it('a document is validated once for HTTP and sockets together', async () => {
    const schema = buildSchema('type Query { hello: String }');
    let validated = 0;
    const rule = (): object => {
      validated++;
      return {};
    };
    const handler = graphqlHTTP(schema, { validationRules: [rule] });
    const { server, url, port } = await listen((req, res) => handler(req, res));
    const subscriptions = attachSubscriptions(server, handler);
    await fetch(`http://127.0.0.1:${port}/graphql?query={hello}`, {
      headers: { 'apollo-require-preflight': '1' },
    });
    const client = await ready(url);
    client.send({ id: 'q', type: 'subscribe', payload: { query: '{hello}' } });
    await client.until(({ type }) => type === 'complete');
    expect(validated).toBe(1);
    await subscriptions.close();
    server.close();
    server.closeAllConnections();
  });
});

describe('close', () => {
  it('close() ends all connections with 1001, returns sources and releases the path', async () => {
    const { server, port, url, live, subscriptions } = await serve({}, (_, res) => res.end('plain'));
    const clients = await Promise.all([ready(url), ready(url, LEGACY), connect(url)]);
    clients[0]?.send(events);
    await until(() => live.open === 1);
    await Promise.all([subscriptions.close(), subscriptions.close()]);
    for (const client of clients) expect((await client.closed).code).toBe(1001);
    expect(live.open).toBe(0);
    expect(server.listenerCount('upgrade')).toBe(0);
    // There is no upgrade listener anymore: Node treats the request as a plain one.
    expect(await handshake(port, '/graphql')).toMatchObject({ status: 200, body: 'plain' });
    attachSubscriptions(server, liveSchema().schema);
    expect((await handshake(port, '/graphql')).status).toBe(101);
  });

  it('close() spreads the closes over the drain, serves until then and refuses new connections with 503', async () => {
    const { port, url, live, subscriptions } = await serve();
    const clients = await Promise.all(Array.from({ length: 6 }, () => ready(url)));
    for (const client of clients) client.send(events);
    await until(() => live.open === 6);
    const closing = subscriptions.close({ drain: 2000 });
    expect((await handshake(port, '/graphql')).status).toBe(503);
    await clients[0]?.closed;
    const left = live.open;
    expect(left).toBeGreaterThan(0);
    live.publish('a', 'last words');
    await closing;
    const reported = clients.filter(({ received }) => JSON.stringify(received).includes('last words'));
    expect(reported).toHaveLength(left);
    for (const client of clients) expect((await client.closed).code).toBe(1001);
  });

  it('close() sends the queued messages first', async () => {
    const { client, live, subscriptions } = await serveReady();
    client.send(events);
    await until(() => live.open === 1);
    live.publish('a', 'in flight');
    await new Promise(setImmediate);
    await subscriptions.close();
    expect(client.received.at(-1)).toMatchObject({ payload: { data: { events: 'in flight' } } });
  });

  it('close() terminates clients that do not complete the closing handshake', async () => {
    const { port, subscriptions } = await serve();
    const client = await wire(port, false, upgradeRequest());
    await client.until('101 Switching Protocols');
    await Promise.all([subscriptions.close(), client.over()]);
  });
});

describe('disconnect', () => {
  it('disconnect() closes the selected connections with 4403 and returns their number', async () => {
    const { url, subscriptions } = await serve();
    const ann = await ready(url, MODERN, { user: 'ann' });
    const bob = await ready(url, LEGACY, { user: 'bob' });
    expect(subscriptions.disconnect(({ connectionParams }) => connectionParams['user'] === 'ann')).toBe(1);
    expect(await ann.closed).toEqual({ code: 4403, reason: 'Forbidden' });
    expect(subscriptions.disconnect(({ protocol }) => protocol === 'graphql-ws', 4999, 'é'.repeat(100))).toBe(
      1,
    );
    expect(await bob.closed).toEqual({ code: 4999, reason: 'é'.repeat(61) });
  });

  it.each([MODERN, LEGACY])(
    'disconnect() closes sockets although its predicate throws for sockets that are not accepted yet (%s)',
    async (protocol) => {
      let accept = (): void => undefined;
      const { url, subscriptions } = await serve({
        onConnect: async ({ context, connectionParams }) => {
          if (connectionParams['slow'] === true) await new Promise<void>((resolve) => (accept = resolve));
          Object.assign(context as object, { user: { id: connectionParams['id'] } });
        },
      });
      const idle = await connect(url, protocol);
      const [ann, bob] = [
        await ready(url, protocol, { id: 'ann' }),
        await ready(url, protocol, { id: 'bob' }),
      ];
      const [slowAnn, slowBob] = [await connect(url, protocol), await connect(url, protocol)];
      const accepts: (() => void)[] = [];
      for (const [client, id] of [
        [slowAnn, 'ann'],
        [slowBob, 'bob'],
      ] as const) {
        accept = () => undefined;
        const before = accept;
        client.send({ type: 'connection_init', payload: { id, slow: true } });
        await until(() => accept !== before);
        accepts.push(accept);
      }
      const isAnn = ({ context }: { context: unknown }): boolean =>
        (context as { user: { id: string } }).user.id === 'ann';
      expect(subscriptions.disconnect(isAnn)).toBe(1);
      expect(await ann.closed).toEqual({ code: 4403, reason: 'Forbidden' });
      // onConnect may have checked the session before the logout.
      for (const finish of accepts) finish();
      expect(await slowAnn.closed).toEqual({ code: 4403, reason: 'Forbidden' });
      expect(slowAnn.received).toEqual([]);
      expect(await slowBob.next()).toMatchObject({ type: 'connection_ack' });
      await until(() => subscriptions.stats().connections === 3);
      expect(subscriptions.disconnect(() => true, 1012, 'Service restart')).toBe(3);
      for (const client of [idle, bob, slowBob]) {
        expect(await client.closed).toEqual({ code: 1012, reason: 'Service restart' });
      }
    },
  );

  it('disconnect() throws the error of its predicate for an accepted socket and closes no connection', async () => {
    const { url, subscriptions } = await serve();
    await Promise.all([ready(url), ready(url)]);
    const fail = (): never => {
      throw new Error('broken');
    };
    expect(() => subscriptions.disconnect(fail)).toThrow('broken');
    expect(subscriptions.stats().connections).toBe(2);
  });

  it('disconnect() throws for a code that no close frame may carry and closes no connection', async () => {
    const { client, subscriptions } = await serveReady();
    const all = (): boolean => true;
    for (const code of [200, 1005, 1006, 1015, 2999, 5000, 1000.5]) {
      expect(() => subscriptions.disconnect(all, code)).toThrow(
        `disconnect: argument "code" is ${code}; accepted: a close code that may be sent`,
      );
    }
    expect(() => subscriptions.disconnect('ann' as never)).toThrow('argument "predicate" is "ann"');
    expect(subscriptions.disconnect(all, 1000, '')).toBe(1);
    expect(await client.closed).toEqual({ code: 1000, reason: '' });
  });
});

describe('expiresAt', () => {
  it.each([
    ['a Date', (milliseconds: number) => new Date(milliseconds)],
    ['milliseconds', (milliseconds: number) => milliseconds],
    ['seconds, as in a JWT', (milliseconds: number) => milliseconds / 1000],
  ])('expiresAt as %s closes with 4403 and is not sent', async (_, moment) => {
    let expires = 0;
    const onConnect = (): { expiresAt: Date | number } => {
      expires = Date.now() + 500;
      return { expiresAt: moment(expires) };
    };
    const { client } = await serveOpen({ ping: PATIENT, onConnect });
    client.send({ type: 'connection_init' });
    expect(await client.next()).toEqual({ type: 'connection_ack' });
    expect(await client.closed).toEqual({ code: 4403, reason: 'Forbidden' });
    expect(Date.now()).toBeGreaterThanOrEqual(expires);
  });

  it.each([
    ['graphql-transport-ws', { code: 4403, reason: 'Forbidden' }],
    ['graphql-ws', { code: 1011, reason: 'Forbidden' }],
  ])('expiresAt in the past refuses the connection over %s', async (protocol, closed) => {
    const { client, live } = await serveOpen({ onConnect: () => ({ expiresAt: Date.now() - 1 }) }, protocol);
    client.send({ type: 'connection_init' });
    if (protocol === LEGACY) client.send({ ...queryMessage, type: 'start' });
    expect(await client.closed).toEqual(closed);
    expect(client.received.map(({ type }) => type)).not.toContain('connection_ack');
    expect(live.calls).toEqual({});
  });

  it.each([
    ['an invalid Date', new Date('tomorrow')],
    ['null', null],
    ['a string of digits', '4102444800'],
    ['true', true],
  ])('expiresAt that is %s refuses the connection', async (_, expiresAt) => {
    const { client } = await serveOpen({ onConnect: () => ({ expiresAt: expiresAt as Date }) });
    client.send({ type: 'connection_init' });
    expect(await client.closed).toEqual({ code: 4500, reason: 'Internal server error' });
  });
});

describe('ping', () => {
  it('ping terminates a client that sends nothing, after it has pinged it', async () => {
    const { url, live, subscriptions } = await serve({ ping: PATIENT });
    const responsive = await ready(url);
    const unresponsive = await connect(url, MODERN, { autoPong: false });
    unresponsive.send({ type: 'connection_init' });
    await unresponsive.next();
    unresponsive.send(events);
    await until(() => live.open === 1);
    expect((await unresponsive.closed).code).toBe(1006);
    await until(() => live.open === 0);
    await once(responsive.websocket, 'ping');
    await once(responsive.websocket, 'ping');
    expect(subscriptions.stats().connections).toBe(1);
  });
});

describe('a blocked event loop', () => {
  it('attachSubscriptions closes no client whose messages arrived while the event loop was blocked', async () => {
    const { url, subscriptions } = await serve({ ping: 500, limits: { initTimeout: 1000 } });
    const script = resolve(__dirname, '../fixtures/prompt-client.cjs');
    const child = fork(script, [url]);
    // The client responds to the ping, and the second one sends its init, while nothing is read here.
    await once(child, 'message');
    const until = Date.now() + 1500;
    while (Date.now() < until);
    const [result] = await once(child, 'message');
    expect(result).toBe('pinged again');
    expect(subscriptions.stats().connections).toBe(2);
    child.kill();
  });
});

describe('sockets that open and close', () => {
  it('a socket may be closed before websocketHandler gets it', () => {
    const { schema } = liveSchema();
    const handler = graphqlHTTP(schema);
    const received: string[] = [];
    const on = (event: string): number => received.push(event);
    const websocket = { readyState: 3, protocol: MODERN, extensions: '', on };
    handler.websocketHandler(websocket as never, {} as never);
    // An error may still be emitted and would end the process.
    expect(received).toEqual(['error']);
  });

  it('sockets that open and close in large numbers leave no connections, operations or sources', async () => {
    const { url, live, subscriptions } = await serve({ share: () => 'all' });
    for (let round = 0; round < 10; round++) {
      const clients = await Promise.all(Array.from({ length: 30 }, () => ready(url)));
      for (const client of clients) client.send(events);
      await until(() => subscriptions.stats().operations === 30);
      for (const [index, client] of clients.entries()) {
        if (index % 2 === 0) client.websocket.terminate();
        else client.websocket.close();
      }
      await Promise.all(clients.map(({ closed }) => closed));
      await until(() => subscriptions.stats().connections === 0);
    }
    expect(live.opened).toBeLessThan(11);
    await subscriptions.close();
    expect(subscriptions.stats()).toEqual(NOTHING);
    expect(live.open).toBe(0);
  });
});

describe('a slow onConnect', () => {
  it('onConnect that finishes after the client has disconnected accepts no connection', async () => {
    let response: () => void = () => undefined;
    const { url, subscriptions, live } = await serve({
      onConnect: () =>
        new Promise((_, reject) => {
          response = () => reject(new GraphQLError('late'));
        }),
    });
    const client = await connect(url, LEGACY);
    client.send({ type: 'connection_init' });
    client.send({ ...events, type: 'start' });
    await client.silence();
    await client.close();
    await until(() => subscriptions.stats().connections === 0);
    response();
    await new Promise(setImmediate);
    expect(live.calls).toEqual({});
  });
});
