/** @tags once */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import WebSocket from 'ws';
import { handshake, MODERN, ready, wrap } from '../live/client.ts';

/** A client of the package that sends a message and gets it back. */
interface Dialogue {
  readonly path: string;
  readonly protocol?: string;
  /** Messages of the client with the start of the response to each. */
  readonly exchanges: readonly (readonly [message: string, response: string])[];
  /** The result of an operation at `/graphql` of the same server. */
  readonly graphql: 'served' | 'closed';
}

const echo: Dialogue = { path: '/other', exchanges: [['hello', 'hello']], graphql: 'served' };
const packages: Record<string, Dialogue> = {
  vite: {
    path: '/other',
    protocol: 'vite-hmr',
    exchanges: [['{"type":"ping"}', '{"type":"connected"}']],
    graphql: 'served',
  },
  'socket.io': {
    path: '/socket.io/?EIO=4&transport=websocket',
    exchanges: [
      ['', '0{"sid"'],
      ['40', '40{"sid"'],
      ['42["message","hello"]', '42["message","hello"]'],
    ],
    graphql: 'served',
  },
  // Both respond to every path, as docs/subscriptions.md says.
  'express-ws': { ...echo, graphql: 'closed' },
  '@nestjs/platform-ws': { ...echo, graphql: 'closed' },
  'http-proxy-middleware': echo,
  'http-proxy-middleware, added by a request': echo,
  attachSubscriptions: {
    path: '/other',
    protocol: MODERN,
    exchanges: [
      ['{"type":"connection_init"}', '{"type":"connection_ack"}'],
      ['{"type":"ping"}', '{"type":"pong"}'],
    ],
    graphql: 'served',
  },
};

const cases = Object.entries(packages).flatMap(([name, dialogue]) =>
  (['before', 'after'] as const).map((order) => [name, order, dialogue] as const),
);

describe('the WebSockets of other packages on the same server', () => {
  let child: ChildProcess;
  let ports: Record<string, number>;
  beforeAll(async () => {
    child = fork(join(__dirname, 'upgrade-servers.mts'), { execArgv: ['--import', 'tsx'] });
    [ports] = (await once(child, 'message')) as [Record<string, number>];
  }, 60_000);
  afterAll(() => {
    child.kill();
  });

  /** Lets the time pass after which attachSubscriptions sends 404 to unclaimed upgrades. */
  async function passTime(): Promise<void> {
    child.send('pass');
    await once(child, 'message');
  }

  it.each(cases)(
    'a quiet WebSocket of %s, added %s attachSubscriptions, stays open',
    async (name, order, { path, protocol, exchanges, graphql }) => {
      const port = ports[`${name}, ${order}`] as number;
      // Starts what a proxy does at its first request.
      await (await fetch(`http://127.0.0.1:${port}/`)).arrayBuffer();
      const websocket = new WebSocket(`ws://127.0.0.1:${port}${path}`, protocol);
      const received: string[] = [];
      websocket.on('message', (data) => received.push(String(data)));
      await once(websocket, 'open');
      await passTime();
      for (const [message, response] of exchanges) {
        if (message !== '') websocket.send(message);
        while (!received.some((text) => text.startsWith(response))) await once(websocket, 'message');
      }
      expect(websocket.readyState).toBe(WebSocket.OPEN);
      websocket.close();
      await once(websocket, 'close');
      const own = wrap(new WebSocket(`ws://127.0.0.1:${port}/graphql`, MODERN));
      if (graphql === 'closed') await own.closed;
      else {
        await once(own.websocket, 'open');
        await own.close();
        const client = await ready(`ws://127.0.0.1:${port}/graphql`);
        client.send({ id: '1', type: 'subscribe', payload: { query: '{ hello }' } });
        expect(await client.next()).toMatchObject({ payload: { data: { hello: null } } });
        await client.close();
      }
    },
  );

  it.each(['vite', 'http-proxy-middleware', 'attachSubscriptions'])(
    'an upgrade that neither %s nor attachSubscriptions accepts gets 404',
    async (name) => {
      for (const order of ['before', 'after']) {
        let hasArrived = false;
        const response = handshake(ports[`${name}, ${order}`] as number, '/unclaimed').finally(() => {
          hasArrived = true;
        });
        while (!hasArrived) await passTime();
        expect(await response).toMatchObject({ status: 404 });
      }
    },
  );
});
