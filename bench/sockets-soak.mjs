// 2000 sockets with mixed operations and random resets: no message may be lost or reordered under one id, and nothing may leak.
//   node sockets-soak.mjs --seconds=300 --sockets=2000 --connects=10000
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { given } from './lib/arguments.mjs';

const PROTOCOL = 'graphql-transport-ws';
if (process.env.SOAK_ROLE === 'server') await serve();
else
  await soak(
    Number(given('seconds', 300)),
    Number(given('sockets', 2000)),
    Number(given('connects', 10_000)),
  );

async function serve() {
  const { createServer } = await import('node:http');
  const { EventEmitter, on } = await import('node:events');
  const { buildSchema } = await import('graphql');
  const { attachSubscriptions } = await import('espalier/subscriptions');
  const bus = new EventEmitter().setMaxListeners(0);
  const schema = buildSchema(
    'type Query { echo(n: Int!): Int } type Subscription { shared: Int, own(topic: Int!): Int }',
  );
  schema.getQueryType().getFields().echo.resolve = (_, { n }) => n;
  const fields = schema.getSubscriptionType().getFields();
  const source = (topic) => {
    const events = on(bus, topic);
    return {
      next: () => events.next().then(({ done, value }) => ({ done, value: value?.[0] })),
      return: () => events.return(),
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  };
  fields.shared.subscribe = () => source('shared');
  fields.own.subscribe = (_, { topic }) => source(`own ${topic}`);
  for (const field of [fields.shared, fields.own]) field.resolve = (value) => value;
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const subscriptions = attachSubscriptions(server, schema, {
    ping: 5000,
    share: (_, { query }) => (query.includes('shared') ? 'all' : undefined),
  });
  let shared = 0;
  const own = new Array(16).fill(0);
  process.on('message', async ({ ask, ...more }) => {
    if (ask === 'publish') {
      for (let i = 0; i < more.count; i++) bus.emit('shared', ++shared);
      const topic = more.topic % own.length;
      bus.emit(`own ${topic}`, ++own[topic]);
    }
    if (ask === 'state') {
      global.gc();
      const { rss, heapUsed } = process.memoryUsage();
      const handles = process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
      process.send({ rss, heapUsed, handles, shared, own, stats: subscriptions.stats() });
    }
    if (ask === 'close') {
      await subscriptions.close({ drain: 500 });
      server.close();
      process.disconnect();
    }
  });
  process.send({ port: server.address().port });
}

async function soak(seconds, count, connects) {
  const { WebSocket } = await import('ws');
  const server = fork(fileURLToPath(import.meta.url), {
    env: { ...process.env, SOAK_ROLE: 'server' },
    execArgv: ['--expose-gc'],
  });
  const [{ port }] = await once(server, 'message');
  const ask = async (question) => {
    server.send(question);
    return (await once(server, 'message'))[0];
  };
  const totals = { messages: 0, resets: 0, resubscribed: 0, queries: 0, faults: [] };

  /** A client that checks the order of all received events. */
  function open(index) {
    const client = { ids: new Map(), closed: false, accepted: false, ready: undefined };
    const websocket = new WebSocket(`ws://127.0.0.1:${port}/graphql`, PROTOCOL, { perMessageDeflate: false });
    client.websocket = websocket;
    const send = (message) => websocket.readyState === 1 && websocket.send(JSON.stringify(message));
    client.send = send;
    client.subscribe = (id, query) => {
      client.ids.set(id, undefined);
      send({ id, type: 'subscribe', payload: { query } });
    };
    client.ready = new Promise((resolve) => {
      websocket.on('open', () => send({ type: 'connection_init' }));
      websocket.on('message', (data) => {
        const message = JSON.parse(data);
        totals.messages++;
        if (message.type === 'connection_ack') {
          client.accepted = true;
          resolve();
        }
        if (message.type === 'error') totals.faults.push(`error ${JSON.stringify(message)}`);
        if (message.type !== 'next') return;
        if (!client.ids.has(message.id)) return;
        const { shared, own, echo } = message.payload.data;
        if (echo !== undefined) {
          if (message.id !== `q${echo}`) totals.faults.push(`${message.id} got the result of ${echo}`);
          client.ids.delete(message.id);
          return;
        }
        const value = shared ?? own;
        const before = client.ids.get(message.id);
        if (before !== undefined && value !== before + 1)
          totals.faults.push(`${message.id}: ${value} after ${before}`);
        client.ids.set(message.id, value);
      });
      websocket.on('error', () => undefined);
      websocket.on('close', (code) => {
        client.closed = true;
        if (![1000, 1001, 1005, 1006].includes(code)) totals.faults.push(`closed with ${code}`);
        resolve();
      });
    });
    client.index = index;
    return client;
  }

  const settled = async (holds) => {
    for (let i = 0; i < 200; i++) {
      const state = await ask({ ask: 'state' });
      if (holds(state)) return state;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return ask({ ask: 'state' });
  };

  // Warm up, so that one-time costs of the process do not count for the sockets.
  const warm = Array.from({ length: 200 }, (_, index) => open(index));
  await Promise.all(warm.map(({ ready }) => ready));
  for (const client of warm) client.subscribe('shared', 'subscription { shared }');
  await settled(({ stats }) => stats.operations === 200);
  for (const client of warm) client.websocket.terminate();
  const before = await settled(({ stats }) => stats.connections === 0 && stats.groups === 0);

  const clients = Array.from({ length: count }, (_, index) => open(index));
  await Promise.all(clients.map(({ ready }) => ready));
  for (const client of clients) client.subscribe('shared', 'subscription { shared }');
  const idle = await settled(({ stats }) => stats.operations === count);
  const rssPerSocket = (idle.rss - before.rss) / 1024 / count;
  const heapPerSocket = (idle.heapUsed - before.heapUsed) / 1024 / count;
  console.log(
    `idle, subscribed: ${rssPerSocket.toFixed(1)} KiB RSS, ${heapPerSocket.toFixed(1)} KiB heap per socket`,
  );

  const end = Date.now() + seconds * 1000;
  for (let turn = 0; Date.now() < end; turn++) {
    server.send({ ask: 'publish', count: 1 + (turn % 8), topic: turn });
    for (let i = 0; i < 20; i++) {
      const index = Math.floor(Math.random() * count);
      const client = clients[index];
      const dice = Math.random();
      if (!client.accepted) continue;
      if (client.closed || dice < 0.15) {
        totals.resets++;
        if (dice < 0.08) client.websocket.terminate();
        else client.websocket.close();
        client.ids.clear();
        const fresh = open(index);
        clients[index] = fresh;
        fresh.ready.then(() => fresh.subscribe('shared', 'subscription { shared }'));
      } else if (dice < 0.4) {
        // Under the same id, right after its complete.
        const query = `subscription { own(topic: ${index % 16}) }`;
        client.send({ id: 'own', type: 'complete' });
        client.subscribe('own', query);
        totals.resubscribed++;
      } else if (dice < 0.8) {
        const n = Math.floor(Math.random() * 1e6);
        client.ids.set(`q${n}`, undefined);
        client.send({ id: `q${n}`, type: 'subscribe', payload: { query: `{ echo(n: ${n}) }` } });
        totals.queries++;
      } else client.send({ type: 'ping', payload: { turn } });
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }

  // Every client must have the last event, and every query its result.
  await Promise.all(clients.map(({ ready }) => ready));
  await settled(({ stats }) => stats.connections === count);
  server.send({ ask: 'publish', count: 1, topic: 0 });
  await new Promise((resolve) => setTimeout(resolve, 500));
  const last = await ask({ ask: 'state' });
  for (const { ids, closed, index } of clients) {
    if (closed) continue;
    if (ids.get('shared') !== last.shared)
      totals.faults.push(`client ${index} is at ${ids.get('shared')} of ${last.shared}`);
    for (const id of ids.keys()) if (id.startsWith('q')) totals.faults.push(`${id} never got a result`);
  }
  const { messages, resets, resubscribed, queries, faults } = totals;
  console.log(
    `${seconds} s: ${messages} messages, ${resets} resets, ${resubscribed} ids used again, ${queries} queries, ${faults.length} faults`,
  );
  for (const client of clients) client.websocket.terminate();
  const empty = await settled(({ stats }) => stats.connections === 0 && stats.groups === 0);

  for (let i = 0; i < connects; i += 100) {
    const some = Array.from({ length: Math.min(100, connects - i) }, (_, index) => open(index));
    await Promise.all(some.map(({ ready }) => ready));
    for (const client of some) client.subscribe('own', 'subscription { own(topic: 1) }');
    await Promise.all(
      some.map(async ({ websocket }, index) => {
        if (index % 2 === 0) websocket.terminate();
        else websocket.close();
        if (websocket.readyState !== 3) await once(websocket, 'close');
      }),
    );
  }
  const after = await settled(({ stats }) => stats.connections === 0 && stats.sources === 0);
  console.log(
    `${connects} connects and disconnects: ${after.handles} sockets left, heap ${((after.heapUsed - empty.heapUsed) / 1024).toFixed(0)} KiB more, ${JSON.stringify(after.stats)}`,
  );
  const exited = once(server, 'exit');
  server.send({ ask: 'close' });
  const [code] = await exited;
  console.log(`the server's process ended by itself with ${code}`);
  assert.deepEqual(faults.slice(0, 5), []);
  assert.ok(rssPerSocket <= 30, `${rssPerSocket} KiB RSS for each idle subscribed socket`);
  assert.equal(after.handles, 0);
  assert.equal(after.stats.unreleased, 0);
}
