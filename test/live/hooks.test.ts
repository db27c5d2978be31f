/** @tags node graphql engine */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { SubscriptionEnd } from '../../types/subscriptions.ts';
import { MODERN, ready } from './client.ts';
import { serve, serveOpen, serveReady, until } from './serve.ts';

const fail = (): never => {
  throw new Error('broken');
};
const query = (text: string): object => ({ id: '1', type: 'subscribe', payload: { query: text } });

describe('onClose', () => {
  let ends: SubscriptionEnd[];
  beforeEach(() => {
    ends = [];
  });
  const onClose = (_connection: object, end: SubscriptionEnd): void => void ends.push(end);

  it('onClose is called once, with the context, when a client closes an accepted connection', async () => {
    const users: unknown[] = [];
    const { client } = await serveReady({
      context: { user: 'ann' },
      onClose(connection, end) {
        users.push(connection.context, connection.protocol);
        onClose(connection, end);
      },
    });
    client.websocket.close(1000, 'bye');
    await until(() => ends.length === 1);
    expect(ends).toEqual([{ code: 1000, reason: 'bye', accepted: true }]);
    expect(users).toMatchObject([{ user: 'ann' }, MODERN]);
  });

  it('onClose is called when the server closes the connection', async () => {
    const { subscriptions } = await serveReady({ onClose });
    subscriptions.disconnect(() => true, 4403, 'logged out');
    await until(() => ends.length === 1);
    expect(ends).toMatchObject([{ code: 4403, accepted: true }]);
  });

  it('onClose is called for a connection that was not accepted', async () => {
    const { client } = await serveOpen({ onClose, onConnect: () => false });
    client.send({ type: 'connection_init' });
    await until(() => ends.length === 1);
    expect(ends).toEqual([{ code: 4403, reason: 'Forbidden', accepted: false }]);
  });

  it.each([true, false])(
    'onClose is called after an onConnect during which the client has disconnected, and that returned %p',
    async (accepted) => {
      let decide = (_accepted: boolean): void => undefined;
      let isAsked = false;
      const { client, subscriptions } = await serveOpen({
        onClose,
        onConnect: () => {
          isAsked = true;
          return new Promise<boolean>((resolve) => (decide = resolve));
        },
      });
      client.send({ type: 'connection_init' });
      await until(() => isAsked);
      client.websocket.close(1000);
      await until(() => subscriptions.stats().connections === 0);
      expect(ends).toEqual([]);
      decide(accepted);
      await until(() => ends.length === 1);
      expect(ends).toMatchObject([{ code: 1000, accepted }]);
    },
  );

  it.each([
    ['throws', () => fail()],
    ['rejects', async () => fail()],
  ])('an onClose that %s is reported once and changes nothing', async (_, failing) => {
    const errors: unknown[] = [];
    const onError = (error: unknown) => errors.push(error);
    const { client, subscriptions } = await serveReady({ onClose: failing }, undefined, { onError });
    await client.close();
    await until(() => errors.length === 1 && subscriptions.stats().connections === 0);
    expect((errors[0] as Error).message).toBe('broken');
  });
});

it('an AsyncLocalStorage that middleware opens is visible in the functions of the socket', async () => {
  const storage = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  const served = await serve({
    middleware: [(_req, _res, next) => storage.run('request 1', next)],
    context: () => ({ store: storage.getStore() }),
    onConnect: () => void seen.push(storage.getStore()),
    onClose: () => void seen.push(storage.getStore()),
  });
  const client = await ready(served.url, MODERN);
  client.send(query('{ context }'));
  const messages = await client.until(({ type }) => type === 'complete');
  const result = messages.find(({ type }) => type === 'next') as {
    payload?: { data?: { context?: string } };
  };
  expect(JSON.parse(result.payload?.data?.context ?? '{}')).toMatchObject({ store: 'request 1' });
  await client.close();
  await until(() => seen.length === 2);
  expect(seen).toEqual(['request 1', 'request 1']);
});

it('the WebSocket of a context function has the method get of a request of Express', async () => {
  const { client } = await serveReady({
    context: async (socket) => ({ host: socket.get('Host'), version: socket.get('sec-websocket-version') }),
  });
  client.send(query('{ context }'));
  const messages = await client.until(({ type }) => type === 'complete');
  const result = messages.find(({ type }) => type === 'next') as {
    payload?: { data?: { context?: string } };
  };
  expect(JSON.parse(result.payload?.data?.context ?? '{}')).toMatchObject({
    host: expect.stringContaining('127.0.0.1'),
    version: '13',
  });
});
