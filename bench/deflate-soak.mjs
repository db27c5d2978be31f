// Compressed events for clients of which some stop reading for a while and some leave: no event may be lost, and nothing may leak.
//   node deflate-soak.mjs --seconds=240 --sockets=300
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { given } from './lib/arguments.mjs';

/** Clients that never read an event. */
const STALLED = 20;

if (process.env.SOAK_ROLE === 'server') await serve();
else await soak(Number(given('seconds', 240)), Number(given('sockets', 300)));

async function serve() {
  const { createServer } = await import('node:http');
  const [v8, zlib] = await Promise.all([import('node:v8'), import('node:zlib')]);
  const { buildSchema } = await import('graphql');
  const { attachSubscriptions } = await import('espalier');
  const { createPubSub } = await import('espalier/pubsub');
  const events = createPubSub();
  const schema = buildSchema('type Query { ok: Int } type Subscription { news: String }');
  schema.getSubscriptionType().getFields().news.subscribe = () => events.subscribe('news');
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const subscriptions = attachSubscriptions(server, schema, {
    // Clients that read nothing are closed by the limit of their queue, not because they do not answer.
    ping: false,
    share: () => 'all',
    perMessageDeflate: 'shared',
    limits: { bufferedBytes: '64kb' },
  });
  const open = (type) => v8.queryObjects(type, { format: 'count' });
  process.on('message', (question) => {
    if (question.news !== undefined) return void events.publish('news', question);
    if (!question.measure) return void process.send(subscriptions.stats());
    for (let i = 0; i < 4; i++) global.gc();
    const { rss, heapUsed, external } = process.memoryUsage();
    const fds = readdirSync('/proc/self/fd').length;
    const zlibs = open(zlib.InflateRaw) + open(zlib.DeflateRaw);
    process.send({ rss, heapUsed, external, fds, zlibs });
  });
  process.send({ port: server.address().port });
}

async function soak(seconds, count) {
  const { WebSocket } = await import('ws');
  const server = fork(fileURLToPath(import.meta.url), {
    env: { ...process.env, SOAK_ROLE: 'server' },
    execArgv: ['--expose-gc'],
  });
  const [{ port }] = await once(server, 'message');
  const totals = { events: 0, pauses: 0, returns: 0, faults: [] };

  /** Checks the order of all events that it gets, and compresses what it sends, like a browser. */
  function open() {
    const websocket = new WebSocket(`ws://127.0.0.1:${port}/graphql`, 'graphql-transport-ws', {
      perMessageDeflate: { threshold: 0 },
    });
    const client = { websocket, last: undefined, isClosed: false };
    const send = (message) => websocket.send(JSON.stringify(message));
    websocket.on('open', () => send({ type: 'connection_init' }));
    websocket.on('message', (data) => {
      const { type, payload } = JSON.parse(data);
      if (type === 'connection_ack')
        send({ id: '1', type: 'subscribe', payload: { query: 'subscription { news }' } });
      if (type !== 'next') return;
      const number = Number(payload.data.news.slice(0, 9));
      if (client.last !== undefined && number !== client.last + 1)
        totals.faults.push(`${number} after ${client.last}`);
      client.last = number;
      totals.events++;
    });
    websocket.on('error', () => undefined);
    websocket.on('close', () => {
      client.isClosed = true;
    });
    return client;
  }

  const ask = async (question) => {
    server.send(question);
    return (await once(server, 'message'))[0];
  };
  const until = async (holds) => {
    while (!holds(await ask({}))) await sleep(100);
  };
  const fleet = async () => {
    const clients = [];
    while (clients.length < count) {
      clients.push(open());
      if (clients.length % 50 === 0 || clients.length === count) {
        await until(({ operations }) => operations === clients.length);
      }
    }
    return clients;
  };
  const leave = async (clients) => {
    for (const { websocket } of clients) websocket.terminate();
    await until(({ connections, groups }) => connections === 0 && groups === 0);
  };
  const measure = async (title) => {
    const figures = await ask({ measure: true });
    const [rss, heap, external] = ['rss', 'heapUsed', 'external'].map((name) =>
      (figures[name] / 1024 / 1024).toFixed(1),
    );
    console.log(
      `${title}: RSS ${rss} MiB, heap ${heap} MiB, external ${external} MiB, ${figures.fds} fds, ${figures.zlibs} zlib`,
    );
    return figures;
  };

  // Without one-time costs.
  await leave(await fleet());
  const before = await measure('before');
  const clients = await fleet();
  await measure(`${count} sockets`);
  for (const { websocket } of clients.slice(0, STALLED)) websocket.pause();
  const end = Date.now() + seconds * 1000;

  for (let number = 1; Date.now() < end; number++) {
    server.send({ news: `${String(number).padStart(9, '0')} ${randomBytes(1050).toString('base64')}` });
    const index = STALLED + Math.floor(Math.random() * (count - STALLED));
    const client = clients[index];
    if (client.isClosed || (number % 5 === 0 && Math.random() < 0.5)) {
      client.websocket.terminate();
      clients[index] = open();
      totals.returns++;
    } else if (
      number % 3 === 0 &&
      client.websocket.readyState === WebSocket.OPEN &&
      !client.websocket.isPaused
    ) {
      client.websocket.pause();
      setTimeout(() => client.websocket.resume(), Math.random() * 5000).unref();
      totals.pauses++;
    }
    await sleep(40);
    if (number % 1000 === 0) await measure(`after ${number} events`);
  }
  const { connections } = await ask({});
  await leave(clients);
  const after = await measure('after');
  const { events, pauses, returns, faults } = totals;
  console.log(
    `${events} events received, ${pauses} pauses, ${returns} returns, ${connections} sockets open at the end (${STALLED} of ${count} stalled), ${faults.length} faults`,
  );
  server.kill();
  assert.deepEqual(faults.slice(0, 5), []);
  assert.ok(connections <= count - STALLED, 'a client that reads nothing is still connected');
  assert.equal(after.zlibs, before.zlibs);
  assert.ok(after.fds <= before.fds + 1, `${after.fds - before.fds} descriptors more`);
  assert.ok(
    after.heapUsed - before.heapUsed < 2 * 1024 * 1024,
    `${after.heapUsed - before.heapUsed} bytes of heap more`,
  );
}
