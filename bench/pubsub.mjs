import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createServer as createProbe } from 'node:net';
import { fileURLToPath } from 'node:url';
import { cpuOfProcesses, runTopic } from './harness.mjs';
import { frames, openSockets } from './lib/socket-load.mjs';

const SOCKETS = 500;
const PROCESSES = 2;
const QUERY = 'subscription { event { id name } }';
const worker = fileURLToPath(new URL('fixtures/pubsub-worker.mjs', import.meta.url));

/** Starts a redis-server and two processes that use it. The returned port reports theirs and makes the first publish. */
async function start(kind) {
  const probe = createProbe().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  await once(probe, 'close');
  const redis = spawn('redis-server', ['--port', `${port}`, '--save', '', '--appendonly', 'no']);
  for await (const text of redis.stdout) if (String(text).includes('Ready to accept')) break;
  const workers = Array.from({ length: PROCESSES }, () => fork(worker, [kind, `redis://127.0.0.1:${port}`]));
  const ports = await Promise.all(workers.map(async (child) => (await once(child, 'message'))[0]));
  const control = createServer((req, res) => {
    const events = new URL(req.url, 'http://x').searchParams.get('events');
    if (events !== null) workers[0].send(Number(events));
    res.end(JSON.stringify(ports));
  });
  control.listen(0, '127.0.0.1');
  await once(control, 'listening');
  return {
    port: control.address().port,
    cpu: () => cpuOfProcesses(workers.map(({ pid }) => pid)),
    close: async () => {
      for (const child of [...workers, redis]) child.kill('SIGKILL');
      await Promise.all(
        [...workers, redis].map((child) => child.exitCode ?? child.signalCode ?? once(child, 'exit')),
      );
    },
  };
}

/** Counts events that arrive out of order on one socket, by their consecutive ids. */
function watchOrder(socket, wrong) {
  let expected;
  let rest = '';
  socket.on('data', (chunk) => {
    const text = rest + chunk.toString('latin1');
    const whole = text.lastIndexOf('}') + 1;
    rest = text.slice(whole);
    for (const [, found] of text.slice(0, whole).matchAll(/"event":\{"id":(\d+)/g)) {
      if (expected !== undefined && Number(found) !== expected) wrong.count++;
      expected = Number(found) + 1;
    }
  });
}

const fleets = new Map();

/**
 * Subscribes once, half of the sockets at each process. Publishes `burst` events at a time in one process, and waits for
 * them in both.
 */
const drive =
  (burst) =>
  async ({ port, count }) => {
    const ask = async (query = '') => (await fetch(`http://127.0.0.1:${port}/${query}`)).json();
    let parts = fleets.get(port);
    if (parts === undefined) {
      const protocol = 'graphql-transport-ws';
      const wrong = { count: 0 };
      parts = await Promise.all(
        (await ask()).map((each) => openSockets(each, SOCKETS, { protocol, query: QUERY })),
      );
      for (const { sockets } of parts) for (const socket of sockets) watchOrder(socket, wrong);
      parts.wrong = wrong;
      fleets.set(port, parts);
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
    const bursts = Math.max(1, Math.round(count / SOCKETS / PROCESSES / burst));
    const began = performance.now();
    for (let index = 0; index < bursts; index++) {
      const all = Promise.all(parts.map((fleet) => frames(fleet, burst * SOCKETS)));
      await ask(`?events=${burst}`);
      await all;
    }
    const seconds = (performance.now() - began) / 1000;
    const events = bursts * burst;
    const operations = events * SOCKETS * PROCESSES;
    return { operations, events, perSecond: operations / seconds, outOfOrder: parts.wrong.count };
  };

const columns = ['events', 'outOfOrder'];

export const topic = {
  name: 'pubsub',
  title: 'Subscriptions: two processes, one Redis',
  about:
    'Two processes with 500 sockets each. One publishes through Redis, 50 or 1 000 events at a time. A message is one event at one ' +
    'socket. The CPU time is that of both processes.',
  packages: [
    'graphql',
    'ws',
    'ioredis',
    'graphql-ws',
    '@graphql-yoga/redis-event-target',
    'graphql-redis-subscriptions',
  ],
  ratios: ['espalier/pubsub, shared'],
  contestants: {
    'espalier/pubsub, shared': () => start('espalier-shared'),
    'espalier/pubsub, private': () => start('espalier-private'),
    'graphql-ws, yoga redis-event-target': () => start('yoga'),
    'graphql-ws, graphql-redis-subscriptions': () => start('subscriptions'),
  },
  loads: [
    {
      name: '50 events',
      drive: drive(50),
      count: 500_000,
      least: 50_000,
      warmup: 500_000,
      unit: 'message',
      columns,
    },
    {
      name: '1 000 events',
      drive: drive(1_000),
      count: 1_000_000,
      least: 1_000_000,
      warmup: 1_000_000,
      unit: 'message',
      columns,
      contestants: ['espalier/pubsub, shared'],
    },
  ],
};

await runTopic(import.meta.url, topic);
