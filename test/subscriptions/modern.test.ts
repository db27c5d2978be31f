import { once } from 'node:events';
import { GraphQLError, versionInfo } from 'graphql';
import { connect, MODERN, type RawClient, ready } from './client.ts';
import { NOTHING, serve, stopAll, until } from './serve.ts';

afterEach(stopAll);

const subscribe = (id: string, query: string, more: object = {}): object => ({
  id,
  type: 'subscribe',
  payload: { query, ...more },
});
const events = (id: string, topic = 'a'): object =>
  subscribe(id, `subscription { events(topic: "${topic}") }`);
const INIT = { type: 'connection_init' };

describe('the handshake of graphql-transport-ws', () => {
  it('acknowledges without payload', async () => {
    const { url } = await serve();
    const client = await connect(url);
    client.send(INIT);
    expect(await client.next()).toEqual({ type: 'connection_ack' });
  });

  it('acknowledges with what the hook returned', async () => {
    const { url } = await serve({ onConnect: () => ({ server: 'a' }) });
    const client = await connect(url);
    client.send(INIT);
    expect(await client.next()).toEqual({ type: 'connection_ack', payload: { server: 'a' } });
  });

  it('closes with 4408 when no init comes, however many pings do', async () => {
    const { url } = await serve({ connectionInitWaitTimeout: 60 });
    const client = await connect(url);
    const pings = setInterval(() => client.send({ type: 'ping' }), 10);
    expect(await client.closed).toEqual({ code: 4408, reason: 'Connection initialisation timeout' });
    clearInterval(pings);
  });

  it('keeps a connection open after its init, however long the hook takes', async () => {
    let accept: () => void = () => undefined;
    const { url } = await serve({
      connectionInitWaitTimeout: 20,
      onConnect: () => new Promise((resolve) => (accept = () => resolve(true))),
    });
    const client = await connect(url);
    client.send(INIT);
    await new Promise((resolve) => setTimeout(resolve, 60));
    accept();
    expect(await client.next()).toEqual({ type: 'connection_ack' });
  });

  it.each([
    ['before the hook has decided', true],
    ['after the acknowledgement', false],
  ])('closes with 4429 at a second init %s, and never asks the hook twice', async (_, together) => {
    let asked = 0;
    const { url } = await serve({ onConnect: () => void asked++ });
    const client = await connect(url);
    client.send(INIT);
    if (!together) await client.next();
    client.send(INIT);
    expect(await client.closed).toEqual({ code: 4429, reason: 'Too many initialisation requests' });
    expect(asked).toBe(together ? 0 : 1);
  });

  it('closes with 4401 at a subscribe before the init', async () => {
    const { url, live } = await serve();
    const client = await connect(url);
    client.send(subscribe('1', 'mutation { set(value: "x") }'));
    expect(await client.closed).toEqual({ code: 4401, reason: 'Unauthorized' });
    expect(live.calls).toEqual({});
  });

  it('closes with 4401 at a subscribe while the hook decides', async () => {
    const { url, live } = await serve({ onConnect: () => new Promise(() => undefined) });
    const client = await connect(url);
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
  ])('refuses when the hook answers with %s', async (_, onConnect, closed) => {
    const { url } = await serve({ onConnect });
    const client = await connect(url);
    client.send(INIT);
    expect(await client.closed).toEqual(closed);
  });

  it('closes with 4500 when the context cannot be made', async () => {
    const { url } = await serve({
      context: () => {
        throw new Error('secret');
      },
    });
    const client = await connect(url);
    client.send(INIT);
    expect(await client.closed).toEqual({ code: 4500, reason: 'Internal server error' });
  });
});

describe('frames that break the protocol', () => {
  const bad: [string, string][] = [
    ['no JSON', '{oops'],
    ['null', 'null'],
    ['a list', '[]'],
    ['a string', '"x"'],
    ['nothing', ''],
    ['a million brackets', '['.repeat(1_000_000)],
    ['no type', '{}'],
    ['a type that is no string', '{"type":1}'],
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

  it.each(bad)('closes with 4400 at %s', async (_, text) => {
    const { url, live } = await serve();
    const client = await (text.includes('connection_init') ? connect(url) : ready(url));
    client.send(text);
    expect(await client.closed).toEqual({ code: 4400, reason: 'Invalid message received' });
    expect(live.calls).toEqual({});
  });

  it('ignores members it does not know', async () => {
    const { url } = await serve();
    const client = await ready(url);
    client.send({ ...subscribe('1', '{ hello }'), extra: 1 });
    expect(await client.next()).toEqual({
      id: '1',
      type: 'next',
      payload: { data: { hello: 'Hello world' } },
    });
  });

  it('takes binary frames as text', async () => {
    const { url } = await serve();
    const client = await connect(url);
    client.websocket.send(Buffer.from(JSON.stringify(INIT)), { binary: true });
    expect(await client.next()).toEqual({ type: 'connection_ack' });
  });

  it('closes with 1009 at a message above maxPayload', async () => {
    const { url } = await serve({ maxPayload: 1000 });
    const client = await ready(url);
    client.send({ type: 'ping', payload: { x: 'x'.repeat(1000) } });
    expect((await client.closed).code).toBe(1009);
  });
});

describe('ping and pong', () => {
  it.each([[undefined], [{ at: 1, deep: { list: [1] } }]])(
    'echoes %j, also before the init',
    async (payload) => {
      const { url } = await serve();
      const client = await connect(url);
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

  it('answers a query with next and complete, field errors inside', async () => {
    const { url } = await serve();
    const client = await ready(url);
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
    ['no choice among operations', subscribe('x', 'query A { hello } query B { hello }'), 'operationName'],
    [
      'a variable of the wrong type',
      subscribe('x', 'query($n: String) { hello(name: $n) }', { variables: { n: {} } }),
      '$n',
    ],
    ['the same in a subscription', subscribe('x', 'subscription($n: String!) { events(topic: $n) }'), '$n'],
    ['a refused subscription', subscribe('x', 'subscription { refused }'), 'not for you'],
    ['a broken subscription', subscribe('x', 'subscription { broken }'), 'Internal server error'],
  ])('answers %s with an error for that id alone', async (_, message, text) => {
    const { url, live } = await serve();
    const client = await ready(url);
    client.send(events('other'));
    const [error] = await run(client, message);
    expect(error).toMatchObject({
      id: 'x',
      type: 'error',
      payload: [{ message: expect.stringContaining(text) }],
    });
    expect(JSON.stringify(error)).not.toContain('secret');
    // Free again, and no complete follows.
    expect((await run(client, subscribe('x', '{ hello }')))[0]).toMatchObject({ id: 'x', type: 'next' });
    live.publish('a', 'still here');
    expect(await client.next()).toEqual({
      id: 'other',
      type: 'next',
      payload: { data: { events: 'still here' } },
    });
  });

  it('streams events, an error in one of them included, to the end', async () => {
    const { url, live } = await serve();
    const client = await ready(url);
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

  it('ends with an error, and no complete, when the source fails', async () => {
    const { url, live } = await serve();
    const client = await ready(url);
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

  it('closes with 4409 at an id in use, and names the client’s', async () => {
    const { url } = await serve();
    for (const query of ['subscription { events(topic: "a") }', '{ held }']) {
      const client = await ready(url);
      client.send(subscribe('my $& id', query));
      client.send(subscribe('my $& id', '{ hello }'));
      expect(await client.closed).toEqual({ code: 4409, reason: 'Subscriber for my $& id already exists' });
    }
  });

  it('cuts a reason that holds a long id', async () => {
    const { url } = await serve();
    const client = await ready(url);
    client.send(events('é'.repeat(200)));
    client.send(events('é'.repeat(200)));
    const { code, reason } = await client.closed;
    expect(code).toBe(4409);
    expect(reason).toBe(`Subscriber for ${'é'.repeat(54)}`);
  });

  it.each(['__proto__', 'constructor', 'toString', 'o0', '"', 'ключ', '\u2028'])(
    'knows %j as an ordinary id',
    async (id) => {
      const { url, live } = await serve();
      const client = await ready(url);
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

  it('returns the source at complete and sends nothing more', async () => {
    const { url, live } = await serve();
    const client = await ready(url);
    client.send(events('s'));
    await until(() => live.open === 1);
    client.send({ id: 's', type: 'complete' });
    client.send({ id: 'unknown', type: 'complete' });
    await until(() => live.open === 0);
    live.publish('a', 'late');
    expect(await client.silence()).toEqual([]);
  });

  it('knows an id used again right after complete as a new operation', async () => {
    const { url, live } = await serve();
    const client = await ready(url);
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

  it('drops the result of a query that the client has completed', async () => {
    const { url, live } = await serve();
    const client = await ready(url);
    client.send(subscribe('q', '{ held }'));
    await until(() => live.calls['held'] === 1);
    client.send({ id: 'q', type: 'complete' });
    client.send(subscribe('q', '{ hello }'));
    await client.until(({ type }) => type === 'complete');
    live.let_go();
    expect(await client.silence()).toEqual([]);
  });

  it('fires the signal of a mutation that the client has completed, where graphql has one', async () => {
    const { url, live } = await serve();
    const client = await ready(url);
    client.send(subscribe('m', 'mutation { hold }'));
    await until(() => live.calls['hold'] === 1);
    client.send({ id: 'm', type: 'complete' });
    client.send(subscribe('q', '{ hello }'));
    await client.until(({ id, type }) => id === 'q' && type === 'complete');
    expect(live.signal?.aborted).toBe(versionInfo.major >= 17 ? true : undefined);
    live.let_go();
    expect(await client.silence()).toEqual([]);
  });

  it('refuses one operation too many, and only that', async () => {
    const { url, live } = await serve({ maxOperations: 2 });
    const client = await ready(url);
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

  it('runs only the kinds of operation it is told to', async () => {
    const { url, live } = await serve({ operations: ['subscription'] });
    const client = await ready(url);
    const [error] = await run(client, subscribe('1', 'mutation { set(value: "x") }'));
    expect(error).toMatchObject({
      type: 'error',
      payload: [{ message: 'A mutation is not accepted over this socket' }],
    });
    expect(live.calls).toEqual({});
    expect(
      (await run(client, subscribe('1', 'subscription { count(to: 1) }'))).map(({ type }) => type),
    ).toEqual(['next', 'complete']);
  });
});

describe('a client that leaves', () => {
  it.each([
    ['closes', (client: RawClient) => client.websocket.close()],
    ['is cut off', (client: RawClient) => client.websocket.terminate()],
  ])('has its sources returned when it %s', async (_, leave) => {
    const { url, live, subscriptions } = await serve();
    const client = await ready(url);
    client.send(events('1'));
    client.send(events('2'));
    client.send(subscribe('3', 'subscription { late(topic: "a") }'));
    await until(() => live.open === 2);
    expect(subscriptions.stats()).toMatchObject({ connections: 1, operations: 3, sources: 2 });
    leave(client);
    await until(() => live.open === 0);
    // The third is still being opened.
    live.let_go();
    await until(() => live.opened === 3 && live.open === 0);
    await until(() => subscriptions.stats().connections === 0);
    expect(subscriptions.stats()).toEqual(NOTHING);
  });

  it('does not wait for a generator that is stuck, and counts it', async () => {
    const { url, live, subscriptions } = await serve();
    const client = await ready(url);
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

it('sends a modern client nothing that it does not know, however long it idles', async () => {
  const { url } = await serve({ keepAlive: 20 });
  const client = await ready(url);
  for (let i = 0; i < 4; i++) await once(client.websocket, 'ping');
  expect(await client.silence()).toEqual([]);
});

describe('the path', () => {
  it('speaks to clients that ask for the modern protocol among others', async () => {
    const { url } = await serve();
    const client = await connect(url, ['other', MODERN, 'graphql-ws']);
    expect(client.websocket.protocol).toBe(MODERN);
  });
});
