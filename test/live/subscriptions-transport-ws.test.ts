/** @tags node graphql */
import { once } from 'node:events';
import { GraphQLError } from 'graphql';
import { connect, LEGACY, PATIENT, type RawClient } from './client.ts';
import { serve, serveOpen, serveReady, until } from './serve.ts';

const INIT = { type: 'connection_init', payload: {} };
const start = (id: unknown, query: string, more: object = {}): object => ({
  id,
  type: 'start',
  payload: { query, ...more },
});
const events = (id: unknown, topic = 'a'): object => start(id, `subscription { events(topic: "${topic}") }`);
const types = (messages: Record<string, unknown>[]): unknown[] => messages.map(({ type }) => type);
/** A server that sends no `ka`. */
const withoutPing = { ping: false as const };

describe('the handshake of graphql-ws', () => {
  it('legacy graphql-ws acknowledges first, then sends ka immediately and at each interval', async () => {
    const { client } = await serveOpen({ ping: PATIENT }, LEGACY);
    client.send(INIT);
    const messages = [await client.next(), await client.next(), await client.next()];
    expect(messages).toEqual([{ type: 'connection_ack' }, { type: 'ka' }, { type: 'ka' }]);
  });

  it('legacy graphql-ws sends no ka before the acknowledgement', async () => {
    const { client } = await serveOpen(
      { ping: PATIENT, onConnect: () => new Promise(() => undefined) },
      LEGACY,
    );
    client.send(INIT);
    // Pings have the interval of ka: two of them prove that a ka would have been due.
    for (let i = 0; i < 2; i++) await once(client.websocket, 'ping');
    expect(client.received).toEqual([]);
  });

  it('legacy graphql-ws acknowledges with the payload that onConnect returned', async () => {
    const { client } = await serveOpen(
      { ...withoutPing, onConnect: ({ protocol }) => ({ protocol }) },
      LEGACY,
    );
    client.send(INIT);
    expect(await client.next()).toEqual({ type: 'connection_ack', payload: { protocol: 'graphql-ws' } });
  });

  it('legacy graphql-ws accepts connection_init without payload and ignores a second one', async () => {
    let requested = 0;
    const { client } = await serveOpen({ ...withoutPing, onConnect: () => void requested++ }, LEGACY);
    client.send({ type: 'connection_init' });
    await client.next();
    client.send(INIT);
    expect(await client.silence()).toEqual([]);
    expect(requested).toBe(1);
  });

  it.each([
    ['false', () => false as const, 'Forbidden'],
    [
      'an error',
      () => {
        throw new Error('secret');
      },
      'Internal server error',
    ],
    [
      'a GraphQLError',
      () => {
        throw new GraphQLError('no such user');
      },
      'no such user',
    ],
  ])(
    'legacy graphql-ws sends connection_error and closes with 1011 when onConnect results in %s',
    async (_, onConnect, message) => {
      const { client, live } = await serveOpen({ ...withoutPing, onConnect }, LEGACY);
      client.send(INIT);
      client.send(start('1', '{ hello }'));
      expect(await client.next()).toEqual({ type: 'connection_error', payload: { message } });
      expect(await client.closed).toEqual({ code: 1011, reason: message });
      expect(live.calls).toEqual({});
    },
  );

  it('legacy graphql-ws sends connection_error and closes with 1011 when the context function fails', async () => {
    const { client } = await serveOpen(
      {
        ...withoutPing,
        context: () => {
          throw new Error('secret');
        },
      },
      LEGACY,
    );
    client.send(INIT);
    expect(await client.next()).toEqual({
      type: 'connection_error',
      payload: { message: 'Internal server error' },
    });
    expect((await client.closed).code).toBe(1011);
  });

  it.each(['x', 5, [1], true])(
    'legacy graphql-ws refuses connection_init with the payload %j',
    async (payload) => {
      const { client } = await serveOpen(withoutPing, LEGACY);
      client.send({ type: 'connection_init', payload });
      expect(await client.next()).toMatchObject({ type: 'connection_error' });
      expect((await client.closed).code).toBe(1000);
    },
  );

  it('legacy graphql-ws executes nothing without connection_init (CVE-2026-35523)', async () => {
    const { client, live } = await serveOpen(withoutPing, LEGACY);
    client.send(start('1', 'mutation { set(value: "x") }'));
    expect(await client.closed).toEqual({ code: 4401, reason: 'Unauthorized' });
    expect(live.calls).toEqual({});
  });

  it('legacy graphql-ws closes with 4408 when connection_init is late', async () => {
    const { client } = await serveOpen({ limits: { initTimeout: 30 } }, LEGACY);
    expect((await client.closed).code).toBe(4408);
  });

  it('legacy graphql-ws queues starts until the acknowledgement, in order, without those that were stopped', async () => {
    let accept: () => void = () => undefined;
    const { url, live } = await serve({
      ...withoutPing,
      onConnect: () => new Promise((resolve) => (accept = () => resolve(true))),
    });
    const client = await connect(url, LEGACY);
    client.send(INIT);
    client.send(start('1', '{ hello(name: "one") }'));
    client.send(start('2', 'mutation { set(value: "stopped") }'));
    client.send(start('3', '{ hello(name: "three") }'));
    client.send({ id: '2', type: 'stop' });
    await client.silence();
    expect(live.calls).toEqual({});
    accept();
    const messages = [
      await client.next(),
      await client.next(),
      await client.next(),
      await client.next(),
      await client.next(),
    ];
    expect(messages.map(({ type, id }) => [type, id])).toEqual([
      ['connection_ack', undefined],
      ['data', '1'],
      ['data', '3'],
      ['complete', '1'],
      ['complete', '3'],
    ]);
    expect(live.calls).toEqual({ hello: 2 });
  });

  it('legacy graphql-ws limits the queue of starts', async () => {
    const { client } = await serveOpen(
      {
        ...withoutPing,
        limits: { operations: 3 },
        onConnect: () => new Promise(() => undefined),
      },
      LEGACY,
    );
    client.send(INIT);
    for (let i = 0; i < 4; i++) client.send(start(`${i}`, '{ hello }'));
    expect((await client.closed).code).toBe(4429);
  });
});

describe('operations over graphql-ws', () => {
  const run = async (client: RawClient, message: object): Promise<Record<string, unknown>[]> => {
    client.send(message);
    return client.until(({ type }) => type === 'complete' || type === 'error');
  };

  it.each([['1'], [1], [-2.5], ['__proto__'], ['toString'], ['"'.repeat(256)]])(
    'legacy graphql-ws sends data and complete for a query with the id %j',
    async (id) => {
      const { client } = await serveReady(withoutPing, LEGACY);
      expect(await run(client, start(id, '{ hello fails }'))).toEqual([
        {
          id,
          type: 'data',
          payload: {
            data: { hello: 'Hello world', fails: null },
            errors: [expect.objectContaining({ message: 'on purpose' })],
          },
        },
        { id, type: 'complete' },
      ]);
    },
  );

  it.each([
    ['a syntax error', start('x', '{ hello '), 'Syntax Error'],
    ['a validation error', start('x', '{ nothing other }'), 'nothing'],
    ['a refused subscription', start('x', 'subscription { refused }'), 'not for you'],
    ['a payload without query', { id: 'x', type: 'start', payload: {} }, 'malformed'],
    ['no payload', { id: 'x', type: 'start' }, 'malformed'],
    ['variables that are a list', start('x', '{ hello }', { variables: [] }), 'malformed'],
  ])(
    'legacy graphql-ws sends one error object for %s and keeps the socket open',
    async (_, message, text) => {
      const { client } = await serveReady(withoutPing, LEGACY);
      const [error] = await run(client, message);
      expect(error).toMatchObject({
        id: 'x',
        type: 'error',
        payload: { message: expect.stringContaining(text) },
      });
      expect(types(await run(client, start('x', '{ hello }')))).toEqual(['data', 'complete']);
    },
  );

  it('legacy graphql-ws sends all events and then complete', async () => {
    const { client, live } = await serveReady(withoutPing, LEGACY);
    client.send(events('s'));
    await until(() => live.open === 1);
    live.publish('a', 'one');
    live.publish('a', new Error('secret'));
    live.end('a');
    const messages = await client.until(({ type }) => type === 'complete');
    expect(types(messages)).toEqual(['data', 'data', 'complete']);
    expect(JSON.stringify(messages)).not.toContain('secret');
  });

  it('legacy graphql-ws sends an error object when the source fails', async () => {
    const { client, live } = await serveReady(withoutPing, LEGACY);
    client.send(events('s'));
    await until(() => live.open === 1);
    live.end('a', new GraphQLError('over'));
    expect(await client.next()).toMatchObject({ id: 's', type: 'error', payload: { message: 'over' } });
    expect(await client.silence()).toEqual([]);
  });

  it('legacy graphql-ws returns the source at stop and sends nothing more', async () => {
    const { client, live } = await serveReady(withoutPing, LEGACY);
    client.send(events('s'));
    await until(() => live.open === 1);
    client.send({ id: 's', type: 'stop' });
    await until(() => live.open === 0);
    live.publish('a', 'late');
    expect(await client.silence()).toEqual([]);
  });

  it('legacy graphql-ws replaces the older operation when a start reuses its id', async () => {
    const { client, live } = await serveReady(withoutPing, LEGACY);
    client.send(events('s', 'old'));
    await until(() => live.open === 1);
    client.send(events('s', 'new'));
    await until(() => live.opened === 2 && live.open === 1);
    live.publish('old', 'old');
    live.publish('new', 'new');
    expect(await client.next()).toEqual({ id: 's', type: 'data', payload: { data: { events: 'new' } } });
    expect(await client.silence()).toEqual([]);
  });

  it('legacy graphql-ws closes with 1000 at connection_terminate', async () => {
    const { client, live } = await serveReady(withoutPing, LEGACY);
    client.send(events('s'));
    await until(() => live.open === 1);
    client.send({ type: 'connection_terminate' });
    expect((await client.closed).code).toBe(1000);
    await until(() => live.open === 0);
  });

  it.each([
    '',
    '{oops',
    'null',
    '[]',
    '"x"',
    '['.repeat(100_000),
    '{"type":"subscribe","id":"1","payload":{"query":"{ hello }"}}',
    '{"type":"ping"}',
    '{"type":"complete","id":"1"}',
    '{"type":"stop","id":"unknown"}',
    '{"type":"stop","id":"__proto__"}',
    '{"type":"stop"}',
    '{"type":"start","payload":{"query":"{ hello }"}}',
    '{"type":"start","id":{},"payload":{"query":"{ hello }"}}',
    '{"type":"start","id":1e999,"payload":{"query":"{ hello }"}}',
    `{"type":"start","id":"${'i'.repeat(300)}","payload":{"query":"{ hello }"}}`,
  ])('legacy graphql-ws ignores the message %.60s', async (text) => {
    const { client, live } = await serveReady(withoutPing, LEGACY);
    client.send(text);
    expect(await client.silence()).toEqual([]);
    expect(live.calls).toEqual({});
    expect(types(await run(client, start('1', '{ hello }')))).toEqual(['data', 'complete']);
  });

  it('legacy graphql-ws accepts binary frames, which Apollo Kotlin may send', async () => {
    const { client } = await serveOpen(withoutPing, LEGACY);
    client.websocket.send(Buffer.from(JSON.stringify(INIT)), { binary: true });
    expect(await client.next()).toEqual({ type: 'connection_ack' });
  });

  it('legacy graphql-ws sends an error object for one operation above limits.operations', async () => {
    const { client } = await serveReady({ ...withoutPing, limits: { operations: 1 } }, LEGACY);
    client.send(events('1'));
    const [error] = await run(client, start('2', '{ hello }'));
    expect(error).toMatchObject({
      id: '2',
      type: 'error',
      payload: { message: 'Too many operations at a time' },
    });
  });
});
