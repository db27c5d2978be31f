/** @tags node-lines graphql */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import { createRequire } from 'node:module';
import type net from 'node:net';
import { resolve } from 'node:path';
import type { Duplex } from 'node:stream';
import { buildSchema } from 'graphql';
import WebSocket, { WebSocketServer } from 'ws';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { registerPath } from '../../src/live/upgrade-router.ts';
import { handshake, listen, ready, wrap } from './client.ts';
import { serve, until } from './serve.ts';
import { upgradeRequest, wire } from './wire.ts';

const untyped = createRequire(__filename);
const schema = buildSchema('type Query { hello: String }');
const TIMEOUT = 60;

/** Adds a listener that serves the WebSocket at `/other`; the function that it returns stops it. */
type Neighbour = (server: http.Server) => Promise<() => Promise<unknown> | unknown>;

/** `ws` for one path, synchronously. */
const wsServer: Neighbour = async (server) => {
  const sockets = new WebSocketServer({ noServer: true });
  const listener = (req: http.IncomingMessage, socket: Duplex, head: Buffer): void => {
    if (req.url === '/other')
      sockets.handleUpgrade(req, socket, head, (ws) => ws.on('message', () => ws.send('1')));
  };
  server.on('upgrade', listener);
  return () => server.off('upgrade', listener);
};

/** A proxy such as http-proxy-middleware: it connects to a backend and then pipes. */
const proxy: Neighbour = async (server) => {
  const backend = http.createServer();
  new WebSocketServer({ server: backend }).on('connection', (ws) => ws.on('message', () => ws.send('1')));
  backend.listen(0, '127.0.0.1');
  await once(backend, 'listening');
  const { port } = backend.address() as net.AddressInfo;
  const listener = (req: http.IncomingMessage, socket: Duplex): void => {
    if (req.url !== '/other') return;
    const request = http.request({ port, host: '127.0.0.1', path: '/', headers: req.headers });
    request.on('upgrade', (res, upstream) => {
      const lines = Object.entries(res.headers).map(([name, value]) => `${name}: ${value}`);
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`);
      upstream.pipe(socket).pipe(upstream);
      upstream.on('error', () => undefined);
    });
    request.end();
  };
  server.on('upgrade', listener);
  return () => {
    server.off('upgrade', listener);
    backend.close();
    backend.closeAllConnections();
  };
};

const neighbours: [string, Neighbour][] = [
  ['a WebSocketServer', wsServer],
  ['a proxy', proxy],
];

const orders = neighbours.flatMap(([name, add]) => [
  [name, 'before', add] as const,
  [name, 'after', add] as const,
]);

describe('other upgrade listeners', () => {
  it.each(orders)(
    'the WebSocket of %s that was added %s attachSubscriptions stays open',
    async (_, order, add) => {
      const { server, port } = await listen();
      let remove: () => unknown = () => undefined;
      if (order === 'before') remove = await add(server);
      // The same router as of `attachSubscriptions`, with a shorter time to wait for other listeners.
      const release = registerPath(server, '/graphql', (_req, socket) => socket.destroy(), TIMEOUT);
      if (order === 'after') remove = await add(server);
      const client = wrap(new WebSocket(`ws://127.0.0.1:${port}/other`, 'vite-hmr'));
      await once(client.websocket, 'open');
      // An upgrade that no listener claims, and that begins later: its 404 proves that the time has elapsed.
      expect(await handshake(port, '/unclaimed')).toMatchObject({ status: 404 });
      expect(client.websocket.readyState).toBe(WebSocket.OPEN);
      client.websocket.send('2');
      client.websocket.ping();
      await once(client.websocket, 'pong');
      await client.close();
      release();
      await remove();
      server.close();
      server.closeAllConnections();
    },
  );

  it.each(['before', 'after'])(
    'the WebSocket of Vite that was added %s attachSubscriptions stays open',
    async (order) => {
      const script = resolve(__dirname, '../fixtures/vite-upgrades.mts');
      const child = fork(script, [order], { execArgv: ['--import', 'tsx'] });
      try {
        const [port] = await once(child, 'message');
        // Vite requires no token of clients without an Origin.
        const client = wrap(new WebSocket(`ws://127.0.0.1:${port}/other`, 'vite-hmr'));
        await once(client.websocket, 'open');
        expect(await handshake(port as number, '/unclaimed')).toMatchObject({ status: 404 });
        client.websocket.ping();
        await once(client.websocket, 'pong');
        await client.close();
      } finally {
        child.kill();
      }
    },
    20_000,
  );

  it('a socket that another listener reads and has not written to stays open', async () => {
    const { server, port } = await listen();
    const seen: string[] = [];
    server.on('upgrade', (req, socket) => {
      if (req.url === '/graphql/quiet') socket.on('data', (data) => seen.push(String(data)));
    });
    const release = registerPath(server, '/graphql', (_req, socket) => socket.destroy(), TIMEOUT);
    const client = await wire(port, false, upgradeRequest().replace('/graphql', '/graphql/quiet'));
    expect((await handshake(port, '/unclaimed')).status).toBe(404);
    client.socket.write('later');
    await until(() => seen.join('') === 'later');
    expect(client.socket.destroyed).toBe(false);
    client.socket.destroy();
    release();
    server.close();
  });

  it('a keep-alive connection that has had responses gets 404 for an unclaimed upgrade', async () => {
    const { server, port } = await listen((_req, res) => res.end('first'));
    server.on('upgrade', () => undefined);
    const release = registerPath(server, '/graphql', (_req, socket) => socket.destroy(), TIMEOUT);
    const client = await wire(port, false, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    await client.until('first');
    client.socket.write(upgradeRequest().replace('/graphql', '/unclaimed'));
    await client.until('HTTP/1.1 404 Not Found');
    release();
    server.close();
  });

  it.each(['before', 'after'])(
    'attachSubscriptions ignores an upgrade of its path that express-ws, added %s it, has accepted',
    async (order) => {
      const express = untyped('express');
      const app = express();
      const server = http.createServer(app).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as net.AddressInfo;
      let subscriptions = order === 'after' ? attachSubscriptions(server, schema) : undefined;
      untyped('express-ws')(app, server);
      app.ws('/graphql', (ws: WebSocket) => ws.send('"express-ws"'));
      subscriptions ??= attachSubscriptions(server, schema);
      const client = wrap(new WebSocket(`ws://127.0.0.1:${port}/graphql`, 'graphql-transport-ws'));
      expect(await client.next()).toBe('express-ws');
      await client.close();
      await subscriptions.close();
      server.close();
      server.closeAllConnections();
    },
  );

  it('a second attachSubscriptions serves its path next to a listener for every other path', async () => {
    const { server, url, port } = await serve();
    const second = attachSubscriptions(server, schema, { path: '/second' });
    const remove = await wsServer(server);
    await (await ready(url)).close();
    await (await ready(`ws://127.0.0.1:${port}/second`)).close();
    await remove();
    await second.close();
  });

  it('the router stays registered once when a listener is replaced', async () => {
    const { server } = await serve();
    const before = server.listeners('upgrade');
    const first = (): void => undefined;
    server.prependListener('upgrade', first);
    await Promise.resolve();
    expect(server.listeners('upgrade')).toEqual([...before, first]);
    server.removeAllListeners('upgrade');
    server.on('upgrade', first);
    await Promise.resolve();
    expect(server.listeners('upgrade')).toEqual([first]);
  });

  it('the routers of two copies of the package serve one server, before all other listeners', async () => {
    const { server, url, port } = await serve();
    const [ours] = server.listeners('upgrade');
    let second: ReturnType<typeof attachSubscriptions> | undefined;
    jest.isolateModules(() => {
      // The CommonJS and the ES build in one process.
      const copy = untyped(
        '../../middleware/subscriptions.ts',
      ) as typeof import('../../middleware/subscriptions.ts');
      second = copy.attachSubscriptions(server, untyped('graphql').buildSchema('type Query { a: Int }'), {
        path: '/second',
      });
    });
    const first = (): void => undefined;
    server.prependListener('upgrade', first);
    await new Promise((resolve) => setImmediate(resolve));
    expect(server.listeners('upgrade')).toEqual([expect.any(Function), expect.any(Function), first]);
    expect(server.listeners('upgrade')).toContain(ours);
    await (await ready(url)).close();
    await (await ready(`ws://127.0.0.1:${port}/second`)).close();
    await second?.close();
  });

  it('a listener that replaces all listeners and calls them itself may accept other paths', async () => {
    const { server, url, port } = await serve();
    const remove = await wsServer(server);
    const listeners = server.listeners('upgrade');
    server.removeAllListeners('upgrade');
    server.on('upgrade', (...args) => {
      for (const listener of listeners) Reflect.apply(listener, server, args);
    });
    const client = wrap(new WebSocket(`ws://127.0.0.1:${port}/other`));
    await once(client.websocket, 'open');
    client.send('hello');
    expect(await client.next()).toBe(1);
    await client.close();
    await (await ready(url)).close();
    await remove();
  });
});

describe('an upgrade that is pipelined behind a request without response', () => {
  it('a pipelined upgrade after a request without response is destroyed, and no byte of it is mixed with the response', async () => {
    const pending: http.ServerResponse[] = [];
    const { port } = await serve({}, (_req, res) => void pending.push(res));
    const client = await wire(port, false, `GET / HTTP/1.1\r\nHost: x\r\n\r\n${upgradeRequest()}`);
    const seen = await client.over();
    expect(pending).toHaveLength(1);
    pending[0]?.end('late');
    expect(seen.toString('latin1')).toBe('');
  });
});
