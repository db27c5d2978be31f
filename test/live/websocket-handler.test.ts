/** @tags node graphql */
import { once } from 'node:events';
import http from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { WebSocketServer } from 'ws';
import { graphqlHTTP } from '../../middleware/graphql.ts';
import type { WebsocketHandler } from '../../types/subscriptions.ts';
import { eachExpress } from '../express.ts';
import { connect, LEGACY, listen, MODERN, PATIENT, ready } from './client.ts';
import { liveSchema } from './schema.ts';
import { serve, until } from './serve.ts';

const untyped = createRequire(__filename);
const subscribe = (query: string, type = 'subscribe'): object => ({ id: '1', type, payload: { query } });

async function works(url: string, count = 3): Promise<void> {
  for (const [protocol, type] of [
    [MODERN, 'subscribe'],
    [LEGACY, 'start'],
  ] as const) {
    const client = await ready(url, protocol);
    client.send(subscribe(`subscription { count(to: ${count}) }`, type));
    const messages = (await client.until((message) => message['type'] === 'complete')).filter(
      ({ id }) => id === '1',
    );
    expect(messages).toHaveLength(count + 1);
    await client.close();
  }
}

describe('websocketHandler', () => {
  eachExpress((express) => {
    it('websocketHandler serves a route of express-ws', async () => {
      const { schema } = liveSchema();
      const app = express();
      untyped('express-ws')(app);
      const handler = graphqlHTTP(schema);
      app.use('/graphql', (req, res, next) =>
        req.headers.upgrade === undefined ? handler(req, res, next) : next(),
      );
      (app as unknown as { ws(path: string, handler: WebsocketHandler): void }).ws(
        '/graphql',
        handler.websocketHandler,
      );
      const server = app.listen(0);
      await once(server, 'listening');
      await works(`ws://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`);
      server.close();
    });
  });

  it.each([[false], [true]])(
    'websocketHandler serves a plain WebSocketServer, compressed: %s',
    async (perMessageDeflate) => {
      const { schema, live } = liveSchema();
      const { server, url } = await listen();
      const sockets = new WebSocketServer({ server, perMessageDeflate });
      sockets.on('connection', graphqlHTTP(schema).websocketHandler);
      await works(url);
      const client = await connect(url, MODERN, { perMessageDeflate });
      expect(client.websocket.extensions === '').toBe(!perMessageDeflate);
      client.send(subscribe('subscription { events(topic: "a") }'));
      expect((await client.closed).code).toBe(4401);
      expect(live.open).toBe(0);
      server.close();
    },
  );

  it.each([
    ['no subprotocol', [], undefined],
    ['another subprotocol', ['other'], undefined],
    ['a subprotocol that the options exclude', [LEGACY], [MODERN] as const],
  ])(
    'websocketHandler closes with 4406 when the client offered %s',
    async (_, offered, subscriptionProtocols) => {
      const { schema } = liveSchema();
      const { server, url } = await listen();
      const handler = graphqlHTTP(schema, subscriptionProtocols && { subscriptionProtocols });
      new WebSocketServer({ server }).on('connection', handler.websocketHandler);
      const client = await connect(url, offered);
      expect(await client.closed).toEqual({ code: 4406, reason: 'Subprotocol not acceptable' });
      server.close();
    },
  );

  it('websocketHandler writes through the WebSocket when the request has no socket', async () => {
    const { schema } = liveSchema();
    const { server, url } = await listen();
    const handler = graphqlHTTP(schema);
    new WebSocketServer({ server }).on('connection', (websocket) => {
      handler.websocketHandler(websocket, new http.IncomingMessage(undefined as never));
    });
    await works(url);
    server.close();
  });

  it('websocketHandler uses the context of its handler', async () => {
    const { schema } = liveSchema();
    const { server, url } = await listen();
    const handler = graphqlHTTP(schema, { context: { of: 'handler' } });
    new WebSocketServer({ server }).on('connection', handler.websocketHandler);
    const client = await ready(url, MODERN, { token: 't' });
    client.send(subscribe('{ context }'));
    const { data } = (await client.next())['payload'] as { data: { context: string } };
    expect(JSON.parse(data.context)).toMatchObject({ of: 'handler', connection_params: { token: 't' } });
    await client.close();
    server.close();
  });
});

describe('over TLS', () => {
  it('messages of both subprotocols and large frames arrive complete over TLS', async () => {
    const { url, live, subscriptions } = await serve({ ping: PATIENT }, undefined, true);
    await works(url);
    const client = await connect(url);
    client.send({ type: 'connection_init' });
    await client.next();
    client.send(subscribe('subscription { events(topic: "a") }'));
    await until(() => live.open === 1);
    const sizes = [10, 5000, 70_000, 200_000];
    for (const size of sizes) live.publish('a', 'x'.repeat(size));
    for (const size of sizes) {
      const { data } = (await client.next())['payload'] as { data: { events: string } };
      expect(data.events).toHaveLength(size);
    }
    // Pongs arrive: a live socket is not terminated.
    for (let i = 0; i < 2; i++) await once(client.websocket, 'ping');
    expect(subscriptions.stats()).toMatchObject({ connections: 1, operations: 1 });
  });
});
