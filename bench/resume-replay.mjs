// Replay over WebSockets: 1 000 clients continue after the same cursor, 1 000 events behind, as after a deployment. With
// `share` they join one group at the end; without it each has a private subscription.
//   node resume-replay.mjs --clients=1000 --events=1000 --rounds=3
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { given } from './lib/arguments.mjs';
import { installEspalier } from './lib/install-espalier.mjs';
import { median } from './lib/median.mjs';

const QUERY = 'subscription { tick { n text } }';

if (process.env.REPLAY_EVENTS !== undefined) await serve(Number(process.env.REPLAY_EVENTS));
else await run(Number(given('clients', 1000)), Number(given('events', 1000)), Number(given('rounds', 3)));

async function serve(count) {
  const { createServer } = await import('node:http');
  const { buildSchema } = await import('graphql');
  const { attachSubscriptions, graphqlHTTP } = await import('espalier');
  const { createPubSub } = await import('espalier/pubsub');
  const events = createPubSub({ history: { length: count, ttl: 3_600_000 } });
  const schema = buildSchema(`
    type Query { one: Int }
    type Subscription { tick: Tick }
    type Tick { n: Int! text: String! }
  `);
  const handler = graphqlHTTP(schema, {
    rootValue: { tick: () => events.subscribe('tick') },
    cursors: { key: 'the secret of the cursors of this bench' },
  });
  schema.getSubscriptionType().getFields().tick.resolve = (event) => event;
  const server = createServer(handler).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const share = process.env.REPLAY_SHARE === 'true' ? () => 'all' : undefined;
  const subscriptions = attachSubscriptions(server, handler, { share });
  const reply = {
    async publish() {
      for (let n = 0; n < count; n++) await events.publish('tick', { n, text: 'an event for each user' });
    },
    cpu: () => process.cpuUsage(),
    stats: () => subscriptions.stats(),
  };
  process.on('message', async (name) => process.send((await reply[name]()) ?? null));
  process.on('disconnect', () => process.exit());
  process.send(server.address().port);
}

async function run(clients, count, rounds) {
  installEspalier();
  for (const share of [true, false]) {
    const child = fork(fileURLToPath(import.meta.url), [], {
      env: { ...process.env, REPLAY_EVENTS: `${count}`, REPLAY_SHARE: `${share}` },
    });
    const ask = async (name) => {
      const answered = once(child, 'message');
      child.send(name);
      return (await answered)[0];
    };
    const [port] = await once(child, 'message');
    const start = await startCursor(port);
    await ask('publish');
    const results = [];
    for (let round = 0; round < rounds; round++) {
      const sockets = await Promise.all(Array.from({ length: clients }, () => open(port)));
      const before = await ask('cpu');
      const began = performance.now();
      await Promise.all(sockets.map((socket) => resume(socket, start, count)));
      const time = performance.now() - began;
      const after = await ask('cpu');
      results.push({ time, cpu: (after.user + after.system - before.user - before.system) / 1000 });
      for (const socket of sockets) socket.terminate();
      for (let open = 1; open > 0; open = (await ask('stats')).connections);
    }
    const [time, cpu] = ['time', 'cpu'].map((name) => median(results.map((result) => result[name])));
    console.log(
      `replay of ${count} events to ${clients} clients, ${share ? 'which join a group' : 'private'}: ${time.toFixed(0)} ms, ` +
        `${cpu.toFixed(0)} ms of server CPU, ${((cpu * 1000) / count / clients).toFixed(2)} µs per event and client`,
    );
    child.disconnect();
    await once(child, 'exit');
  }
}

async function open(port) {
  const { WebSocket } = await import('ws');
  const socket = new WebSocket(`ws://127.0.0.1:${port}/graphql`, 'graphql-transport-ws');
  await once(socket, 'open');
  socket.send('{"type":"connection_init"}');
  await once(socket, 'message');
  return socket;
}

async function startCursor(port) {
  const socket = await open(port);
  subscribe(socket, null);
  const [data] = await once(socket, 'message');
  socket.terminate();
  return JSON.parse(data).payload.extensions.cursor;
}

function subscribe(socket, after) {
  const payload = { query: QUERY, extensions: { after } };
  socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload }));
}

/** Resolves when all events have arrived. Only counts them, so that the clients need little time. */
function resume(socket, after, count) {
  return new Promise((resolve, reject) => {
    let received = 0;
    socket.on('close', (code) => reject(new Error(`closed with ${code} after ${received} events`)));
    socket.on('message', (data) => {
      if (!data.includes('"type":"next"')) reject(new Error(String(data)));
      if (++received === count) {
        socket.removeAllListeners('close');
        resolve();
      }
    });
    subscribe(socket, after);
  });
}
