/** @tags node */
import http from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { makeExecutableSchema } from '@graphql-tools/schema';
import express from 'express';
import { WebSocketServer } from 'ws';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { createServer } from '../../middleware/server.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { TIMES } from '../../src/rate-limit/buckets.ts';
import type { Caller, CallerDetails } from '../../types/caller.ts';
import type { ContextSource } from '../../types/connect.ts';
import type { ClientLimitOptions } from '../../types/graphql.ts';
import type { SubscriptionOptions } from '../../types/subscriptions.ts';
import { atEnd, listen, postJson } from '../kit.ts';
import { connect, handshake, LEGACY, MODERN, type RawClient, ready } from '../live/client.ts';
import { startRedis } from '../redis.ts';
import { until } from '../until.ts';

const schema = makeExecutableSchema({
  typeDefs: 'type Query { hello: String } type Subscription { never: Int  big: String }',
  resolvers: {
    Query: { hello: () => 'Hello' },
    Subscription: {
      never: {
        subscribe: () => ({
          next: () => new Promise(() => undefined),
          return: async () => ({ done: true }),
          [Symbol.asyncIterator]() {
            return this;
          },
        }),
      },
      big: {
        async *subscribe() {
          for (;;) yield { big: 'x'.repeat(1e5) };
        },
      },
    },
  },
});

/** By a header or, over sockets, by the payload of `connection_init`. */
function callerOf({ headers }: ContextSource, { connectionParams }: CallerDetails): Caller | null {
  const id = connectionParams?.['user'] ?? headers['x-user'];
  return id === undefined ? null : { id: String(id) };
}

/** The host of a caller's id; before a caller is known, or without one, what a header says. */
const tenantOf = ({ headers }: ContextSource, caller: Caller | null | undefined): string | undefined =>
  caller?.id.split('@')[1] ?? headers['x-tenant']?.toString();

async function serve(clientLimits: ClientLimitOptions | true, options: SubscriptionOptions = {}) {
  const reports: unknown[] = [];
  const handler = graphqlHTTP(schema, {
    batching: true,
    onError: (error) => void reports.push(error),
    caller: callerOf,
    clientLimits,
  });
  const app = express().set('trust proxy', 'loopback').use('/graphql', handler);
  const server = createServer(app);
  const subscriptions = attachSubscriptions(server, handler, options);
  const { url, port, socketUrl } = await listen(server, '/graphql');
  const post = (query: string, headers = {}): Promise<Response> => postJson(url, { query }, headers);
  const upgrade = (headers = {}) => handshake(port, '/graphql', headers);
  const stream = (headers = {}, query = 'subscription { never }') => {
    const controller = new AbortController();
    atEnd(() => controller.abort());
    const response = fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream', ...headers },
      body: JSON.stringify({ query }),
      signal: controller.signal,
    });
    return { response, abort: () => controller.abort() };
  };
  return { reports, server, subscriptions, url, port, socketUrl, post, upgrade, stream, handler };
}

/** Repeats a request until its answer is as expected. */
async function eventually(check: () => Promise<boolean>): Promise<void> {
  while (!(await check())) await nextTurn();
}

const LIMITED = { errors: [{ extensions: { code: 'RATE_LIMITED' } }] };
const ADA = { headers: { 'x-user': 'ada' } };
const ELSEWHERE = { headers: { 'x-forwarded-for': '203.0.113.7' } };

const subscribeTo = (client: RawClient, id: string, field = 'never'): void =>
  client.send({ id, type: 'subscribe', payload: { query: `subscription { ${field} }` } });

describe('clientLimits.connections', () => {
  it.each([MODERN, LEGACY])(
    'refuses a further socket with 429 until one is closed (%s)',
    async (protocol) => {
      const { socketUrl, upgrade } = await serve({ connections: 2 });
      const first = await connect(socketUrl, protocol);
      await connect(socketUrl, protocol);
      const refused = await upgrade();
      expect(refused.status).toBe(429);
      expect(refused.headers['retry-after']).toBe('5');
      await connect(socketUrl, protocol, ELSEWHERE);
      await first.close();
      await eventually(async () => (await upgrade()).status === 101);
    },
  );

  it.each<[string, SubscriptionOptions, (client: RawClient, served: { close(): void }) => void]>([
    ['the client is killed', {}, ({ websocket }) => websocket.terminate()],
    ['a message is invalid', {}, (client) => client.send('no JSON')],
    ['no connection_init arrives', { limits: { initTimeout: 20 } }, () => undefined],
    [
      'the application disconnects it',
      { onConnect: () => false },
      (client) => client.send({ type: 'connection_init' }),
    ],
    [
      'the client does not read',
      { limits: { bufferedBytes: 1e4 }, ping: 20 },
      (client) => {
        client.send({ type: 'connection_init' });
        subscribeTo(client, '1', 'big');
        client.websocket.pause();
      },
    ],
  ])('frees the place of a socket when %s', async (_, options, end) => {
    const { socketUrl, upgrade } = await serve({ connections: 1 }, options);
    const client = await connect(socketUrl);
    end(client, { close: () => undefined });
    await eventually(async () => (await upgrade()).status === 101);
  });

  it('counts event streams and sockets together, and frees their places', async () => {
    const { socketUrl, stream, upgrade, post } = await serve({ connections: 1 });
    const open = stream();
    expect((await open.response).status).toBe(200);
    expect((await upgrade()).status).toBe(429);
    const refused = await stream().response;
    expect(refused.status).toBe(429);
    expect(refused.headers.get('retry-after')).toBe('5');
    expect(await refused.json()).toMatchObject(LIMITED);
    expect((await post('{ hello }')).status).toBe(200);
    open.abort();
    await eventually(async () => (await upgrade()).status === 101);
    await eventually(async () => (await connect(socketUrl).catch(() => undefined)) !== undefined);
    expect((await stream().response).status).toBe(429);
  });

  it('frees a place whose upgrade a middleware or a failed handshake refused', async () => {
    const { upgrade, socketUrl } = await serve({ connections: 1 });
    const bad = await upgrade({ 'sec-websocket-version': '1' });
    expect(bad.status).toBe(400);
    await eventually(async () => (await connect(socketUrl).catch(() => undefined)) !== undefined);
    expect((await upgrade()).status).toBe(429);
  });

  it('separates clients by the address that a trusted proxy names', async () => {
    const { socketUrl, upgrade } = await serve({ connections: 1 });
    const forwarded = (address: string) => ({ 'x-forwarded-for': address });
    await connect(socketUrl, MODERN, { headers: forwarded('2001:db8::1') });
    expect((await upgrade(forwarded('2001:db8::2'))).status).toBe(429);
    expect((await upgrade(forwarded('2001:db8:1::2'))).status).toBe(101);
  });

  it.each([
    [MODERN, 1013],
    [LEGACY, 1011],
  ])(
    'counts a socket for its caller, who may have others elsewhere, as soon as it is known (%s)',
    async (protocol, code) => {
      const { socketUrl, subscriptions, reports } = await serve({ connections: 1 });
      const ada = await ready(socketUrl, protocol, { user: 'ada' });
      await ready(socketUrl, protocol, { user: 'bob' });
      const again = await connect(socketUrl, protocol);
      again.send({ type: 'connection_init', payload: { user: 'ada' } });
      expect((await again.closed).code).toBe(code);
      await ada.close();
      await until(() => subscriptions.stats().connections === 1);
      await ready(socketUrl, protocol, { user: 'ada' });
      expect(reports).toEqual([]);
    },
  );

  it('closes a WebSocket that another server accepted with 1013, which clients repeat', async () => {
    const handler = graphqlHTTP(schema, { clientLimits: { connections: 1 } });
    const server = http.createServer(handler);
    const foreign = new WebSocketServer({ server, handleProtocols: () => MODERN });
    foreign.on('connection', handler.websocketHandler);
    const { socketUrl } = await listen(server);
    const first = await ready(socketUrl);
    expect((await (await connect(socketUrl)).closed).code).toBe(1013);
    await first.close();
    await eventually(async () => (await ready(socketUrl).catch(() => undefined)) !== undefined);
  });
});

describe('clientLimits.subscriptions', () => {
  it('refuses a further subscription over all connections of the client until one ends', async () => {
    const { socketUrl, stream } = await serve({ subscriptions: 2 });
    const one = await ready(socketUrl);
    const other = await ready(socketUrl);
    subscribeTo(one, 'a');
    await one.silence();
    expect((await stream().response).status).toBe(200);
    subscribeTo(other, 'b');
    expect(await other.next()).toMatchObject({
      id: 'b',
      type: 'error',
      payload: [{ extensions: { code: 'RATE_LIMITED' } }],
    });
    expect((await stream().response).status).toBe(429);
    other.send({ id: 'q', type: 'subscribe', payload: { query: '{ hello }' } });
    expect(await other.next()).toMatchObject({ id: 'q', type: 'next' });
    await other.next();
    one.send({ id: 'a', type: 'complete' });
    await one.silence();
    subscribeTo(other, 'c');
    expect(await other.silence()).toEqual([]);
  });

  it('frees the places of a socket that is closed, and of subscriptions that fail', async () => {
    const { socketUrl, subscriptions } = await serve({ subscriptions: 1 });
    const client = await ready(socketUrl);
    client.send({ id: 'x', type: 'subscribe', payload: { query: 'subscription ($a: Int!) { never }' } });
    expect(await client.next()).toMatchObject({ type: 'error' });
    subscribeTo(client, 'a');
    await client.silence();
    client.websocket.terminate();
    await until(() => subscriptions.stats().connections === 0);
    const next = await ready(socketUrl);
    subscribeTo(next, 'b');
    expect(await next.silence()).toEqual([]);
  });
});

describe('clientLimits.newOperations and newConnections', () => {
  const window = '1h';

  it('answers an operation above the limit with 429 and Retry-After, also an invalid one', async () => {
    const { post } = await serve({ newOperations: 2, window });
    expect(await (await post('{ nothing }')).json()).toMatchObject({ errors: [{}] });
    expect((await post('{ hello }')).status).toBe(200);
    const refused = await post('{ hello }');
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(1700);
    expect(await refused.json()).toMatchObject(LIMITED);
    expect((await post('{ hello }', ADA.headers)).status).toBe(200);
  });

  it('counts each operation of a batch', async () => {
    const { url } = await serve({ newOperations: 2, window });
    const results = await (await postJson(url, Array(3).fill({ query: '{ hello }' }))).json();
    expect(results.map(({ errors }: { errors?: unknown }) => errors !== undefined)).toEqual([
      false,
      false,
      true,
    ]);
  });

  it('counts operations of sockets and event streams with those over HTTP', async () => {
    const { socketUrl, post, stream } = await serve({ newOperations: 2, window });
    const client = await ready(socketUrl);
    client.send({ id: 'q', type: 'subscribe', payload: { query: '{ hello }' } });
    expect(await client.next()).toMatchObject({ type: 'next' });
    await client.next();
    expect((await stream().response).status).toBe(200);
    expect((await stream().response).status).toBe(429);
    expect((await post('{ hello }')).status).toBe(429);
    client.send({ id: 'q', type: 'subscribe', payload: { query: '{ hello }' } });
    expect(await client.next()).toMatchObject({ type: 'error', payload: LIMITED.errors });
    expect(await client.silence()).toEqual([]);
  });

  it.each([
    [MODERN, 1013],
    [LEGACY, 1011],
  ])(
    'counts connection_init for the caller, whose sockets come from many addresses (%s)',
    async (protocol, code) => {
      const { socketUrl } = await serve({ newConnections: 2, window });
      const open = async (user: string, address: string): Promise<RawClient> => {
        const client = await connect(socketUrl, protocol, { headers: { 'x-forwarded-for': address } });
        client.send({ type: 'connection_init', payload: { user } });
        return client;
      };
      for (const address of ['203.0.113.1', '203.0.113.2'])
        expect(await (await open('ada', address)).next()).toMatchObject({ type: 'connection_ack' });
      expect((await (await open('ada', '203.0.113.3')).closed).code).toBe(code);
      expect(await (await open('bob', '203.0.113.3')).next()).toMatchObject({ type: 'connection_ack' });
    },
  );

  it('counts connections over Redis for all processes, and the rest in this process when Redis is gone', async () => {
    const redis = await startRedis();
    atEnd(() => redis.kill());
    TIMES.wait = 10_000;
    const limits = { newConnections: 2, window, redis: redis.url };
    const [one, other] = [await serve(limits), await serve(limits)];
    await connect(one.socketUrl);
    await connect(other.socketUrl);
    const refused = await one.upgrade();
    expect(refused.status).toBe(429);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(1700);
    await redis.kill();
    await connect(one.socketUrl);
  });
});

describe('clientLimits.key', () => {
  const window = '1h';
  const ACME = { 'x-tenant': 'acme' };

  it('counts the operations of all who have the key together, on all transports, and none without a key', async () => {
    const { socketUrl, post, stream } = await serve({ newOperations: 2, window, key: tenantOf });
    const ada = await ready(socketUrl, MODERN, { user: 'ada@acme' });
    ada.send({ id: '1', type: 'subscribe', payload: { query: '{ hello }' } });
    await ada.until(({ type }) => type === 'complete');
    expect((await post('{ hello }', { 'x-user': 'bob@acme' })).status).toBe(200);
    const refused = await post('{ hello }', { 'x-user': 'cy@acme' });
    expect([refused.status, await refused.json()]).toMatchObject([429, LIMITED]);
    expect((await stream({ 'x-user': 'di@acme' }).response).status).toBe(429);
    ada.send({ id: '2', type: 'subscribe', payload: { query: '{ hello }' } });
    expect(await ada.next()).toMatchObject({ id: '2', type: 'error', payload: LIMITED.errors });
    expect((await post('{ hello }', { 'x-user': 'ada@other' })).status).toBe(200);
    for (let count = 0; count < 4; count++) expect((await post('{ hello }')).status).toBe(200);
  });

  it.each([
    [MODERN, 1013],
    [LEGACY, 1011],
  ])(
    'holds the place of a socket for its key, before and after its caller is known (%s)',
    async (protocol, code) => {
      const { socketUrl, stream, upgrade, subscriptions, reports } = await serve({
        connections: 1,
        key: tenantOf,
      });
      const acme = await connect(socketUrl, protocol, { headers: ACME });
      expect((await upgrade(ACME)).status).toBe(429);
      expect((await upgrade({ 'x-tenant': 'other' })).status).toBe(101);
      // Without limits, until the caller is known.
      const late = await connect(socketUrl, protocol);
      late.send({ type: 'connection_init', payload: { user: 'ada@acme' } });
      expect((await late.closed).code).toBe(code);
      expect((await stream({ 'x-user': 'ada@acme' }).response).status).toBe(429);
      // The place goes with the caller to another key.
      acme.send({ type: 'connection_init', payload: { user: 'ada@moved' } });
      await acme.until(({ type }) => type === 'connection_ack');
      expect((await upgrade({ 'x-tenant': 'moved' })).status).toBe(429);
      await until(() => subscriptions.stats().connections === 1);
      await ready(socketUrl, protocol, { user: 'bob@acme' });
      expect((await upgrade(ACME)).status).toBe(429);
      for (let count = 0; count < 2; count++) await ready(socketUrl, protocol);
      expect(reports).toEqual([]);
    },
  );

  it('bounds the subscriptions of a key, and the sockets that it opens', async () => {
    const { socketUrl, upgrade } = await serve({
      subscriptions: 1,
      newConnections: 5, // two of them as soon as their callers are known
      window,
      key: tenantOf,
    });
    const one = await ready(socketUrl, MODERN, { user: 'ada@acme' });
    const other = await ready(socketUrl, MODERN, { user: 'bob@acme' });
    subscribeTo(one, 'a');
    await one.silence();
    subscribeTo(other, 'b');
    expect(await other.next()).toMatchObject({ id: 'b', type: 'error', payload: LIMITED.errors });
    for (let count = 0; count < 3; count++) expect((await upgrade(ACME)).status).toBe(101);
    expect((await upgrade(ACME)).status).toBe(429);
    expect((await upgrade({ 'x-tenant': 'other' })).status).toBe(101);
  });

  it('gets the request with its state, and the caller: undefined before there is one', async () => {
    const seen: unknown[] = [];
    const { socketUrl, post } = await serve({
      connections: 5,
      newOperations: 5,
      key({ state, socket, url }, caller) {
        seen.push([state, url.split('/')[1], caller?.id ?? caller]);
        return socket.remoteAddress;
      },
    });
    await post('{ hello }', ADA.headers);
    expect(seen.splice(0)).toEqual([[{}, '', 'ada']]);
    await ready(socketUrl);
    expect(seen[0]).toEqual([{}, 'graphql', undefined]);
    expect(seen.at(-1)).toEqual([{}, 'graphql', null]);
  });

  it.each<[string, () => string]>([
    [
      'throws',
      () => {
        throw new Error('a bug');
      },
    ],
    ['returns null', (() => null) as () => never],
    ['returns a number', (() => 5) as () => never],
    ['returns a promise', (async () => 'ada') as () => never],
  ])('a key that %s fails what it counts, and not the server', async (_how, key) => {
    let isBroken = true;
    const { reports, socketUrl, post, upgrade } = await serve({
      connections: 5,
      newOperations: 5,
      key: () => (isBroken ? key() : 'ok'),
    });
    const failed = await post('{ hello }');
    expect([failed.status, await failed.text()]).toEqual([
      500,
      expect.stringContaining('INTERNAL_SERVER_ERROR'),
    ]);
    expect((await upgrade()).status).toBe(500);
    isBroken = false;
    const client = await ready(socketUrl);
    isBroken = true;
    client.send({ id: '1', type: 'subscribe', payload: { query: '{ hello }' } });
    expect(await client.next()).toMatchObject({
      type: 'error',
      payload: [{ extensions: { code: 'INTERNAL_SERVER_ERROR' } }],
    });
    expect(reports).toHaveLength(3);
    isBroken = false;
    expect((await post('{ hello }')).status).toBe(200);
  });

  it('reads the headers of a socket also if no other function of the options does', async () => {
    const handler = graphqlHTTP(schema, {
      clientLimits: { subscriptions: 1, key: ({ headers }) => headers.host },
    });
    const server = http.createServer(handler);
    attachSubscriptions(server, handler, { path: '/' });
    const { socketUrl } = await listen(server, '/');
    const [one, other] = [await ready(socketUrl), await ready(socketUrl)];
    subscribeTo(one, 'a');
    await one.silence();
    subscribeTo(other, 'b');
    expect(await other.next()).toMatchObject({ id: 'b', type: 'error', payload: LIMITED.errors });
  });

  it('counts a WebSocket that another server accepted once, also while Redis is asked about it', async () => {
    const redis = await startRedis();
    atEnd(() => redis.kill());
    TIMES.wait = 10_000;
    const handler = graphqlHTTP(schema, {
      caller: callerOf,
      clientLimits: { connections: 1, newConnections: 5, window, redis: redis.url, key: () => 'all' },
    });
    const server = http.createServer(handler);
    const foreign = new WebSocketServer({ server, handleProtocols: () => MODERN });
    foreign.on('connection', handler.websocketHandler);
    const { socketUrl } = await listen(server);
    const first = await ready(socketUrl, MODERN, { user: 'ada' });
    expect((await (await connect(socketUrl)).closed).code).toBe(1013);
    first.send({ id: 'q', type: 'subscribe', payload: { query: '{ hello }' } });
    expect(await first.next()).toMatchObject({ id: 'q', type: 'next' });
  });
});
