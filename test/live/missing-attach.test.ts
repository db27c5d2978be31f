/** @tags node graphql */
import http from 'node:http';
import { buildSchema } from 'graphql';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { handshake, listen } from './client.ts';

const schema = buildSchema('type Query { hello: String }');

let warned: jest.SpyInstance;
beforeEach(() => {
  warned = jest.spyOn(console, 'warn').mockImplementation();
});
afterEach(() => {
  jest.restoreAllMocks();
});

async function serve(listener: http.RequestListener): Promise<{ server: http.Server; port: number }> {
  return listen(listener);
}

const warnings = (): string[] => warned.mock.calls.map(([message]) => message);

it('a WebSocket to a server without subscriptions is refused with what to do, which the console says once', async () => {
  const { port } = await serve(graphqlHTTP(schema));
  for (let i = 0; i < 2; i++) {
    const { status, body } = await handshake(port, '/graphql');
    expect([status, JSON.parse(body)]).toMatchObject([
      400,
      { errors: [{ message: expect.stringContaining('call attachSubscriptions(server, handler)') }] },
    ]);
  }
  expect(warnings()).toEqual([expect.stringContaining('call attachSubscriptions(server, handler)')]);
});

it('a WebSocket to another server than that of attachSubscriptions is refused with what to do', async () => {
  const handler = graphqlHTTP(schema);
  const { port } = await serve(handler);
  const subscriptions = attachSubscriptions(http.createServer(), handler);
  const { status, body } = await handshake(port, '/graphql');
  expect([status, body]).toEqual([
    400,
    expect.stringContaining('with another server than the one that listens'),
  ]);
  await subscriptions.close();
});

it('a query with a header of an upgrade to another protocol is executed', async () => {
  const { port } = await serve(graphqlHTTP(schema));
  const { status, body } = await handshake(port, '/graphql?query={hello}', { upgrade: 'h2c' });
  expect([status, body]).toEqual([200, '{"data":{"hello":null}}']);
});

it('the console names the paths that have subscriptions when a WebSocket is opened at another one', async () => {
  const { server, port } = await serve(() => undefined);
  const subscriptions = attachSubscriptions(server, schema);
  expect((await handshake(port, '/grapql')).status).toBe(404);
  expect(warnings().at(-1)).toMatch(
    /"\/grapql": no subscriptions are attached to this path; attached: \/graphql/,
  );
  await subscriptions.close();
});
