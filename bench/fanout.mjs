import { runTopic } from './harness.mjs';
import { createBus, eventOf, QUERY, TYPES } from './lib/event-bus.mjs';
import { frames, openSockets } from './lib/socket-load.mjs';

const SOCKETS = 1000;
/** About 1.7 KiB of JSON like that of most APIs: repeated names, different values. */
function largeEventOf(id) {
  const items = Array.from({ length: 18 }, (_, index) => ({
    id: id * 100 + index,
    title: `Item ${(id * 7919 + index * 104729) % 100_003}`,
    price: ((id * 31 + index * 17) % 9973) / 100,
    inStock: (id + index) % 3 === 0,
  }));
  return { event: { id, name: JSON.stringify(items), value: id / 7 } };
}

/** `/publish?events=8` publishes synchronously; `/memory` reports the memory of the process. */
function controls(publish, connections = () => 0) {
  let id = 0;
  return (req, res) => {
    if (req.url === '/connections') return res.end(String(connections()));
    if (req.url === '/blob') {
      publish({ event: { id: ++id, name: 'x'.repeat(65_536 - (id % 2)), value: 0 } });
      return res.end();
    }
    if (req.url.startsWith('/publish')) {
      const { searchParams } = new URL(req.url, 'http://x');
      const create = searchParams.has('large') ? largeEventOf : eventOf;
      for (let i = 0; i < Number(searchParams.get('events')); i++) publish(create(++id));
      res.end();
    } else {
      global.gc?.();
      res.end(String(process.memoryUsage.rss()));
    }
  };
}

async function graphqlSchema(bus) {
  const { buildSchema } = await import('graphql');
  const schema = buildSchema(TYPES);
  schema.getSubscriptionType().getFields().event.subscribe = () => bus.subscribe();
  return schema;
}

/** Without pings, like all servers here: the load generator sends no pong. */
async function espalier(options) {
  const { createServer } = await import('node:http');
  const { attachSubscriptions } = await import('espalier/subscriptions');
  const bus = createBus();
  const server = createServer(controls(bus.publish, () => subscriptions.stats().connections));
  const subscriptions = attachSubscriptions(server, await graphqlSchema(bus), { ping: false, ...options });
  return server;
}

async function rawWs(perMessageDeflate) {
  const { createServer } = await import('node:http');
  const { WebSocketServer } = await import('ws');
  const clients = new Set();
  const server = createServer(
    controls((event) => {
      const text = JSON.stringify({ id: '0'.repeat(36), type: 'next', payload: { data: event } });
      for (const client of clients) client.send(text);
    }),
  );
  new WebSocketServer({ server, path: '/graphql', perMessageDeflate }).on('connection', (socket) => {
    socket.on('message', (data) => {
      if (String(data).includes('connection_init')) socket.send('{"type":"connection_ack"}');
      else clients.add(socket);
    });
  });
  return server;
}

const contestants = {
  'raw ws': () => rawWs(false),
  'raw ws, deflate': () => rawWs({ serverNoContextTakeover: true, clientNoContextTakeover: true }),
  'espalier, shared': () => espalier({ share: () => 'all' }),
  'espalier, shared, deflate': () => espalier({ share: () => 'all', perMessageDeflate: 'shared' }),
  'espalier, private': () => espalier({}),
  'graphql-ws': async () => {
    const { createServer } = await import('node:http');
    const { WebSocketServer } = await import('ws');
    const { useServer } = await import('graphql-ws/use/ws');
    const bus = createBus();
    const server = createServer(controls(bus.publish, () => sockets.clients.size));
    const sockets = new WebSocketServer({ server, path: '/graphql' });
    useServer({ schema: await graphqlSchema(bus) }, sockets, 0);
    return server;
  },
  mercurius: async () => {
    const { default: fastify } = await import('fastify');
    const { default: mercurius } = await import('mercurius');
    const bus = createBus();
    const control = controls(bus.publish);
    const app = fastify();
    app.register(mercurius, {
      schema: TYPES,
      resolvers: { Subscription: { event: { subscribe: () => bus.subscribe() } } },
      subscription: true,
    });
    for (const path of ['/publish', '/memory']) {
      app.get(path, (request, reply) => {
        reply.hijack();
        control(request.raw, reply.raw);
      });
    }
    await app.listen({ port: 0, host: '127.0.0.1' });
    return app.server;
  },
  'subscriptions-transport-ws': async () => {
    const { createServer } = await import('node:http');
    const { SubscriptionServer } = (await import('subscriptions-transport-ws')).default;
    const { execute, subscribe } = await import('graphql');
    const bus = createBus();
    const server = createServer(controls(bus.publish));
    SubscriptionServer.create(
      { schema: await graphqlSchema(bus), execute, subscribe },
      { server, path: '/graphql' },
    );
    return server;
  },
};

const fleets = new Map();

async function rss(port) {
  return Number(await get(port, '/memory'));
}

const get = async (port, path) => (await fetch(`http://127.0.0.1:${port}${path}`)).text();

/** 200 readers that stop reading, and events of 64 KiB every 5 ms. */
async function stalled({ port, warming }) {
  if (warming) return { operations: 1 };
  const fleet = await openSockets(port, 200, { protocol: 'graphql-transport-ws', query: QUERY });
  await new Promise((resolve) => setTimeout(resolve, 300));
  // The cost of large events for clients that read is measured first, and subtracted.
  for (let i = 0; i < 40; i++) {
    const all = frames(fleet, fleet.sockets.length);
    await get(port, '/blob');
    await all;
  }
  for (const socket of fleet.sockets) socket.on('error', () => undefined).pause();
  const before = await rss(port);
  let most = before;
  const events = 200;
  for (let i = 0; i < events; i++) {
    await get(port, '/blob');
    await new Promise((resolve) => setTimeout(resolve, 5));
    if (i % 10 === 0) most = Math.max(most, await rss(port));
  }
  await new Promise((resolve) => setTimeout(resolve, 9000));
  const left = Number(await get(port, '/connections'));
  for (const socket of fleet.sockets) socket.destroy();
  return { operations: events + 40, rssGrowthMiB: (most - before) / 2 ** 20, readersLeft: left };
}

const bytesOf = ({ sockets }) => sockets.reduce((sum, { bytesRead }) => sum + bytesRead, 0);

/** Subscribes once per server, then publishes and counts until all have arrived. */
function drive(burst, operations = 1, size = '') {
  return async ({ port, count, contestant }) => {
    let fleet = fleets.get(port);
    if (fleet === undefined) {
      const before = await rss(port);
      const protocol = contestant === 'subscriptions-transport-ws' ? 'graphql-ws' : 'graphql-transport-ws';
      fleet = await openSockets(port, SOCKETS, {
        protocol,
        query: QUERY,
        operations,
        deflates: contestant.includes('deflate'),
      });
      fleets.set(port, fleet);
      await new Promise((resolve) => setTimeout(resolve, 300));
      fleet.rssKiBPerSocket = ((await rss(port)) - before) / 1024 / SOCKETS;
    }
    const perBurst = SOCKETS * burst * (contestant.startsWith('raw ws') ? 1 : operations);
    const received = bytesOf(fleet);
    const bursts = Math.max(1, Math.round(count / perBurst));
    for (let i = 0; i < bursts; i++) {
      const all = frames(fleet, perBurst);
      await (await fetch(`http://127.0.0.1:${port}/publish?events=${burst}${size}`)).arrayBuffer();
      await all;
    }
    const operationsDone = bursts * perBurst;
    const bytes = (bytesOf(fleet) - received) / operationsDone;
    return { operations: operationsDone, rssKiBPerSocket: fleet.rssKiBPerSocket, bytes };
  };
}

/** Contestants for events that are too small to be compressed. */
const PLAIN = Object.keys(contestants).filter((name) => !name.includes('deflate'));

export const topic = {
  name: 'fanout',
  title: 'Subscriptions: one event, a thousand sockets',
  about:
    '1000 sockets with one subscription each and different operation ids. An event has three fields, and its frame about ' +
    '150 bytes. "raw ws" is a loop over `ws.send` of a prepared string, without protocol or execution. Memory is the ' +
    'growth of the server per idle subscribed socket.',
  packages: ['graphql', 'ws', 'graphql-ws', 'mercurius', 'subscriptions-transport-ws'],
  ratios: ['raw ws'],
  contestants,
  loads: [
    {
      name: 'bursts of 8 events',
      drive: drive(8),
      count: 160_000,
      warmup: 40_000,
      unit: 'message',
      columns: ['rssKiBPerSocket'],
      contestants: PLAIN,
    },
    {
      name: 'one event at a time',
      drive: drive(1),
      count: 100_000,
      warmup: 50_000,
      unit: 'message',
      columns: ['rssKiBPerSocket'],
      contestants: PLAIN,
    },
    {
      name: 'one event of 1.7 KiB at a time',
      drive: drive(1, 1, '&large'),
      count: 60_000,
      warmup: 30_000,
      unit: 'message',
      columns: ['rssKiBPerSocket', 'bytes'],
      contestants: ['raw ws', 'raw ws, deflate', 'espalier, shared', 'espalier, shared, deflate'],
    },
    {
      name: 'bursts of 8 events, two subscriptions on each socket',
      drive: drive(8, 2),
      count: 160_000,
      warmup: 40_000,
      unit: 'message',
      contestants: ['raw ws', 'espalier, shared', 'graphql-ws'],
    },
    {
      name: '200 stalled readers, events of 64 KiB',
      drive: stalled,
      fresh: true,
      unit: 'event',
      ratios: [],
      columns: ['rssGrowthMiB', 'readersLeft'],
      contestants: ['espalier, shared', 'espalier, private', 'graphql-ws'],
    },
  ],
};

await runTopic(import.meta.url, topic);
