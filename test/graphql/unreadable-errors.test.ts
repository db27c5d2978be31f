/** @tags graphql engine */
import express from 'express';
import { buildSchema, GraphQLError } from 'graphql';
import { type GraphQLOptions, graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { connect, LEGACY, MODERN } from '../live/client.ts';
import { type Running, run } from './server.ts';

const schema = buildSchema('type Query { hello: String } type Subscription { tick: String }');

function revoked(target: object): unknown {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

function withThrowingGetter(error: Error, name: string): Error {
  return Object.defineProperty(error, name, {
    get() {
      throw new Error('unreadable');
    },
  });
}

const THROWN: readonly (readonly [string, () => unknown])[] = [
  ['a revoked proxy', () => revoked({})],
  ['a revoked proxy of a function', () => revoked(() => undefined)],
  ['an error with an unreadable message', () => withThrowingGetter(new Error('x'), 'message')],
  ['an error with an unreadable name', () => withThrowingGetter(new Error('x'), 'name')],
  ['an error with an unreadable stack', () => withThrowingGetter(new Error('x'), 'stack')],
  ['an error with an unreadable close code', () => withThrowingGetter(new Error('x'), 'closeCode')],
  ['a GraphQLError with an unreadable message', () => withThrowingGetter(new GraphQLError('x'), 'message')],
];
const OPTIONS = ['context', 'rootValue', 'onOperation'] as const;
const CASES = OPTIONS.flatMap((option) =>
  THROWN.flatMap(([what, make]) => [
    [
      what,
      option,
      () => {
        throw make();
      },
    ] as const,
    ...(option === 'rootValue'
      ? []
      : [[`a promise that rejects with ${what}`, option, () => Promise.reject(make())] as const]),
  ]),
);

let running: Running;
let close: () => Promise<void>;

async function serve(option: string, fail: () => unknown, bare = false): Promise<void> {
  const options: GraphQLOptions = { onError: false, [option]: fail };
  const handler = graphqlHTTP(schema, options);
  const app = express();
  app.use('/graphql', handler);
  app.use(((_error, _req, res, _next) => {
    res.status(500).end('next');
  }) satisfies express.ErrorRequestHandler);
  running = await run(bare ? (req, res) => handler(req, res) : app);
  const subscriptions = attachSubscriptions(running.server, handler);
  close = async () => {
    await subscriptions.close();
  };
}

afterEach(() => close(), 5000);

describe.each(CASES)('%s that is thrown by the option %s', (_what, option, fail) => {
  it.each([true, false])('gets a response over HTTP, without Express: %p', async (bare) => {
    await serve(option, fail, bare);
    const response = await fetch(`${running.url}?query={hello}`);
    expect(await response.json()).toMatchObject({ errors: [{ message: 'Internal server error' }] });
  });

  it('ends an event stream', async () => {
    await serve(option, fail);
    const headers = { accept: 'text/event-stream' };
    const response = await fetch(`${running.url}?query=subscription{tick}`, { headers });
    expect(await response.text()).toMatch(/^next|event: complete/);
  });

  it.each([
    [MODERN, 'subscribe'],
    [LEGACY, 'start'],
  ])('ends the operation or the connection over %s', async (protocol, type) => {
    await serve(option, fail);
    const client = await connect(running.url.replace('http', 'ws'), protocol);
    client.send({ type: 'connection_init' });
    client.send({ id: '1', type, payload: { query: '{ hello }' } });
    const failed = client.until((message) => message['type'] === 'error').then(() => 'error');
    expect(await Promise.race([failed.catch(() => 'closed'), client.closed.then(() => 'closed')])).toMatch(
      /error|closed/,
    );
    await client.close();
  });
});
