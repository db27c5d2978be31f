/** @tags node graphql engine */
import { GraphQLError } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import type { ErrorDetails, GraphQLOptions } from '../../types/graphql.ts';
import type { SubscriptionOptions } from '../../types/subscriptions.ts';
import { atEnd } from '../kit.ts';
import { connect, handshake, LEGACY, listen, MODERN, ready } from './client.ts';
import { liveSchema } from './schema.ts';
import { inProduction, until } from './serve.ts';

inProduction();

interface Report {
  readonly message: string;
  readonly details: ErrorDetails;
}

/** A server whose handler records the reports of `onError`. */
async function serve(options: SubscriptionOptions = {}, handlerOptions: GraphQLOptions = {}) {
  const { schema, live } = liveSchema();
  const reports: Report[] = [];
  const onError = (error: unknown, details: ErrorDetails): void => {
    reports.push({ message: (error as Error).message, details });
  };
  const { server, url, port } = await listen();
  const handler = graphqlHTTP(schema, { onError, ...handlerOptions });
  const subscriptions = attachSubscriptions(server, handler, options);
  atEnd(async () => {
    await subscriptions.close();
    server.close();
  });
  return { url, port, live, reports };
}

const fail = (): never => {
  throw new Error('secret');
};
const run = (query: string, type = 'subscribe'): object => ({ id: '1', type, payload: { query } });

describe.each([
  [MODERN, 'subscribe'],
  [LEGACY, 'start'],
])('onError over %s', (protocol, type) => {
  it.each([
    ['a resolver', 'query Named { crashes }', {}, ['crashes']],
    ['a subscribe resolver', 'subscription Named { broken }', {}, ['broken']],
    ['the share function', 'subscription Named { count(to: 1) }', { share: fail }, undefined],
  ])('onError gets the error of %s once, with the operation', async (_, query, options, path) => {
    const { url, reports } = await serve(options);
    const client = await ready(url, protocol);
    const message = run(query, type) as { payload: object };
    client.send({ ...message, payload: { ...message.payload, operationName: 'Named' } });
    const received = await client.until((one) => ['complete', 'error'].includes(one['type'] as string));
    expect(JSON.stringify(received)).not.toContain('secret');
    expect(JSON.stringify(received)).toContain('Internal server error');
    expect(reports).toMatchObject([
      {
        message: expect.stringMatching('secret'),
        details: { transport: 'websocket', operationName: 'Named' },
      },
    ]);
    expect(reports[0]?.details.path).toEqual(path);
    expect(reports[0]?.details.socket).toHaveProperty('protocol', protocol);
  });

  it.each([
    ['onConnect', { onConnect: fail }],
    ['the context function', { context: fail }],
    ['onConnect with an invalid expiresAt', { onConnect: () => ({ expiresAt: new Date('secret') }) }],
  ])(
    'onError gets the error of %s that refuses the connection, with the upgrade request',
    async (_, options) => {
      const { url, reports } = await serve(options);
      const client = await connect(url, protocol);
      client.send({ type: 'connection_init' });
      expect((await client.closed).reason).toBe('Internal server error');
      expect(reports).toHaveLength(1);
      expect(reports[0]?.details.request?.url).toBe('/graphql');
    },
  );

  it('onError gets the error of a source once, although several clients share it', async () => {
    const { url, live, reports } = await serve({ share: () => 'all' });
    const clients = await Promise.all([ready(url, protocol), ready(url, protocol), ready(url, protocol)]);
    for (const client of clients) client.send(run('subscription { events(topic: "a") }', type));
    await until(() => live.open === 1);
    live.end('a', new Error('secret'));
    for (const client of clients) await client.until((message) => message['type'] === 'error');
    expect(reports.map(({ message }) => message)).toEqual(['secret']);
  });

  it('onError gets no error that was written for the client', async () => {
    const onConnect = (): never => {
      throw new GraphQLError('sign in');
    };
    const { url, reports } = await serve({ onConnect });
    const client = await connect(url, protocol);
    client.send({ type: 'connection_init' });
    expect((await client.closed).reason).toBe('sign in');
    const { url: other, reports: none } = await serve();
    const second = await ready(other, protocol);
    second.send(run('{ fails }', type));
    await second.until((message) => message['type'] === 'complete');
    expect([reports, none]).toEqual([[], []]);
  });
});

describe('onError for an upgrade', () => {
  it.each([
    ['allowedOrigins', { allowedOrigins: fail }],
    ['a middleware', { middleware: [fail], allowedOrigins: '*' as const }],
  ])('onError gets the error of %s during an upgrade, and the client gets a 500', async (_, options) => {
    const { port, reports } = await serve(options);
    expect((await handshake(port, '/graphql', { origin: 'http://x' })).status).toBe(500);
    expect(reports).toMatchObject([{ message: 'secret', details: { transport: 'websocket' } }]);
  });

  it('onError gets no error of an upgrade with a status below 500', async () => {
    const refuse = (_req: unknown, _res: unknown, next: (error: unknown) => void): void =>
      next(Object.assign(new Error('too many'), { status: 429 }));
    const { port, reports } = await serve({ middleware: [refuse] });
    expect((await handshake(port, '/graphql')).status).toBe(429);
    expect(reports).toEqual([]);
  });
});
