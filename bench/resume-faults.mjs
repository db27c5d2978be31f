// Clients with resumable() at two processes, while one fault after the other happens before each message of a round:
// clients are killed, connections reset, processes and Redis killed or stopped, and a replica takes over. Each client must
// have seen what was published: no gap, no duplicate, no other order. After Redis has lost its data, each client must have
// received EVENTS_MISSED.
//   node resume-faults.mjs --clients=500 --messages=6 --rounds=1 --redis=pair [--faults=name,name] [--dist]
// --redis is "pair", a master with a replica, "sentinel", the same with a Sentinel that fails over, or "cluster", three
// masters with replicas. --dist uses the build of this working copy instead of an installed package.
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { given } from './lib/arguments.mjs';
import { installEspalier } from './lib/install-espalier.mjs';
import { startProxy } from './lib/redis-faults.mjs';
import { freePort } from './lib/redis-node.mjs';
import { startSetup } from './lib/redis-setups.mjs';
import { createResumingClients } from './lib/resuming-clients.mjs';

const usesDist = process.argv.includes('--dist');
const load = (name) =>
  import(
    usesDist ? new URL(`../dist/${name}.mjs`, import.meta.url).href : `espalier/${name}`.replace('/index', '')
  );

const HISTORY = { length: 1_000_000, ttl: 600_000 };
const TIMES = { heartbeat: 300, commandTimeout: 400 };
const KEY = 'the secret of the cursors of all processes';
const STREAM = '{espalier:tick}:events';
// The same packages as those of espalier.
const packages = createRequire(usesDist ? new URL('../', import.meta.url) : import.meta.url);

if (process.env.RESUME_PORT !== undefined) await serve(Number(process.env.RESUME_PORT));
else await run(Number(given('clients', 500)), Number(given('messages', 6)), Number(given('rounds', 1)));

/** Returns the Redis for a URL, or a client for options of ioredis. */
function redisOption(target) {
  if (typeof target === 'string') return target;
  const { Cluster, Redis } = packages('ioredis');
  if (target.cluster === undefined) return new Redis({ ...target, lazyConnect: true });
  return new Cluster(target.cluster, { lazyConnect: true });
}

/** One process with the subscription `tick`. */
async function serve(port) {
  const { createServer } = await import('node:http');
  const { buildSchema } = packages('graphql');
  const { attachSubscriptions, graphqlHTTP } = await load('index');
  const { createPubSub, redis } = await load('pubsub');
  const events = createPubSub({
    transport: redis(redisOption(JSON.parse(process.env.RESUME_REDIS)), TIMES),
    onError: false,
    history: HISTORY,
  });
  const schema = buildSchema(`
    type Query { one: Int }
    type Subscription { tick(private: Boolean): Int }
  `);
  const { tick } = schema.getSubscriptionType().getFields();
  tick.subscribe = () => events.subscribe('tick');
  tick.resolve = ({ n }) => n;
  const handler = graphqlHTTP(schema, { onError: false, cursors: { key: KEY } });
  const server = createServer(handler).listen(port, '127.0.0.1');
  await once(server, 'listening');
  const subscriptions = attachSubscriptions(server, handler, {
    share: (_, { variables }) => (variables?.private ? undefined : 'all'),
  });
  // Clients without a start have missed nothing, so they may connect before Redis has confirmed the channel.
  process.on('message', async (question) => {
    if (question === 'stats') process.send({ ...subscriptions.stats(), pubsub: await statsWhenConnected() });
    else await subscriptions.close({ drain: 200 });
  });
  /** A fault may have closed the connections just before. */
  async function statsWhenConnected() {
    for (;;) {
      try {
        return await events.stats();
      } catch {
        await sleep(20);
      }
    }
  }
  process.on('disconnect', () => process.exit());
  process.send('listening');
}

async function run(count, messages, rounds) {
  if (!usesDist) installEspalier();
  const kind = given('redis', 'pair');
  const redis = await startSetup(kind, STREAM);
  const servers = await Promise.all([1, 2].map((index) => startProcess(redis.target(index))));
  const publisher = await createPublisher(redis.target(0));
  const clients = await createResumingClients(
    await load('client'),
    count,
    servers.map(({ proxy }) => proxy.port),
  );
  const truth = [];
  const stored = async () =>
    (await redis.admin.xrange(STREAM, '-', '+')).map(([, fields]) => JSON.parse(fields.at(-1)).n);
  await clients.until(({ starts }) => starts > 0);

  const faults = {
    'client killed': () => clients.kill(),
    'connections of clients reset': () => dropAll(servers.map(({ proxy }) => proxy)),
    'connections to Redis reset': () => redis.dropConnections(),
    'server SIGKILL': (index) => servers[index % 2].restart(),
    'server SIGSTOP': (index) => servers[index % 2].stop(600),
    'deploy with drain': (index) => servers[index % 2].deploy(),
    'Redis SIGKILL': (index) => redis.restart(200, index),
    'Redis SIGSTOP': (index) => redis.stop(900, index),
    'failover to a replica': () => redis.failOver(publisher.pause),
    'failover while events are published'() {
      clients.hardFailOvers++;
      return redis.failOverHard();
    },
    async 'Redis loses its data'() {
      const resume = await publisher.pause();
      truth.push(...(await stored()));
      await redis.admin.flushall();
      clients.losses++;
      await redis.dropConnections();
      resume();
    },
  };
  /**
   * Publishes a number, and waits until all clients have received it. After a hard failover it publishes another one every
   * few seconds: clients that have received EVENTS_MISSED start again without the events before.
   */
  async function publishToAll(where) {
    let last = await publisher.publishSafely();
    const repeat = async () => {
      last = await publisher.publishSafely();
    };
    const timer = clients.hardFailOvers > 0 ? setInterval(repeat, 3000) : undefined;
    await clients.until((client) => client.last === last, where);
    clearInterval(timer);
  }

  const names = given('faults', Object.keys(faults).join(',')).split(',');
  const began = Date.now();
  for (let round = 0; round < rounds; round++) {
    for (const name of names) {
      const start = Date.now();
      for (let index = 0; index <= messages; index++) {
        const lossesBefore = clients.losses;
        let fault;
        for (let message = 0; message <= messages; message++) {
          if (message === index) fault = faults[name](index);
          await publisher.publish();
          await sleep(10);
        }
        await fault;
        if (clients.losses > lossesBefore) await clients.until(({ starts }) => starts > clients.losses);
        await publishToAll(`${name} at message ${index}`);
      }
      console.log(`${name}: ${messages + 1} times, ${((Date.now() - start) / 1000).toFixed(1)} s`);
    }
  }
  truth.push(...(await stored()));
  const stats = await servers[0].ask('stats');
  clients.check(truth);
  console.log(
    `${count} clients, ${names.length} faults, ${((Date.now() - began) / 1000).toFixed(0)} s: ${truth.length} events ` +
      `published, ${publisher.rejected} rejected, ${clients.received()} received, ${clients.connections()} connections, ` +
      `${clients.losses} losses of data, each reported to all clients; no gap, no duplicate`,
  );
  console.log(`pubsub of one process: ${JSON.stringify(stats.pubsub)}`);
  await clients.stop();
  for (const server of servers) await server.close();
  await publisher.close();
  await redis.close();
  process.exit();
}

function dropAll(proxies) {
  for (const proxy of proxies) proxy.drop();
}

/** A server process that can be killed and started again at the same port, behind a proxy. */
async function startProcess(redisTarget) {
  const port = await freePort();
  const proxy = await startProxy(port);
  let child;
  async function start() {
    child = fork(fileURLToPath(import.meta.url), usesDist ? ['--dist'] : [], {
      env: { ...process.env, RESUME_PORT: `${port}`, RESUME_REDIS: JSON.stringify(redisTarget) },
    });
    const [first] = await Promise.race([once(child, 'message'), once(child, 'exit')]);
    assert.equal(first, 'listening', 'a server process has failed');
  }
  async function kill() {
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }
  await start();
  return {
    proxy,
    async restart() {
      await kill();
      await start();
    },
    async stop(time) {
      child.kill('SIGSTOP');
      await sleep(time);
      child.kill('SIGCONT');
    },
    async deploy() {
      child.send('close');
      await sleep(300);
      await kill();
      await start();
    },
    async ask(question) {
      const answered = once(child, 'message');
      child.send(question);
      return (await answered)[0];
    },
    async close() {
      await kill();
      proxy.close();
    },
  };
}

/** Publishes consecutive numbers, one at a time. A number whose publish was rejected is not published again. */
async function createPublisher(redisTarget) {
  const { createPubSub, redis } = await load('pubsub');
  const events = createPubSub({
    transport: redis(redisOption(redisTarget), TIMES),
    onError: false,
    history: HISTORY,
  });
  let n = 0;
  let paused;
  let inFlight = Promise.resolve();
  const publisher = {
    rejected: 0,
    async publish() {
      await paused;
      const number = n++;
      const sent = events.publish('tick', { n: number }).then(
        () => true,
        () => {
          publisher.rejected++;
          return false;
        },
      );
      inFlight = sent;
      return (await sent) ? number : undefined;
    },
    /** Publishes numbers until Redis has confirmed one. */
    async publishSafely() {
      for (;;) {
        const number = await publisher.publish();
        if (number !== undefined) return number;
        await sleep(20);
      }
    },
    /** Resolves when nothing is being published, with the function that continues. */
    async pause() {
      let resume;
      paused = new Promise((resolve) => {
        resume = resolve;
      });
      await inFlight;
      return resume;
    },
    close: () => events.close(),
  };
  await publisher.publishSafely();
  return publisher;
}
