// Subscribers of every engine of createPubSub while data are lost, keys evicted, disks full, and connections refused, slow
// or silent. Each subscriber must get each event once and in order, or be told. Subscribers go offline at random, and
// continue after their last event or the start of their topic.
//   node pubsub-losses.mjs --seconds=60 --seed=1 --engines=memory,file,redis,cluster,postgres [--postgres=URL] [--source]
// Without a URL, a PostgreSQL server is started. It and the file need Node 24 and root, which mounts small disks. --source
// uses the sources of this working copy (Node 24) instead of an installed package.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { given } from './lib/arguments.mjs';
import { installEspalier } from './lib/install-espalier.mjs';
import { startProxy, startServer } from './lib/redis-faults.mjs';
import { startSetup } from './lib/redis-setups.mjs';

const usesSource = process.argv.includes('--source');
if (!usesSource) installEspalier();
const load = (name) =>
  import(usesSource ? new URL(`../middleware/${name}.ts`, import.meta.url).href : `espalier/${name}`);
const packages = createRequire(usesSource ? new URL('../', import.meta.url) : import.meta.url);
const { createPubSub, file, redis } = await load('pubsub');

const TOPICS = ['a', 'b', 'c', 'd'];
const CLIENTS = 24;
const LIMITS = { length: 200, ttl: 20_000 };
const TIMES = { heartbeat: 150, commandTimeout: 500 };
const OPTIONS = { onError: false };

let random = Number(given('seed', Date.now() % 1e6));
console.log(`seed ${random}`);
function chance() {
  random = (Math.imul(random ^ (random >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
  return random / 2 ** 32;
}
const pick = (list) => list[Math.floor(chance() * list.length)];
const wait = (from, to) => sleep(from + chance() * (to - from));

/**
 * The engines. `open` creates the pubsub that publishes and the one that subscribes, which may be the same. After a fault
 * the engine works again.
 */
const engines = {
  async memory() {
    const open = () => {
      const events = createPubSub({ history: LIMITS, ...OPTIONS });
      return { publisher: events, subscriber: events };
    };
    return { open, faults: { 'another process': (run) => run.reopen() }, close() {} };
  },

  async file() {
    const folder = mkdtempSync(join(tmpdir(), 'espalier-losses-'));
    const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', folder]).status === 0;
    const [path, filler] = [join(folder, 'events.db'), join(folder, 'filler')];
    const open = () => {
      const events = createPubSub({ transport: file(path), history: { ...LIMITS, ttl: 3000 }, ...OPTIONS });
      return { publisher: events, subscriber: events };
    };
    const faults = {
      'a restart': (run) => run.reopen(),
      'a removed file': (run) => run.reopen(() => rmSync(path, { force: true })),
    };
    const fullDisk = async () => {
      try {
        for (;;) appendFileSync(filler, Buffer.alloc(16_384));
      } catch {}
      await wait(500, 4000);
      if (chance() < 0.5) rmSync(filler);
    };
    if (mounted) faults['a full disk'] = fullDisk;
    return {
      open,
      faults,
      close() {
        if (mounted) spawnSync('umount', ['-l', folder]);
        rmSync(folder, { recursive: true, force: true });
      },
    };
  },

  async redis() {
    const server = await startServer();
    const proxy = await startProxy(server.port);
    const { admin } = server;
    const url = `redis://app:secret@127.0.0.1:${proxy.port}`;
    const open = () => {
      const create = () => createPubSub({ transport: redis(url, TIMES), history: LIMITS, ...OPTIONS });
      return { publisher: create(), subscriber: create() };
    };
    const evict = (topic, names) => admin.del(...names.map((name) => `{espalier:${topic}}:${name}`));
    return {
      open,
      faults: {
        ...networkFaults(proxy),
        FLUSHALL: () => admin.flushall(),
        async 'FLUSHALL and lost connections'() {
          await admin.flushall();
          proxy.drop();
        },
        async 'a restart without data'() {
          await server.stop('SIGKILL');
          await wait(0, 1500);
          await server.start();
        },
        'an evicted history': () => evict(pick(TOPICS), ['events', 'newest']),
        'evicted events': () => evict(pick(TOPICS), ['events']),
        'an evicted id': () => evict(pick(TOPICS), ['newest']),
        async maxmemory() {
          await admin.config('SET', 'maxmemory-policy', 'allkeys-random');
          await admin.config('SET', 'maxmemory', '1mb');
          await wait(0, 300);
          await admin.config('SET', 'maxmemory', '0');
        },
        async maxclients() {
          await admin.config('SET', 'maxclients', '1');
          proxy.drop();
          await wait(100, 1500);
          await admin.config('SET', 'maxclients', '10000');
        },
      },
      async close() {
        proxy.close();
        await server.close();
      },
    };
  },

  async cluster() {
    const cluster = await startSetup('cluster', '{espalier:a}:events');
    const { Cluster } = packages('ioredis');
    const open = () => {
      const create = (sharded) => {
        const client = new Cluster(cluster.target().cluster, { lazyConnect: true });
        return createPubSub({ transport: redis(client, { sharded, ...TIMES }), history: LIMITS, ...OPTIONS });
      };
      return { publisher: create(true), subscriber: create(true) };
    };
    // A node that has just restarted refuses commands until it knows the others.
    const onMaster = (...command) => cluster.admin.call(...command).catch(() => undefined);
    return {
      open,
      faults: {
        'lost connections': () => cluster.dropConnections(),
        FLUSHALL: () => onMaster('FLUSHALL'),
        async 'FLUSHALL and lost connections'() {
          await onMaster('FLUSHALL');
          await cluster.dropConnections();
        },
        'an evicted history': () => onMaster('DEL', '{espalier:a}:events', '{espalier:a}:newest'),
        'an evicted id': () => onMaster('DEL', '{espalier:a}:newest'),
        'a restarted node': () => cluster.restart(200, 0),
        'a stopped node': () => cluster.stop(900, 0),
        async 'replies after 40 ms'() {
          for (let turn = 0; turn < 30; turn++) {
            await cluster.stop(40, 0);
            await sleep(5);
          }
        },
      },
      close: () => cluster.close(),
    };
  },

  async postgres() {
    const own = given('postgres', '') === '' ? await startOnSmallDisk() : undefined;
    const database = new URL(own?.server.url ?? given('postgres', ''));
    const proxy = await startProxy(Number(database.port));
    const pg = packages('pg');
    const { postgres } = await load('postgres');
    const admin = new pg.Pool({ connectionString: database.href });
    admin.on('error', () => undefined); // a connection that the server has ended
    const url = Object.assign(new URL(database), { port: proxy.port }).href;
    await admin.query('DROP SCHEMA IF EXISTS losses CASCADE');
    const pools = [];
    const open = () => {
      const create = () => {
        const pool = new pg.Pool({ connectionString: url, connectionTimeoutMillis: 500 });
        pools.push(pool);
        const transport = postgres(pool, { schema: 'losses', ...TIMES });
        return createPubSub({ transport, history: LIMITS, ...OPTIONS });
      };
      return { publisher: create(), subscriber: create() };
    };
    return {
      open,
      faults: {
        ...networkFaults(proxy),
        TRUNCATE: () => admin.query('TRUNCATE losses.topics, losses.events'),
        'TRUNCATE of the topics': () => admin.query('TRUNCATE losses.topics'),
        'TRUNCATE of the events': () => admin.query('TRUNCATE losses.events'),
        'a removed topic': () =>
          admin.query('DELETE FROM losses.topics WHERE channel LIKE $1', [`%${pick(TOPICS)}`]),
        pg_terminate_backend: () =>
          admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()'),
        ...(own && { 'a full disk': own.fill }),
      },
      async close() {
        proxy.close();
        await Promise.all([...pools, admin].map((pool) => pool.end()));
        await own?.close();
      },
    };
  },
};

/** Starts a PostgreSQL server on a disk that can be full. It ends when it cannot write, and is started again. */
async function startOnSmallDisk() {
  const { startPostgres } = await import('../test/postgres.ts');
  const folder = mkdtempSync(join(tmpdir(), 'espalier-losses-'));
  assert.equal(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=160m', 'tmpfs', folder]).status, 0);
  const { TMPDIR } = process.env;
  process.env.TMPDIR = folder;
  const server = await startPostgres(['max_wal_size=32MB', 'min_wal_size=32MB']);
  if (TMPDIR === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = TMPDIR;
  const filler = join(folder, 'filler');
  return {
    server,
    async fill() {
      try {
        for (;;) appendFileSync(filler, Buffer.alloc(16_384));
      } catch {}
      await wait(500, 3000);
      rmSync(filler);
      await server.kill();
      await server.start();
    },
    async close() {
      await server.remove();
      spawnSync('umount', ['-l', folder]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const networkFaults = (proxy) => ({
  'lost connections': () => proxy.drop(),
  async 'a silent network'() {
    proxy.stall();
    await wait(100, 2000);
    proxy.heal();
    proxy.drop();
  },
  async 'replies after 40 ms'() {
    proxy.delay(40);
    await wait(500, 2000);
    proxy.delay(0);
  },
});

/** Publishes consecutive numbers to a topic, and remembers which of them the engine has confirmed. */
class Publisher {
  next = 0;
  confirmed = new Set();
  #isOver = false;
  #running;

  constructor(run, topic) {
    this.topic = topic;
    this.#running = this.#publish(run);
  }

  async #publish(run) {
    while (!this.#isOver) {
      // Topics are without events for a while.
      await (chance() < 0.03 ? wait(500, 1500) : wait(0, 30));
      await this.one(run);
    }
  }

  /** Returns whether the number is confirmed. */
  async one(run) {
    const n = this.next++;
    const text = 'x'.repeat(chance() < 0.02 ? 60_000 : 100);
    const isConfirmed = await run.pubsub.publisher.publish(this.topic, { n, text }).then(
      () => true,
      () => false,
    );
    if (isConfirmed) this.confirmed.add(n);
    return isConfirmed;
  }

  async stop() {
    this.#isOver = true;
    await this.#running;
  }
}

/** A subscriber that is sometimes offline. */
class Client {
  received = 0;
  told = 0;
  resumed = 0;
  violations = [];
  /** The last number since the last start. */
  last = undefined;
  /** The first number that was published after the start, and has to arrive. */
  #least = 0;
  #cursor = undefined;
  #isOver = false;
  #stream = undefined;
  #running;

  constructor(run, publisher) {
    this.publisher = publisher;
    this.#running = this.#live(run);
  }

  async #live(run) {
    while (!this.#isOver) {
      const isFirst = this.#cursor === undefined;
      if (!isFirst) this.resumed++;
      const stream = run.pubsub.subscriber.subscribe(this.publisher.topic, { after: this.#cursor });
      this.#stream = stream;
      const offline = chance() < 0.7 ? setTimeout(() => void stream.return(), chance() * 3000) : undefined;
      try {
        if (isFirst) {
          await stream.started();
          if (stream.startCursor !== undefined) {
            this.#cursor = stream.startCursor;
            this.#least = this.publisher.next;
          }
        }
        for (;;) {
          const { done, value, cursor } = await stream.next();
          if (done) break;
          this.#receive(value.n);
          this.#cursor = cursor;
          if (chance() < 0.01) await wait(0, 50);
        }
      } catch (error) {
        if (error.extensions?.code === 'EVENTS_MISSED') this.#restart();
        else if (error.code === 'ERR_EVENTS_MISSED') this.#cursor &&= stream.position ?? this.#cursor;
        else await sleep(20);
      }
      clearTimeout(offline);
      await (chance() < 0.5 ? wait(0, 50) : wait(0, 2500));
    }
  }

  #restart() {
    this.told++;
    this.#cursor = undefined;
    this.last = undefined;
  }

  #receive(n) {
    this.received++;
    const { last = this.#least - 1 } = this;
    if (this.last !== undefined && n <= last) this.violations.push(`${n} after ${last}`);
    for (let missing = last + 1; missing < n; missing++)
      if (this.publisher.confirmed.has(missing)) this.violations.push(`${missing} is missing before ${n}`);
    this.last = n;
  }

  async stop() {
    this.#isOver = true;
    await this.#stream?.return();
    await this.#running;
  }
}

async function run(name, seconds) {
  const engine = await engines[name]();
  const counts = new Map();
  const state = {
    pubsub: engine.open(),
    /** Closes the pubsubs, and opens other ones, like a process that is started again. */
    async reopen(between = () => undefined) {
      const { publisher, subscriber } = state.pubsub;
      await Promise.all([publisher.close(), subscriber.close()]);
      between();
      state.pubsub = engine.open();
    },
  };
  await Promise.all(TOPICS.map((topic) => state.pubsub.subscriber.ready(topic)));
  const publishers = TOPICS.map((topic) => new Publisher(state, topic));
  const clients = Array.from(
    { length: CLIENTS },
    (_, index) => new Client(state, publishers[index % TOPICS.length]),
  );
  const end = Date.now() + seconds * 1000;
  while (Date.now() < end) {
    await wait(0, 1500);
    const fault = pick(Object.keys(engine.faults));
    counts.set(fault, (counts.get(fault) ?? 0) + 1);
    await engine.faults[fault](state);
  }
  await Promise.all(publishers.map((publisher) => publisher.stop()));
  // Everybody gets the last events, or is told.
  const late = () => clients.filter(({ last, publisher }) => last === undefined || last < publisher.final);
  for (const publisher of publishers) publisher.final = Number.POSITIVE_INFINITY;
  const deadline = Date.now() + 60_000;
  while (late().length > 0 && Date.now() < deadline) {
    for (const publisher of publishers)
      if (await publisher.one(state)) publisher.final = Math.min(publisher.final, publisher.next - 1);
    await sleep(300);
  }
  const silent = late();
  await Promise.all(clients.map((client) => client.stop()));
  const { publisher, subscriber } = state.pubsub;
  await Promise.all([publisher.close(), subscriber.close()]);
  await engine.close();

  const sum = (key) => clients.reduce((total, client) => total + client[key], 0);
  const violations = clients.flatMap((client) => client.violations);
  const confirmed = publishers.reduce((total, each) => total + each.confirmed.size, 0);
  const published = publishers.reduce((total, { next }) => total + next, 0);
  console.log(`${name}: ${[...counts].map(([fault, times]) => `${times} × ${fault}`).join(', ')}`);
  console.log(
    `${name}: ${seconds} s, ${published} published, ${published - confirmed} refused, ${sum('received')} received by ` +
      `${CLIENTS} clients, ${sum('resumed')} continued, ${sum('told')} told; ${violations.length} violations, ${silent.length} without the last event`,
  );
  assert.deepEqual(violations.slice(0, 5), []);
  assert.equal(silent.length, 0);
}

process.on('unhandledRejection', (error) => {
  throw error;
});
for (const name of given('engines', 'memory,file,redis,cluster,postgres').split(','))
  await run(name, Number(given('seconds', 60)));
process.exit();
