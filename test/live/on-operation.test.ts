/** @tags node graphql */
import { GraphQLError } from 'graphql';
import { WebSocketServer } from 'ws';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import type { ErrorDetails, GraphQLOptions } from '../../types/graphql.ts';
import type { OperationDetails } from '../../types/operation.ts';
import type { SubscriptionOptions } from '../../types/subscriptions.ts';
import { atEnd } from '../kit.ts';
import { connect, LEGACY, listen, MODERN, type RawClient, ready } from './client.ts';
import { liveSchema } from './schema.ts';
import { inProduction, until } from './serve.ts';

inProduction();

/** Serves the test schema with a `graphqlHTTP` handler that has the given options. */
async function serve(handlerOptions: GraphQLOptions, options: SubscriptionOptions = {}) {
  const { schema, live } = liveSchema();
  const reports: (readonly [Error, ErrorDetails])[] = [];
  const onError = (error: unknown, details: ErrorDetails): void =>
    void reports.push([error as Error, details]);
  const { server, url } = await listen();
  const handler = graphqlHTTP(schema, { onError, ...handlerOptions });
  const subscriptions = attachSubscriptions(server, handler, { ping: false, ...options });
  atEnd(async () => {
    await subscriptions.close();
    server.close();
  });
  return { url, schema, live, reports, subscriptions };
}

const forbidden = (): GraphQLError => new GraphQLError('not today', { extensions: { code: 'FORBIDDEN' } });

/** Whether a message is the last one of an operation. */
const ends = ({ type }: Record<string, unknown>): boolean => type === 'complete' || type === 'error';

describe.each([
  [MODERN, 'subscribe', 'next'],
  [LEGACY, 'start', 'data'],
])('onOperation over %s', (protocol, type, next) => {
  const run = (query: string, variables?: object, id = '1'): object => ({
    id,
    type,
    payload: { query, variables },
  });
  /** The payload of the `error` message: a list of errors, or the first error. */
  const errorPayload = (error: object): object => (protocol === MODERN ? [error] : error);

  it('onOperation gets each operation once, with the WebSocket as its request', async () => {
    const seen: OperationDetails[] = [];
    const { url, schema } = await serve({
      context: { user: 'ada' },
      onOperation: (operation) => void seen.push(operation),
    });
    const client = await ready(url, protocol);
    const query = 'query Greet($name: String) { hello(name: $name) }';
    client.send({ id: '1', type, payload: { query, operationName: 'Greet', variables: { name: 'you' } } });
    expect(await client.until(ends)).toMatchObject([{ payload: { data: { hello: 'Hello you' } } }, {}]);
    client.send(run('mutation { set(value: "x") }'));
    await client.until(ends);
    client.send(run('subscription { count(to: 3) }'));
    expect(await client.until(ends)).toHaveLength(4);
    expect(seen.map(({ operation }) => operation.operation)).toEqual(['query', 'mutation', 'subscription']);
    expect(seen[0]).toMatchObject({
      operationName: 'Greet',
      variables: { name: 'you' },
      context: { user: 'ada' },
      transport: 'websocket',
      request: { protocol, headers: { upgrade: 'websocket' }, url: '/graphql', state: {} },
    });
    expect(seen[0]?.schema).toBe(schema);
    await client.close();
  });

  it.each([
    ['a validation error', '{ unknown }', undefined],
    ['a variable of a wrong type', 'query ($name: String) { hello(name: $name) }', { name: 1 }],
    ['a missing variable of a subscription', 'subscription ($to: Int!) { count(to: $to) }', {}],
  ])('onOperation is not called for %s, and the response stays the same', async (_, query, variables) => {
    let calls = 0;
    const plain = await ready((await serve({})).url, protocol);
    const hooked = await ready((await serve({ onOperation: () => void calls++ })).url, protocol);
    for (const client of [plain, hooked]) client.send(run(query, variables));
    const expected = await plain.next();
    expect(expected).toMatchObject({ type: 'error' });
    expect(await hooked.next()).toEqual(expected);
    expect(calls).toBe(0);
    await Promise.all([plain.close(), hooked.close()]);
  });

  it.each<[string, GraphQLOptions['onOperation']]>([
    [
      'throws',
      () => {
        throw forbidden();
      },
    ],
    ['rejects', () => Promise.reject(forbidden())],
    ['returns errors', () => ({ errors: [forbidden()] })],
    ['resolves with errors', async () => ({ errors: [forbidden()] })],
  ])('an operation gets an error and the socket stays open when onOperation %s', async (_, onOperation) => {
    const { url, live, reports, subscriptions } = await serve({ onOperation });
    const client = await ready(url, protocol);
    for (const query of ['mutation { set(value: "x") }', 'subscription { count(to: 3) }']) {
      client.send(run(query));
      expect(await client.next()).toEqual({
        id: '1',
        type: 'error',
        payload: errorPayload({ message: 'not today', extensions: { code: 'FORBIDDEN' } }),
      });
    }
    expect(await client.silence()).toEqual([]);
    expect(live.calls).toEqual({});
    expect(subscriptions.stats()).toMatchObject({ connections: 1, operations: 0, sources: 0 });
    expect(reports).toEqual([]);
    await client.close();
  });

  it.each<[string, GraphQLOptions['onOperation']]>([
    [
      'throws',
      () => {
        throw new Error('secret');
      },
    ],
    ['rejects', () => Promise.reject(new Error('secret'))],
    ['returns a list', () => [] as object],
  ])('an unexpected error is hidden and reported once when onOperation %s', async (_, onOperation) => {
    const { url, live, reports } = await serve({ onOperation });
    const client = await ready(url, protocol);
    client.send(run('subscription { count(to: 3) }'));
    const extensions = { code: 'INTERNAL_SERVER_ERROR' };
    expect(await client.next()).toEqual({
      id: '1',
      type: 'error',
      payload: errorPayload({ message: 'Internal server error', extensions }),
    });
    expect(live.calls).toEqual({});
    expect(reports).toMatchObject([
      [
        { message: expect.stringMatching(/secret|onOperation/) },
        { transport: 'websocket', socket: { protocol } },
      ],
    ]);
    await client.close();
  });

  it('extensions of onOperation are added to each result', async () => {
    const extensions = { cost: 3 };
    const { url, live } = await serve({ onOperation: async () => ({ extensions }) });
    const client = await ready(url, protocol);
    client.send(run('{ hello fails }'));
    expect(await client.until(ends)).toMatchObject([
      { type: next, payload: { data: { hello: 'Hello world', fails: null }, errors: [{}], extensions } },
      { type: 'complete' },
    ]);
    client.send(run('subscription { count(to: 2) }'));
    expect(await client.until(ends)).toEqual([
      { id: '1', type: next, payload: { data: { count: 1 }, extensions } },
      { id: '1', type: next, payload: { data: { count: 2 }, extensions } },
      { id: '1', type: 'complete' },
    ]);
    expect(live.open).toBe(0);
    await client.close();
  });

  it('shared subscriptions with equal extensions share a source, others do not', async () => {
    const { url, live, subscriptions } = await serve(
      { onOperation: ({ request }) => ({ extensions: { plan: request.headers['x-plan'] } }) },
      { share: () => 'all' },
    );
    const clients: RawClient[] = [];
    for (const plan of ['free', 'free', 'paid']) {
      const client = await connect(url, protocol, { headers: { 'x-plan': plan } });
      client.send({ type: 'connection_init' });
      await client.until((message) => message['type'] === 'connection_ack');
      client.send(run('subscription ($topic: String!) { events(topic: $topic) }', { topic: 'a' }));
      clients.push(client);
    }
    await until(() => subscriptions.stats().operations === 3 && live.open === 2);
    live.publish('a', 'x');
    const isResult = (message: Record<string, unknown>): boolean => message['type'] === next;
    const results = await Promise.all(clients.map((client) => client.until(isResult)));
    expect(results.map((messages) => messages.at(-1)?.['payload'])).toEqual(
      ['free', 'free', 'paid'].map((plan) => ({ data: { events: 'x' }, extensions: { plan } })),
    );
    expect(live.calls).toMatchObject({ 'subscribe events': 2, events: 2 });
    await Promise.all(clients.map((client) => client.close()));
  });

  it('an operation that the client cancels while onOperation waits does not run', async () => {
    let proceed: () => void = () => undefined;
    const waiting = new Promise<void>((resolve) => {
      proceed = resolve;
    });
    const { url, live, subscriptions } = await serve({ onOperation: () => waiting });
    const client = await ready(url, protocol);
    client.send(run('mutation { set(value: "x") }'));
    client.send(run('subscription { count(to: 3) }', undefined, '2'));
    await until(() => subscriptions.stats().operations === 2);
    for (const id of ['1', '2']) client.send({ id, type: protocol === MODERN ? 'complete' : 'stop' });
    await until(() => subscriptions.stats().operations === 0);
    proceed();
    expect(await client.silence()).toEqual([]);
    expect(live.calls).toEqual({});
    await client.close();
  });
});

describe('onOperation of websocketHandler', () => {
  const greet = { id: '1', type: 'subscribe', payload: { query: '{ hello }' } };

  it('websocketHandler calls onOperation of its handler', async () => {
    const { server, url } = await listen();
    const { websocketHandler } = graphqlHTTP(liveSchema().schema, {
      onOperation: () => ({ errors: [forbidden()] }),
    });
    new WebSocketServer({ server }).on('connection', websocketHandler);
    const client = await ready(url);
    client.send(greet);
    expect(await client.next()).toMatchObject({ type: 'error', payload: [{ message: 'not today' }] });
    await client.close();
    server.close();
  });
});
