/** @tags node graphql engine */
import { once } from 'node:events';
import { GraphQLError } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { connect, listen, MODERN, PATIENT, type RawClient, ready } from './client.ts';
import { liveSchema } from './schema.ts';
import { NOTHING, serve, serveOpen, serveReady, until } from './serve.ts';

const subscribe = (id: string, query: string, more: object = {}): object => ({
  id,
  type: 'subscribe',
  payload: { query, ...more },
});
const events = (id: string, topic = 'a'): object =>
  subscribe(id, `subscription { events(topic: "${topic}") }`);
const INIT = { type: 'connection_init' };

describe('the handshake of graphql-transport-ws', () => {
  it('graphql-transport-ws acknowledges without payload', async () => {
    const { client } = await serveOpen();
    client.send(INIT);
    expect(await client.next()).toEqual({ type: 'connection_ack' });
  });

  it('graphql-transport-ws acknowledges with the payload that onConnect returned', async () => {
    const { client } = await serveOpen({ onConnect: () => ({ server: 'a' }) });
    client.send(INIT);
    expect(await client.next()).toEqual({ type: 'connection_ack', payload: { server: 'a' } });
  });

  it('graphql-transport-ws closes with 4408 when connection_init is late, although pings arrive', async () => {
    const { client } = await serveOpen({ limits: { initTimeout: 60 } });
    const pings = setInterval(() => client.send({ type: 'ping' }), 10);
    expect(await client.closed).toEqual({ code: 4408, reason: 'Connection initialisation timeout' });
    clearInterval(pings);
  });

  it('graphql-transport-ws stops the init timeout at connection_init, however long onConnect takes', async () => {
    let accept: () => void = () => undefined;
    const { url } = await serve({
      limits: { initTimeout: 20 },
      onConnect: () => new Promise((resolve) => (accept = () => resolve(true))),
    });
    const client = await connect(url);
    client.send(INIT);
    // A later connection without an init: its timeout proves that the first one's would have fired.
    expect((await (await connect(url)).closed).code).toBe(4408);
    accept();
    expect(await client.next()).toEqual({ type: 'connection_ack' });
  });

  it.each([
    ['before onConnect has decided', true],
    ['after the acknowledgement', false],
  ])(
    'graphql-transport-ws closes with 4429 at a second connection_init %s and never calls onConnect twice',
    async (_, together) => {
      let requested = 0;
      const { client } = await serveOpen({ onConnect: () => void requested++ });
      client.send(INIT);
      if (!together) await client.next();
      client.send(INIT);
      expect(await client.closed).toEqual({ code: 4429, reason: 'Too many initialisation requests' });
      expect(requested).toBe(together ? 0 : 1);
    },
  );

  it('graphql-transport-ws closes with 4401 at a subscribe before connection_init', async () => {
    const { client, live } = await serveOpen();
    client.send(subscribe('1', 'mutation { set(value: "x") }'));
    expect(await client.closed).toEqual({ code: 4401, reason: 'Unauthorized' });
    expect(live.calls).toEqual({});
  });

  it('graphql-transport-ws closes with 4401 at a subscribe while onConnect decides', async () => {
    const { client, live } = await serveOpen({ onConnect: () => new Promise(() => undefined) });
    client.send(INIT);
    client.send(subscribe('1', '{ hello }'));
    expect((await client.closed).code).toBe(4401);
    expect(live.calls).toEqual({});
  });

  it.each([
    ['false', () => false as const, { code: 4403, reason: 'Forbidden' }],
    ['a promise of false', async () => false as const, { code: 4403, reason: 'Forbidden' }],
    [
      'an error',
      () => {
        throw new Error('secret');
      },
      { code: 4500, reason: 'Internal server error' },
    ],
    [
      'a GraphQLError',
      async () => {
        throw new GraphQLError('no such user');
      },
      { code: 4403, reason: 'no such user' },
    ],
    [
      'a message of many bytes',
      () => {
        throw new GraphQLError('é'.repeat(100));
      },
      { code: 4403, reason: 'é'.repeat(61) },
    ],
  ])(
    'graphql-transport-ws refuses the connection when onConnect results in %s',
    async (_, onConnect, closed) => {
      const { client } = await serveOpen({ onConnect });
      client.send(INIT);
      expect(await client.closed).toEqual(closed);
    },
  );

  it('graphql-transport-ws closes with 4500 when the context function fails', async () => {
    const { client } = await serveOpen({
      context: () => {
        throw new Error('secret');
      },
    });
    client.send(INIT);
    expect(await client.closed).toEqual({ code: 4500, reason: 'Internal server error' });
  });
});

describe('messages that break graphql-transport-ws', () => {
  const bad: [string, string][] = [
    ['text that is not JSON', '{oops'],
    ['null', 'null'],
    ['a list', '[]'],
    ['a string', '"x"'],
    ['an empty message', ''],
    ['a million brackets', '['.repeat(1_000_000)],
    ['no type', '{}'],
    ['a type that is not a string', '{"type":1}'],
    ['an unknown type', '{"type":"start","id":"1","payload":{"query":"{ hello }"}}'],
    ['the server’s ack', '{"type":"connection_ack"}'],
    ['the server’s next', '{"type":"next","id":"1","payload":{}}'],
    ['the server’s error', '{"type":"error","id":"1","payload":[{"message":"x"}]}'],
    ['an init with a string', '{"type":"connection_init","payload":"x"}'],
    ['an init with a number', '{"type":"connection_init","payload":5}'],
    ['an init with a list', '{"type":"connection_init","payload":[1]}'],
    ['an init with true', '{"type":"connection_init","payload":true}'],
    ['a ping with a string', '{"type":"ping","payload":"x"}'],
    ['a subscribe without id', '{"type":"subscribe","payload":{"query":"{ hello }"}}'],
    ['a subscribe with a number for id', '{"type":"subscribe","id":1,"payload":{"query":"{ hello }"}}'],
    ['a subscribe with an empty id', '{"type":"subscribe","id":"","payload":{"query":"{ hello }"}}'],
    [
      'a subscribe with a long id',
      `{"type":"subscribe","id":"${'i'.repeat(257)}","payload":{"query":"{ hello }"}}`,
    ],
    ['a subscribe without payload', '{"type":"subscribe","id":"1"}'],
    ['a subscribe without query', '{"type":"subscribe","id":"1","payload":{}}'],
    [
      'variables that are a list',
      '{"type":"subscribe","id":"1","payload":{"query":"{ hello }","variables":[]}}',
    ],
    [
      'a number as operationName',
      '{"type":"subscribe","id":"1","payload":{"query":"{ hello }","operationName":1}}',
    ],
    [
      'extensions that are a string',
      '{"type":"subscribe","id":"1","payload":{"query":"{ hello }","extensions":"x"}}',
    ],
    ['a complete without id', '{"type":"complete"}'],
  ];

  it.each(bad)('graphql-transport-ws closes with 4400 at %s', async (_, text) => {
    const { url, live } = await serve();
    const client = await (text.includes('connection_init') ? connect(url) : ready(url));
    client.send(text);
    expect(await client.closed).toEqual({ code: 4400, reason: 'Invalid message received' });
    expect(live.calls).toEqual({});
  });

  it('graphql-transport-ws ignores unknown members of a message', async () => {
    const { client } = await serveReady();
    client.send({ ...subscribe('1', '{ hello }'), extra: 1 });
    expect(await client.next()).toEqual({
      id: '1',
      type: 'next',
      payload: { data: { hello: 'Hello world' } },
    });
  });

  it('graphql-transport-ws accepts binary frames as text', async () => {
    const { client } = await serveOpen();
    client.websocket.send(Buffer.from(JSON.stringify(INIT)), { binary: true });
    expect(await client.next()).toEqual({ type: 'connection_ack' });
  });

  it('graphql-transport-ws closes with 1009 at a message above limits.messageBytes', async () => {
    const { client } = await serveReady({ limits: { messageBytes: 1000 } });
    client.send({ type: 'ping', payload: { x: 'x'.repeat(1000) } });
    expect((await client.closed).code).toBe(1009);
  });
});

describe('ping and pong', () => {
  it.each([[undefined], [{ at: 1, deep: { list: [1] } }]])(
    'graphql-transport-ws echoes the ping payload %j, before connection_init too',
    async (payload) => {
      const { client } = await serveOpen();
      client.send({ type: 'ping', payload });
      expect(await client.next()).toEqual({ type: 'pong', ...(payload && { payload }) });
      client.send(INIT);
      await client.next();
      client.send({ type: 'pong' });
      client.send({ type: 'ping', payload });
      expect(await client.next()).toEqual({ type: 'pong', ...(payload && { payload }) });
    },
  );
});

describe('operations over graphql-transport-ws', () => {
  const run = async (client: RawClient, message: object): Promise<Record<string, unknown>[]> => {
    client.send(message);
    return client.until(({ type }) => type === 'complete' || type === 'error');
  };

  it('graphql-transport-ws sends next with field errors and complete for a query', async () => {
    const { client } = await serveReady();
    const [next, complete] = await run(client, subscribe('q', '{ hello fails crashes }'));
    expect(next).toMatchObject({
      id: 'q',
      type: 'next',
      payload: { data: { hello: 'Hello world', fails: null } },
    });
    const { errors } = (next as { payload: { errors: { message: string }[] } }).payload;
    expect(errors.map(({ message }) => message)).toEqual(['on purpose', 'Internal server error']);
    expect(JSON.stringify(next)).not.toContain('secret');
    expect(complete).toEqual({ id: 'q', type: 'complete' });
  });

  it.each([
    ['a syntax error', subscribe('x', '{ hello '), 'Syntax Error'],
    ['a validation error', subscribe('x', '{ nothing }'), 'nothing'],
    ['an unknown operation', subscribe('x', 'query A { hello }', { operationName: 'B' }), '"B"'],
    ['a missing operationName', subscribe('x', 'query A { hello } query B { hello }'), 'operationName'],
    [
      'a variable of the wrong type',
      subscribe('x', 'query($n: String) { hello(name: $n) }', { variables: { n: {} } }),
      '$n',
    ],
    ['the same in a subscription', subscribe('x', 'subscription($n: String!) { events(topic: $n) }'), '$n'],
    ['a refused subscription', subscribe('x', 'subscription { refused }'), 'not for you'],
    ['a broken subscription', subscribe('x', 'subscription { broken }'), 'Internal server error'],
  ])('graphql-transport-ws sends error for %s and keeps the other operations', async (_, message, text) => {
    const { client, live } = await serveReady();
    client.send(events('other'));
    const [error] = await run(client, message);
    expect(error).toMatchObject({
      id: 'x',
      type: 'error',
      payload: [{ message: expect.stringContaining(text) }],
    });
    expect(JSON.stringify(error)).not.toContain('secret');
    // The id is free again, and no complete follows.
    expect((await run(client, subscribe('x', '{ hello }')))[0]).toMatchObject({ id: 'x', type: 'next' });
    live.publish('a', 'still here');
    expect(await client.next()).toEqual({
      id: 'other',
      type: 'next',
      payload: { data: { events: 'still here' } },
    });
  });

  it.each([
    ['a query', 'query ($topic: String!, $tag: Boolean!) { hello(name: $topic) @skip(if: $tag) }'],
    ['a subscription', 'subscription ($topic: String!, $tag: Boolean!) { events(topic: $topic, tag: $tag) }'],
  ])('graphql-transport-ws sends a code with each error of the variables of %s', async (_, query) => {
    const { schema } = liveSchema();
    const { server, url } = await listen();
    const subscriptions = attachSubscriptions(server, graphqlHTTP(schema));
    const client = await ready(url);
    const [error] = await run(client, subscribe('x', query));
    const { payload } = error as { payload: { extensions: object }[] };
    const code = { code: 'BAD_USER_INPUT' };
    expect(payload.map(({ extensions }) => extensions)).toEqual([code, code]);
    await subscriptions.close();
    server.close();
  });

  it('graphql-transport-ws sends all events, including one with an error, and then complete', async () => {
    const { client, live } = await serveReady();
    client.send(events('s'));
    await until(() => live.open === 1);
    live.publish('a', 'one');
    live.publish('a', new GraphQLError('two'));
    live.publish('a', 'three');
    live.end('a');
    const messages = await client.until(({ type }) => type === 'complete');
    expect(messages).toEqual([
      { id: 's', type: 'next', payload: { data: { events: 'one' } } },
      {
        id: 's',
        type: 'next',
        payload: { data: { events: null }, errors: [expect.objectContaining({ message: 'two' })] },
      },
      { id: 's', type: 'next', payload: { data: { events: 'three' } } },
      { id: 's', type: 'complete' },
    ]);
    client.send(events('s'));
    await until(() => live.opened === 2);
    expect(await client.silence()).toEqual([]);
  });

  it('graphql-transport-ws sends error without complete when the source fails', async () => {
    const { client, live } = await serveReady();
    client.send(events('s'));
    await until(() => live.open === 1);
    live.publish('a', 'one');
    live.end('a', new Error('secret'));
    expect(await client.until(({ type }) => type !== 'next')).toEqual([
      expect.objectContaining({ type: 'next' }),
      { id: 's', type: 'error', payload: [expect.objectContaining({ message: 'Internal server error' })] },
    ]);
    expect(await client.silence()).toEqual([]);
  });

  it('graphql-transport-ws closes with 4409 at an id in use and names the id', async () => {
    const { url } = await serve();
    for (const query of ['subscription { events(topic: "a") }', '{ pending }']) {
      const client = await ready(url);
      client.send(subscribe('my $& id', query));
      client.send(subscribe('my $& id', '{ hello }'));
      expect(await client.closed).toEqual({ code: 4409, reason: 'Subscriber for my $& id already exists' });
    }
  });

  it('graphql-transport-ws cuts a close reason that contains a long id', async () => {
    const { client } = await serveReady();
    client.send(events('é'.repeat(200)));
    client.send(events('é'.repeat(200)));
    const { code, reason } = await client.closed;
    expect(code).toBe(4409);
    expect(reason).toBe(`Subscriber for ${'é'.repeat(54)}`);
  });

  it.each(['__proto__', 'constructor', 'toString', 'o0', '"', 'ключ', '\u2028'])(
    'graphql-transport-ws accepts %j as an ordinary id',
    async (id) => {
      const { client, live } = await serveReady();
      client.send({ id, type: 'complete' });
      client.send(events(id));
      await until(() => live.open === 1);
      live.publish('a', 'grüße');
      expect(await client.next()).toEqual({ id, type: 'next', payload: { data: { events: 'grüße' } } });
      client.send({ id, type: 'complete' });
      await until(() => live.open === 0);
      expect((await run(client, subscribe(id, '{ hello }'))).map(({ type }) => type)).toEqual([
        'next',
        'complete',
      ]);
    },
  );

  it('graphql-transport-ws returns the source at complete and sends nothing more', async () => {
    const { client, live } = await serveReady();
    client.send(events('s'));
    await until(() => live.open === 1);
    client.send({ id: 's', type: 'complete' });
    client.send({ id: 'unknown', type: 'complete' });
    await until(() => live.open === 0);
    live.publish('a', 'late');
    expect(await client.silence()).toEqual([]);
  });

  it('graphql-transport-ws starts a new operation for an id that is reused right after complete', async () => {
    const { client, live } = await serveReady();
    client.send(events('s', 'old'));
    await until(() => live.open === 1);
    client.send({ id: 's', type: 'complete' });
    client.send(events('s', 'new'));
    client.send({ id: 's', type: 'complete' });
    client.send(events('s', 'new'));
    await until(() => live.opened === 2 && live.open === 1);
    live.publish('old', 'old');
    live.publish('new', 'new');
    expect(await client.next()).toEqual({ id: 's', type: 'next', payload: { data: { events: 'new' } } });
    expect(await client.silence()).toEqual([]);
  });

  it('graphql-transport-ws drops the result of a query that the client has completed', async () => {
    const { client, live } = await serveReady();
    client.send(subscribe('q', '{ pending }'));
    await until(() => live.calls['pending'] === 1);
    client.send({ id: 'q', type: 'complete' });
    client.send(subscribe('q', '{ hello }'));
    await client.until(({ type }) => type === 'complete');
    live.resolvePending();
    expect(await client.silence()).toEqual([]);
  });

  it('graphql-transport-ws fires the abort signal of a mutation that the client has completed', async () => {
    const { client, live } = await serveReady();
    client.send(subscribe('m', 'mutation { hold }'));
    await until(() => live.calls['hold'] === 1);
    client.send({ id: 'm', type: 'complete' });
    client.send(subscribe('q', '{ hello }'));
    await client.until(({ id, type }) => id === 'q' && type === 'complete');
    expect(live.signal?.aborted).toBe(true);
    live.resolvePending();
    expect(await client.silence()).toEqual([]);
  });

  it('graphql-transport-ws sends error for one operation above limits.operations and closes a client that continues', async () => {
    const { client, live } = await serveReady({ limits: { operations: 2 } });
    client.send(events('1'));
    client.send(events('2'));
    const [error] = await run(client, subscribe('3', '{ hello }'));
    expect(error).toMatchObject({
      id: '3',
      type: 'error',
      payload: [{ message: 'Too many operations at a time' }],
    });
    client.send({ id: '1', type: 'complete' });
    await until(() => live.open === 1);
    expect((await run(client, subscribe('3', '{ hello }'))).map(({ type }) => type)).toEqual([
      'next',
      'complete',
    ]);
    for (let i = 0; i < 4; i++) client.send(events(`more ${i}`));
    expect(await client.closed).toEqual({ code: 4429, reason: 'Too many operations' });
    await until(() => live.open === 0);
  });
});

describe('a client that disconnects', () => {
  it.each([
    ['closes', (client: RawClient) => client.websocket.close()],
    ['terminates', (client: RawClient) => client.websocket.terminate()],
  ])('graphql-transport-ws returns all sources of a client that %s', async (_, leave) => {
    const { client, live, subscriptions } = await serveReady();
    client.send(events('1'));
    client.send(events('2'));
    client.send(subscribe('3', 'subscription { late(topic: "a") }'));
    await until(() => live.open === 2);
    expect(subscriptions.stats()).toMatchObject({ connections: 1, operations: 3, sources: 2 });
    leave(client);
    await until(() => live.open === 0);
    // The third source is still being opened.
    live.resolvePending();
    await until(() => live.opened === 3 && live.open === 0);
    await until(() => subscriptions.stats().connections === 0);
    expect(subscriptions.stats()).toEqual(NOTHING);
  });

  it('graphql-transport-ws does not wait for a suspended generator and counts it as unreleased', async () => {
    const { client, live, subscriptions } = await serveReady();
    client.send(subscribe('1', 'subscription { sensitive(topic: "a") }'));
    await until(() => live.open === 1);
    client.send({ id: '1', type: 'complete' });
    client.send(subscribe('2', '{ hello }'));
    await client.until(({ type }) => type === 'complete');
    expect(subscriptions.stats()).toMatchObject({ operations: 0, sources: 0, unreleased: 1 });
    live.publish('a', 'wakes it');
    await until(() => live.open === 0);
    expect(subscriptions.stats()).toMatchObject({ unreleased: 0 });
  });
});

it('graphql-transport-ws sends an idle client no legacy keep-alive message', async () => {
  const { client } = await serveReady({ ping: PATIENT });
  for (let i = 0; i < 2; i++) await once(client.websocket, 'ping');
  expect(await client.silence()).toEqual([]);
});

describe('negotiation', () => {
  it('graphql-transport-ws is chosen when the client offers it among others', async () => {
    const { url } = await serve();
    const client = await connect(url, ['other', MODERN, 'graphql-ws']);
    expect(client.websocket.protocol).toBe(MODERN);
  });
});
