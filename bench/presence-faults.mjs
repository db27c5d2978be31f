// Presence in three processes with random joins, updates, leaves, kills, partitions and stops of the server. After each round, and
// one ttl, each process must see exactly who is there: by `members`, and by following `changes`.
// Usage: npm run build && node --import tsx bench/presence-faults.mjs [--rounds=10] [--seed=1] [--ttl=1000] [--engines=memory,postgres]
// Needs redis-server, and postgres. Prints ghosts (seen, but gone) and missing (there, but not seen).
import { fork } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startPostgres } from '../test/postgres.ts';
import { startRedis } from '../test/redis.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
    ttl: { type: 'string', default: '1000' },
    engines: { type: 'string', default: 'memory,redis,redis with a history,postgres' },
  },
});
const TTL = Number(values.ttl);
const TOPICS = ['one', 'two', 'three'];
const IDS = Array.from({ length: 20 }, (_, index) => `user-${index}`);

let state = Number(values.seed);
/** A number from 0 to below `limit`, the same ones for each seed. */
function random(limit) {
  state = (state * 1103515245 + 12345) % 2 ** 31;
  return Math.floor((state / 2 ** 31) * limit);
}
const pick = (list) => list[random(list.length)];

/** A proxy that can lose all bytes, as a partition does. */
async function startProxy(port) {
  const sockets = new Set();
  let isCut = false;
  const server = net.createServer((client) => {
    const upstream = net.connect(port, '127.0.0.1');
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ]) {
      sockets.add(from);
      from.on('data', (chunk) => {
        if (!isCut && !from.lost) to.write(chunk);
        else from.lost = to.lost = true;
      });
      from.on('error', () => undefined);
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    port: server.address().port,
    cut: () => {
      isCut = true;
    },
    heal: () => {
      isCut = false;
    },
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Memory has no server, and one process, which can only be killed. */
const SERVERS = {
  memory: undefined,
  redis: startRedis,
  'redis with a history': startRedis,
  postgres: startPostgres,
};

/** Describes how what a process sees differs from the truth. */
function differences(truth, seen) {
  const [expected, found] = [new Map(truth), new Map(seen)];
  const count = (ids, test) => [...ids].filter(test).length;
  return {
    ghosts: count(found.keys(), (id) => !expected.has(id)),
    missing: count(expected.keys(), (id) => !found.has(id)),
    stale: count(found.keys(), (id) => expected.has(id) && !expected.get(id).includes(found.get(id))),
  };
}

class Driver {
  workers = [];
  tabs = new Map();
  next = 0;
  /** The milliseconds after the end of the faults when a process still saw something else. */
  latest = 0;
  leaves = { all: 0, wrong: 0 };

  constructor(engine, server) {
    this.engine = engine;
    this.server = server;
  }

  async start(index) {
    const { server } = this;
    const proxy = this.workers[index]?.proxy ?? (server && (await startProxy(server.port)));
    const url = server?.url.replace(`:${server.port}`, `:${proxy.port}`);
    const options = JSON.stringify({ engine: this.engine, url, ttl: TTL, topics: TOPICS });
    const child = fork(new URL('fixtures/presence-worker.mjs', import.meta.url), [options], { execArgv: [] });
    const worker = { index, child, proxy, isCut: false, seen: undefined };
    this.workers[index] = worker;
    // What was on its way to a killed process: EPIPE.
    child.on('error', () => undefined);
    child.on('exit', (code) => {
      if (code !== null) throw new Error(`Process ${index} has ended with ${code}`);
    });
    child.on('message', (message) => {
      if (message.kind === 'seen') worker.seen(message.seen);
      if (message.kind !== 'left') return;
      this.leaves.all++;
      if (this.onlyStops && this.present(message.topic).has(message.id)) this.leaves.wrong++;
    });
    await once(child, 'message');
  }

  /** The data of the tabs of each member. */
  present(topic) {
    const found = new Map();
    for (const { topic: its, member, since } of this.tabs.values())
      if (its === topic && performance.now() - since > 200)
        found.set(member.id, [...(found.get(member.id) ?? []), member.data]);
    return found;
  }

  async kill(worker) {
    // Not `once`, which rejects for the EPIPE of a message that was on its way.
    const exited = new Promise((resolve) => worker.child.once('exit', resolve));
    worker.child.kill('SIGKILL');
    await exited;
    for (const [tab, { index }] of this.tabs) if (index === worker.index) this.tabs.delete(tab);
    await this.start(worker.index);
  }

  act() {
    const worker = pick(this.workers.filter(({ child }) => child.connected));
    // The only process has just been killed.
    if (worker === undefined) return;
    const own = [...this.tabs].filter(([, { index }]) => index === worker.index);
    const action = random(10);
    if (action < 4 || own.length === 0) {
      const tab = this.next++;
      const [topic, member] = [pick(TOPICS), { id: pick(IDS), data: this.next }];
      this.tabs.set(tab, { index: worker.index, topic, member, since: performance.now() });
      worker.child.send({ kind: 'join', tab, topic, member });
    } else if (action < 5) {
      const [tab, entry] = pick(own);
      entry.member = { ...entry.member, data: this.next++ };
      worker.child.send({ kind: 'update', tab, data: entry.member.data });
    } else {
      const [tab] = pick(own);
      this.tabs.delete(tab);
      worker.child.send({ kind: 'leave', tab });
    }
  }

  async fault() {
    const worker = pick(this.workers);
    const time = TTL * (0.1 + random(20) / 10);
    const kind = this.onlyStops ? 3 : random(4);
    if (this.server === undefined && kind > 0) return;
    if (kind === 0) return this.kill(worker);
    if (kind === 1 || kind === 2) {
      worker.proxy.cut();
      await pause(time);
      return worker.proxy.heal();
    }
    this.server.signal('SIGSTOP');
    await pause(time);
    this.server.signal('SIGCONT');
  }

  async round(onlyStops) {
    this.onlyStops = onlyStops;
    const end = performance.now() + TTL * 3;
    const faults = (async () => {
      while (performance.now() < end) {
        await pause(random(TTL));
        await this.fault();
      }
    })();
    // In the rounds that only stop the server, nobody leaves: each leave would be wrong.
    if (!onlyStops) {
      while (performance.now() < end) {
        this.act();
        await pause(random(40));
      }
    }
    await faults;
    // A process that is not connected yet rejects, and says so.
    for (const worker of this.workers)
      while (Object.values(await this.look(worker)).some(({ error }) => error)) await pause(20);
    const healed = performance.now();
    await pause(TTL);
    const total = await this.compare();
    for (let again = total; Object.values(again).some((count) => count > 0); again = await this.compare()) {
      this.latest = Math.max(this.latest, Math.round(performance.now() - healed));
      if (performance.now() - healed > TTL * 10) {
        for (const worker of this.workers) console.log(worker.index, JSON.stringify(await this.look(worker)));
        console.log(TOPICS.map((topic) => JSON.stringify([...this.present(topic)])).join('\n'));
        break;
      }
      await pause(20);
    }
    return total;
  }

  look(worker) {
    return new Promise((resolve) => {
      worker.seen = resolve;
      worker.child.send({ kind: 'look' });
    });
  }

  async compare() {
    const total = { ghosts: 0, missing: 0, stale: 0, 'followed ghosts': 0, 'followed missing': 0 };
    for (const worker of this.workers) {
      const seen = await this.look(worker);
      for (const topic of TOPICS) {
        const truth = this.present(topic);
        const { ghosts, missing, stale } = differences(truth, seen[topic].members);
        const followed = differences(truth, seen[topic].changes);
        total.ghosts += ghosts;
        total.missing += missing;
        total.stale += stale;
        total['followed ghosts'] += followed.ghosts;
        total['followed missing'] += followed.missing;
      }
    }
    return total;
  }
}

async function run(engine) {
  const server = await SERVERS[engine]?.();
  const driver = new Driver(engine, server);
  const indexes = server === undefined ? [0] : [0, 1, 2];
  await Promise.all(indexes.map((index) => driver.start(index)));
  const sum = { rounds: 0 };
  for (let round = 0; round < Number(values.rounds); round++) {
    const total = await driver.round(round % 3 === 2);
    sum.rounds++;
    for (const [name, count] of Object.entries(total)) sum[name] = (sum[name] ?? 0) + count;
  }
  sum['members at the end'] = driver.tabs.size;
  sum['last difference (ms)'] = driver.latest;
  sum['leaves'] = driver.leaves.all;
  sum['wrong leaves'] = driver.leaves.wrong;
  for (const { child, proxy } of driver.workers) {
    child.kill('SIGKILL');
    proxy?.close();
  }
  await (server?.remove ?? server?.kill)?.();
  return sum;
}

const results = {};
for (const engine of values.engines.split(',')) results[engine] = await run(engine);
console.table(results);
const isRight = Object.values(results).every((sum) =>
  ['ghosts', 'missing', 'stale', 'followed ghosts', 'followed missing', 'wrong leaves'].every(
    (name) => sum[name] === 0,
  ),
);
process.exit(isRight ? 0 : 1);
