// A server process of bench/capacity.mjs: one package with its defaults, pings included.
import { once } from 'node:events';
import * as http from 'node:http';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createBus, eventOf, TYPES } from './event-bus.mjs';
import { replyToMessages } from './reply.mjs';

const root = new URL('../../', import.meta.url);
/** The packages of the build in dist/, so that there is one graphql. */
const packages = createRequire(root);
const noPage = (_request, response) => response.writeHead(404).end();

function schemaOf(subscribe) {
  const schema = packages('graphql').buildSchema(TYPES);
  schema.getSubscriptionType().getFields().event.subscribe = subscribe;
  return schema;
}

/** Each starts a server that has `kind` subscriptions: private, shared, or shared and with a history. */
const SERVERS = {
  async espalier({ kind, redis }) {
    const entries = ['subscriptions', 'server', 'pubsub'].map((name) => new URL(`dist/${name}.mjs`, root));
    const modules = await Promise.all(entries.map(({ href }) => import(href)));
    const [{ attachSubscriptions }, { createServer }, { createPubSub }] = modules;
    const events = createPubSub({ transport: redis, history: kind === 'history' ? {} : undefined });
    const server = createServer(noPage);
    const schema = schemaOf(() => events.subscribe('event'));
    const share = kind === 'private' ? undefined : () => 'all';
    const { stats } = attachSubscriptions(server, schema, { share });
    await events.ready('event');
    return {
      server,
      publish: (event) => events.publish('event', event),
      sockets: () => stats().connections,
      subscribed: () => stats().operations,
      drain: (timeout) => server.drain({ timeout }),
    };
  },

  async 'graphql-ws'({ redis }) {
    const { WebSocketServer } = packages('ws');
    const { useServer } = packages('graphql-ws/use/ws');
    const bus = createBus();
    const server = http.createServer(noPage);
    const sockets = new WebSocketServer({ server, path: '/graphql' });
    const running = useServer({ schema: schemaOf(bus.subscribe) }, sockets);
    return {
      server,
      publish: redis === undefined ? bus.publish : await throughRedis(redis, bus),
      sockets: () => sockets.clients.size,
      subscribed: bus.subscribers,
      drain: () => running.dispose(),
    };
  },

  /** Without GraphQL: each socket joins a room. */
  'socket.io'({ kind, modules }) {
    const { Server } = createRequire(`${resolve(modules)}/`)('socket.io');
    const server = http.createServer(noPage);
    const io = new Server(server, { transports: ['websocket'] });
    if (kind !== 'idle') io.on('connection', (socket) => socket.join('event'));
    return {
      server,
      publish: (event) => io.to('event').emit('event', event),
      sockets: () => io.engine.clientsCount,
      subscribed: () => io.of('/').adapter.rooms.get('event')?.size ?? 0,
      drain: () => io.close(),
    };
  },
};

/** The least that a server of graphql-ws needs for events of other processes. */
async function throughRedis(url, bus) {
  const { Redis } = packages('ioredis');
  const [publisher, subscriber] = [new Redis(url), new Redis(url)];
  subscriber.on('message', (_channel, text) => bus.publish(JSON.parse(text)));
  await subscriber.subscribe('event');
  return (event) => publisher.publish('event', JSON.stringify(event));
}

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');
const delay = monitorEventLoopDelay({ resolution: 10 });
let running;
let id = 0;

const answers = {
  async start({ name, watches, ...options }) {
    running = await SERVERS[name](options);
    await once(running.server.listen(0, '127.0.0.1'), 'listening');
    if (watches) delay.enable();
    return { port: running.server.address().port };
  },
  count: () => ({ sockets: running.sockets(), subscribed: running.subscribed() }),
  async memory() {
    for (let i = 0; i < 3; i++) {
      collect();
      await sleep(200);
    }
    const { rss, heapUsed } = process.memoryUsage();
    return { rss, heap: heapUsed, peak: process.resourceUsage().maxRSS * 1024 };
  },
  longestBlock: () => ({ milliseconds: delay.max / 1e6 }),
  async publish({ events }) {
    await Promise.all(Array.from({ length: events }, () => running.publish(eventOf(++id))));
    return {};
  },
  drain({ timeout }) {
    Promise.resolve(running.drain(timeout)).catch(console.error);
    return {};
  },
};
replyToMessages((message) => answers[message.ask](message));
