/** @tags node graphql engine */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { SubscriptionOptions } from '../../types/subscriptions.ts';
import { MODERN, ready } from './client.ts';
import { serve, serveOpen, serveReady, until } from './serve.ts';

const query = (text: string): object => ({ id: '1', type: 'subscribe', payload: { query: text } });

/** The options of both hooks, which record their calls. */
function recorded() {
  const calls: unknown[][] = [];
  const options = {
    onDisconnect: (...args: [object, number, string]) => void calls.push(['onDisconnect', ...args.slice(1)]),
    onClose: (...args: [object, number, string]) => void calls.push(['onClose', ...args.slice(1)]),
  };
  return { calls, options };
}

describe('onDisconnect and onClose', () => {
  it('both are called once, with the context, when a client closes an accepted connection', async () => {
    const users: unknown[] = [];
    const { calls, options } = recorded();
    const { client } = await serveReady({
      ...options,
      context: { user: 'ann' },
      onDisconnect(connection, code, reason) {
        users.push(connection.context, connection.protocol);
        options.onDisconnect(connection, code, reason);
      },
    });
    client.websocket.close(1000, 'bye');
    await until(() => calls.length === 2);
    expect(calls).toEqual([
      ['onDisconnect', 1000, 'bye'],
      ['onClose', 1000, 'bye'],
    ]);
    expect(users).toMatchObject([{ user: 'ann' }, MODERN]);
  });

  it('both are called when the server closes the connection', async () => {
    const { calls, options } = recorded();
    const { subscriptions } = await serveReady(options);
    subscriptions.disconnect(() => true, 4403, 'logged out');
    await until(() => calls.length === 2);
    expect(calls.map(([name, code]) => [name, code])).toEqual([
      ['onDisconnect', 4403],
      ['onClose', 4403],
    ]);
  });

  it('a connection that was not accepted calls onClose only', async () => {
    const { calls, options } = recorded();
    const { client } = await serveOpen({ ...options, onConnect: () => false });
    client.send({ type: 'connection_init' });
    await until(() => calls.length === 1);
    expect(calls).toEqual([['onClose', 4403, 'Forbidden']]);
  });

  it('onDisconnect is called after an onConnect during which the client has disconnected', async () => {
    const { calls, options } = recorded();
    let accept = (): void => undefined;
    const { client } = await serveOpen({
      ...options,
      onConnect: () => new Promise<void>((resolve) => (accept = resolve)),
    });
    client.send({ type: 'connection_init' });
    await new Promise((resolve) => setTimeout(resolve, 50));
    client.websocket.close(1000);
    await until(() => calls.length === 1);
    accept();
    await until(() => calls.length === 2);
    expect(calls.map(([name]) => name)).toEqual(['onClose', 'onDisconnect']);
  });

  it('their errors are reported once and change nothing', async () => {
    const errors: unknown[] = [];
    const failing: SubscriptionOptions = {
      onDisconnect: () => {
        throw new Error('sync');
      },
      onClose: async () => {
        throw new Error('async');
      },
    };
    const onError = (error: unknown) => errors.push(error);
    const { client, subscriptions } = await serveReady(failing, undefined, { onError });
    await client.close();
    await until(() => errors.length === 2 && subscriptions.stats().connections === 0);
    expect(errors.map((error) => (error as Error).message)).toEqual(['sync', 'async']);
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
