// Serves WebSockets of other packages next to attachSubscriptions: one server per package and order of registration.
// Sends the ports to the parent process. Then time passes only when the parent sends a message: on a busy machine another
// package may respond later than after any time. The packages are ES modules or need Node's own module loader.
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { mock } from 'node:test';
import { WsAdapter } from '@nestjs/platform-ws';
import express from 'express';
import expressWs from 'express-ws';
import { buildSchema } from 'graphql';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { Server as SocketServer } from 'socket.io';
import { createServer as createVite } from 'vite';
import { type WebSocket, WebSocketServer } from 'ws';
import { attachSubscriptions } from '../../middleware/subscriptions.ts';
import { registerPath } from '../../src/live/upgrade-router.ts';

const schema = buildSchema('type Query { hello: String }');
/** Milliseconds that other listeners have to respond; without a public option. */
const UNCLAIMED_TIMEOUT = 60;

const echo = (websocket: WebSocket): void => {
  websocket.on('message', (data) => websocket.send(String(data)));
};

async function listen(server: http.Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

const backend = http.createServer();
new WebSocketServer({ server: backend }).on('connection', echo);
const target = `ws://127.0.0.1:${await listen(backend)}`;

/** Each package serves an echo at `/other`, except Vite and socket.io, which have other protocols. */
const neighbours: Record<string, (server: http.Server, app: express.Express) => unknown> = {
  vite: (server) =>
    createVite({
      configFile: false,
      logLevel: 'silent',
      appType: 'custom',
      optimizeDeps: { noDiscovery: true },
      server: { middlewareMode: true, hmr: { server, path: '/other' }, watch: null },
    }),
  'socket.io': (server) =>
    new SocketServer(server).on('connection', (socket) => {
      socket.on('message', (value) => socket.emit('message', value));
    }),
  'express-ws': (server, app) => expressWs(app, server).app.ws('/other', echo),
  '@nestjs/platform-ws': (server) => {
    // Nest listens on the port of the HTTP server, which it names 0.
    new WsAdapter(server).create(0, { path: '/other' }).on('connection', echo);
  },
  'http-proxy-middleware': (server, app) => {
    const proxy = createProxyMiddleware({ target, ws: true, pathFilter: '/other' });
    app.use(proxy);
    server.on('upgrade', proxy.upgrade);
  },
  // Without `proxy.upgrade` the proxy adds its listener when the first request arrives.
  'http-proxy-middleware, added by a request': (_server, app) =>
    app.use(createProxyMiddleware({ target, ws: true, pathFilter: '/other' })),
  attachSubscriptions: (server) => attachSubscriptions(server, schema, { path: '/other' }),
};

const ports: Record<string, number> = {};
for (const [name, add] of Object.entries(neighbours)) {
  for (const order of ['before', 'after']) {
    const app = express();
    const server = http.createServer(app);
    const attach = (): void => {
      registerPath(server, '/unused', (_req, socket) => socket.destroy(), UNCLAIMED_TIMEOUT);
      attachSubscriptions(server, schema);
    };
    if (order === 'after') attach();
    await add(server, app);
    if (order === 'before') attach();
    ports[`${name}, ${order}`] = await listen(server);
  }
}
mock.timers.enable({ apis: ['setTimeout'] });
process.on('message', () => {
  mock.timers.tick(UNCLAIMED_TIMEOUT);
  process.send?.('the time has passed');
});
process.send?.(ports);
