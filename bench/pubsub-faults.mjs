// 600 graphql-ws clients at two processes, while Redis and the connections to it fail at random. No event may be missing
// between two events of one subscription, every client must receive events again after each fault, and nothing may leak.
// With --history=1 clients resume after the cursor of their last event: then no event may be missing between two
// subscriptions either, unless the client received EVENTS_MISSED.
//   node pubsub-faults.mjs --minutes=15 --sockets=600 --seed=1 --history=1
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { given } from './lib/arguments.mjs';
import { installEspalier } from './lib/install-espalier.mjs';
import { createFaults, startProxy, startServer } from './lib/redis-faults.mjs';

if (process.env.FAULTS_ROLE === 'server') await serve();
else
  await run(
    Number(given('minutes', 15)),
    Number(given('sockets', 600)),
    given('seed', Date.now() % 1e6),
    Number(given('history', 0)) > 0,
  );

/** One process: publishes consecutive numbers, each after the result of the one before, and streams those of all processes. */
async function serve() {
  const { createServer } = await import('node:http');
  const { buildSchema } = await import('graphql');
  const { attachSubscriptions, graphqlHTTP } = await import('espalier');
  const { createPubSub, redis } = await import('espalier/pubsub');
  const events = createPubSub({
    transport: redis(process.env.FAULTS_REDIS, { heartbeat: 500, commandTimeout: 500 }),
    onError: false,
    ...(process.env.FAULTS_HISTORY === 'true' && { history: { length: 5000 } }),
  });
  const schema = buildSchema(`
    type Query { one: Int }
    type Subscription { tick(private: Boolean, after: String): Tick }
    type Tick { from: Int! n: Int! cursor: String }
  `);
  const { tick } = schema.getSubscriptionType().getFields();
  tick.subscribe = (_, { after }) => withCursors(events.subscribe('tick', { after: after ?? undefined }));
  tick.resolve = (event) => event;
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const subscriptions = attachSubscriptions(server, graphqlHTTP(schema, { onError: false }), {
    share: (_, { variables }) => (variables?.private ? undefined : 'all'),
  });
  function withCursors(stream) {
    return {
      async next() {
        const { done, value, cursor } = await stream.next();
        return { done, value: done ? undefined : { ...value, cursor } };
      },
      return: () => stream.return(),
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  const from = Number(process.env.FAULTS_PROCESS);
  const rejected = [];
  let published = 0;
  let publishing = true;
  const publisher = (async () => {
    for (let n = 1; publishing; n++) {
      await events.publish('tick', { from, n }).then(
        () => published++,
        () => rejected.push(n),
      );
      await sleep(Math.random() * 100);
    }
  })();

  const reply = {
    state() {
      global.gc();
      const resources = process.getActiveResourcesInfo();
      return {
        heap: process.memoryUsage().heapUsed,
        descriptors: readdirSync('/proc/self/fd').length,
        timers: resources.filter((name) => name === 'Timeout').length,
        published,
        ...subscriptions.stats(),
      };
    },
    rejected: () => rejected,
    async close() {
      publishing = false;
      await publisher;
      await subscriptions.close();
      await events.close();
      server.close();
      process.off('disconnect', abort).disconnect();
    },
  };
  // The main process has failed.
  const abort = () => process.exit(1);
  process.on('disconnect', abort);
  process.on(
    'message',
    async (name) => process.connected && process.send({ result: await reply[name]() }, () => undefined),
  );
  process.on('unhandledRejection', (error) => {
    process.send({ unhandled: String(error) });
  });
  process.send({ port: server.address().port });
}

async function run(minutes, count, seed, history) {
  installEspalier();
  let random = seed;
  const next = () => {
    random = (Math.imul(random ^ (random >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
    return random / 2 ** 32;
  };
  const pick = (list) => list[Math.floor(next() * list.length)];
  const wait = (from, to) => from + next() * (to - from);

  const redis = await startServer();
  const proxies = [await startProxy(redis.port), await startProxy(redis.port)];
  const faults = createFaults(redis, proxies, { pick, wait });
  const servers = await Promise.all(proxies.map((proxy, index) => startProcess(proxy, index, history)));
  const { clients, totals, stop } = await connectClients(servers, count);
  const recovered = () => receivingAgain(clients);
  await recovered();

  // One fault of each kind before the first measurement, so that one-time costs do not count as a leak.
  const names = Object.keys(faults);
  for (const name of names) await inject(name);
  const before = await Promise.all(servers.map(({ ask }) => ask('state')));
  const counts = new Map();
  const end = Date.now() + minutes * 60_000;
  while (Date.now() < end) {
    const name = pick(names);
    counts.set(name, (counts.get(name) ?? 0) + 1);
    await inject(name);
  }
  async function inject(name) {
    try {
      await faults[name]();
      await recovered();
    } catch (error) {
      throw new Error(`after "${name}" (seed ${seed}): ${error.message}`, { cause: error });
    }
    await sleep(wait(0, 1000));
  }

  const after = await Promise.all(servers.map(({ ask }) => ask('state')));
  const rejected = await Promise.all(servers.map(({ ask }) => ask('rejected')));
  const refusedNumbers = rejected.map((numbers) => new Set(numbers));
  await stop();
  const gaps = totals.jumps.filter(({ from, last, n }) => {
    for (let missing = last + 1; missing < n; missing++) if (!refusedNumbers[from].has(missing)) return true;
    return false;
  });
  const exits = await Promise.all(servers.map(({ close }) => close()));
  for (const proxy of proxies) proxy.close();
  await redis.close();

  for (const [name, times] of counts) console.log(`${String(times).padStart(5)} × ${name}`);
  const published = after.reduce((sum, state) => sum + state.published, 0);
  const rejections = rejected.reduce((sum, { length }) => sum + length, 0);
  console.log(
    `${minutes} min, seed ${seed}: ${published} events published, ${rejections} rejected; ${totals.received} received by ${count} ` +
      `clients, ${totals.sessions} subscriptions; ${gaps.length} silent gaps, ${totals.disorder} out of order`,
  );
  console.log(`ends of subscriptions: ${JSON.stringify(Object.fromEntries(totals.ends))}`);
  for (const [index, state] of after.entries()) {
    const { heap, descriptors, timers } = before[index];
    const mebibytes = ((state.heap - heap) / 1048576).toFixed(2);
    console.log(
      `process ${index}: heap ${mebibytes} MiB more, descriptors ${descriptors} → ${state.descriptors}, timers ${timers} → ${state.timers}, unreleased sources ${state.unreleased}`,
    );
  }
  assert.deepEqual(gaps.slice(0, 5), []);
  assert.equal(totals.disorder, 0);
  assert.deepEqual(exits, [0, 0]);
  for (const [index, state] of after.entries()) {
    assert.ok(state.heap - before[index].heap < 8 * 1048576, 'the heap grows');
    assert.ok(Math.abs(state.descriptors - before[index].descriptors) <= 4, 'descriptors leak');
    assert.ok(Math.abs(state.timers - before[index].timers) <= 4, 'timers leak');
    assert.equal(state.unreleased, 0);
  }
  assert.deepEqual(
    servers.flatMap(({ unhandled }) => unhandled),
    [],
  );
}

async function startProcess(proxy, index, history) {
  const child = fork(fileURLToPath(import.meta.url), {
    env: {
      ...process.env,
      FAULTS_ROLE: 'server',
      FAULTS_PROCESS: `${index}`,
      FAULTS_HISTORY: `${history}`,
      FAULTS_REDIS: `redis://app:secret@127.0.0.1:${proxy.port}`,
    },
    execArgv: ['--expose-gc'],
  });
  const unhandled = [];
  const waiting = [];
  child.on('message', (message) => {
    if ('unhandled' in message) unhandled.push(message.unhandled);
    else waiting.shift()?.(message);
  });
  const message = () => new Promise((resolve) => waiting.push(resolve));
  const { port } = await message();
  return {
    port,
    unhandled,
    async ask(question) {
      const replied = message();
      child.send(question);
      return (await replied).result;
    },
    async close() {
      const exited = once(child, 'exit');
      child.send('close');
      return (await exited)[0];
    },
  };
}

/** Connects half of the clients to each process. Each client subscribes again when its subscription ends. */
async function connectClients(servers, count) {
  const { createClient } = await import('graphql-ws');
  const { WebSocket } = await import('ws');
  const totals = { received: 0, sessions: 0, disorder: 0, jumps: [], ends: new Map() };
  let open = true;

  function start(index) {
    const client = { received: 0, last: new Map(), cursor: undefined, dispose: undefined };
    const connection = createClient({
      url: `ws://127.0.0.1:${servers[index % servers.length].port}/graphql`,
      webSocketImpl: WebSocket,
      retryAttempts: Number.POSITIVE_INFINITY,
      shouldRetry: () => true,
      retryWait: () => sleep(Math.random() * 200),
      on: {
        // The client subscribes again by itself, but with the old cursor.
        closed: ({ code }) => again(`close code ${code}`),
      },
    });
    const endSession = (reason) => {
      if (open) totals.ends.set(reason, (totals.ends.get(reason) ?? 0) + 1);
      if (client.cursor === undefined) client.last.clear();
    };
    const isMissed = (error) => Array.isArray(error) && error[0].extensions?.code === 'EVENTS_MISSED';
    let unsubscribe;
    const again = async (reason) => {
      if (unsubscribe === undefined) return;
      unsubscribe();
      unsubscribe = undefined;
      endSession(reason);
      await sleep(50 + Math.random() * 200);
      subscribe();
    };
    const subscribe = () => {
      if (!open) return;
      totals.sessions++;
      const { cursor } = client;
      unsubscribe = connection.subscribe(
        {
          query:
            'subscription ($private: Boolean, $after: String) { tick(private: $private, after: $after) { from n cursor } }',
          variables: { private: cursor !== undefined || index % 4 > 1, after: cursor },
        },
        {
          next: ({ data, errors }) => (errors === undefined ? receive(data.tick) : undefined),
          error: (error) => {
            if (isMissed(error)) client.cursor = undefined;
            const kind = Array.isArray(error) ? 'GraphQL error' : `${error.message ?? error.code}`;
            void again(isMissed(error) ? 'EVENTS_MISSED' : kind);
          },
          complete: () => again('complete'),
        },
      );
    };
    const receive = ({ from, n, cursor }) => {
      client.cursor = cursor ?? undefined;
      client.received++;
      totals.received++;
      const last = client.last.get(from);
      if (last !== undefined && n <= last) totals.disorder++;
      if (last !== undefined && n > last + 1) totals.jumps.push({ from, last, n });
      client.last.set(from, n);
    };
    client.dispose = () => connection.dispose();
    subscribe();
    return client;
  }

  const clients = Array.from({ length: count }, (_, index) => start(index));
  const stop = async () => {
    open = false;
    await Promise.all(clients.map(({ dispose }) => dispose()));
  };
  return { clients, totals, stop };
}

/** Resolves when every client has received events of every process since the call. */
async function receivingAgain(clients) {
  const before = clients.map(({ received }) => received);
  const deadline = Date.now() + 60_000;
  for (;;) {
    const silent = clients.filter(
      (client, index) => client.received < before[index] + 3 || client.last.size < 2,
    );
    if (silent.length === 0) return;
    if (Date.now() > deadline) throw new Error(`${silent.length} clients receive no events for a minute`);
    if (process.env.DBG) console.log(silent.length, clients[0].received, clients[0].last);
    await sleep(100);
  }
}
