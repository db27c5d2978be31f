// What sockets, events, deployments and more processes cost: the figures of docs/capacity.md. First: npm run build
//   node bench/capacity.mjs sockets 18000                         memory of idle and of subscribed sockets
//   node bench/capacity.mjs events 18000 [--events=20 --idle=50]  CPU time of deliveries, and of sockets without events
//   node bench/capacity.mjs return 18000 [--drain=10]             time until the clients of a stopped process are back
//   node bench/capacity.mjs pods 40 [--events=1000 --sockets=10]  CPU time of one Redis for 1 to 40 processes
// --peer=graphql-ws,socket.io measures these too, --only=shared the rows that match a regular expression. --servers=3 spreads
// the sockets over three processes, --json prints JSON. BENCH_NODE=/path/to/node runs the servers.
// All servers are on core 0, and all clients on core 1. Both sides need a descriptor for each socket (ulimit -n).
// Socket.IO is that of test/neighbours, or of --modules=/tmp/peers after npm install --prefix /tmp/peers socket.io.
import { execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { cpuOfProcesses } from './lib/cpu.mjs';
import { serverNode } from './lib/environment.mjs';
import { QUERY } from './lib/event-bus.mjs';
import { median } from './lib/median.mjs';
import { startProcess } from './lib/process.mjs';
import { freePort } from './lib/redis-node.mjs';

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    peer: { type: 'string', default: '' },
    only: { type: 'string', default: '' },
    servers: { type: 'string', default: '1' },
    events: { type: 'string' },
    idle: { type: 'string', default: '50' },
    drain: { type: 'string', default: '10' },
    sockets: { type: 'string', default: '10' },
    modules: {
      type: 'string',
      default: fileURLToPath(new URL('../test/neighbours', import.meta.url)),
    },
    json: { type: 'boolean', default: false },
  },
});
const packages = createRequire(new URL('../', import.meta.url));

const CLIENTS_PER_PROCESS = 18_000;
const INIT = '{"type":"connection_init"}';
const SUBSCRIBE = JSON.stringify({ id: '$id', type: 'subscribe', payload: { query: QUERY } });

const all = (processes, ask, more) => Promise.all(processes.map((each) => each.ask({ ask, ...more })));
const sum = (list) => list.reduce((total, each) => total + each, 0);
const cpuOf = (processes) => cpuOfProcesses(processes.map(({ pid }) => pid));

/** The servers of one row of a table, and their clients in other processes. */
class Stage {
  servers = [];
  fleets = [];

  constructor(row, options = {}) {
    const [name, kind] = row.split(', ');
    this.isIdle = kind === 'idle';
    this.isSocketIo = name === 'socket.io';
    this.options = { name, kind, modules: values.modules, ...options };
  }

  async start(count = Number(values.servers)) {
    const started = Array.from({ length: count }, () => startProcess('server', {}, 'capacity-server'));
    const answers = await all(started, 'start', this.options);
    for (const [index, { port }] of answers.entries()) started[index].port = port;
    this.servers = started;
    return started.map(({ port }) => port);
  }

  /** Connects clients, and resolves when the servers have their subscriptions. */
  async open(count) {
    const processes = Math.ceil(count / CLIENTS_PER_PROCESS);
    while (this.fleets.length < processes) this.fleets.push(startProcess('load', {}, 'capacity-clients'));
    const settings = {
      ports: this.servers.map(({ port }) => port),
      path: this.isSocketIo ? '/socket.io/?EIO=4&transport=websocket' : '/graphql',
      steps: this.isSocketIo ? ['', '40', ''] : [INIT, this.isIdle ? '' : SUBSCRIBE],
    };
    for (const [number, fleet] of this.fleets.entries()) {
      fleet.size = Math.floor(count / processes) + (number < count % processes ? 1 : 0);
      await fleet.ask({ ask: 'open', ...settings, number, count: fleet.size });
    }
    await this.until(this.isIdle ? 'sockets' : 'subscribed', count);
  }

  async until(member, count) {
    for (let attempt = 0; attempt < 3000; attempt++) {
      const found = (await all(this.servers, 'count')).map((each) => each[member]);
      if (sum(found) === count) return;
      await sleep(20);
    }
    throw new Error(`the servers do not have ${count} ${member}`);
  }

  /** Closes the clients of an `open`, which warmed up the server. */
  async close() {
    await all(this.fleets, 'close');
    await this.until('sockets', 0);
  }

  /** Resolves when each client has the events. Through Redis the first server publishes, else each one. */
  async publish(events) {
    const publishers = this.options.redis === undefined ? this.servers : this.servers.slice(0, 1);
    const received = this.fleets.map((fleet) => {
      fleet.received = (fleet.received ?? 0) + events * fleet.size;
      return fleet.ask({ ask: 'events', total: fleet.received });
    });
    await Promise.all([...received, all(publishers, 'publish', { events })]);
  }

  /** Publishes events in bursts. Returns the milliseconds of a burst, and for an event the CPU µs of the servers and of another process. */
  async measure(events, burst, other = []) {
    const [began, server, others] = [performance.now(), cpuOf(this.servers), cpuOf(other)];
    const bursts = Math.ceil(events / burst);
    for (let i = 0; i < bursts; i++) await this.publish(burst);
    return {
      milliseconds: (performance.now() - began) / bursts,
      server: (cpuOf(this.servers) - server) / bursts / burst,
      other: (cpuOf(other) - others) / bursts / burst,
    };
  }

  stop() {
    return Promise.all([...this.servers, ...this.fleets].map((each) => each.stop()));
  }
}

/** KiB of the kernel's own objects. */
const kernelMemory = () => Number(/^Slab:\s+(\d+)/m.exec(readFileSync('/proc/meminfo', 'latin1'))[1]);

async function sockets(row, count) {
  const stage = new Stage(row);
  await stage.start();
  await stage.open(Math.min(200, count));
  if (!stage.isIdle) await stage.publish(10);
  await stage.close();
  const before = await all(stage.servers, 'memory');
  const kernel = kernelMemory();
  await stage.open(count);
  const after = await all(stage.servers, 'memory');
  // Both ends of a connection are on this machine.
  const ofKernel = (kernelMemory() - kernel) / 2 / count;
  await stage.stop();
  const grown = (member) =>
    (sum(after.map((each) => each[member])) - sum(before.map((each) => each[member]))) / count;
  return {
    server: row,
    'KiB for each': grown('rss') / 1024,
    'of it in the heap': grown('heap') / 1024,
    'KiB of the kernel': ofKernel,
    'MiB of a process': after[0].rss / 2 ** 20,
    'at most': after[0].peak / 2 ** 20,
  };
}

async function events(row, count) {
  const stage = new Stage(row);
  await stage.start();
  await stage.open(count);
  await stage.measure(Math.ceil(20_000 / count), 1);
  const before = cpuOf(stage.servers);
  await sleep(Number(values.idle) * 1000);
  const idle = cpuOf(stage.servers) - before;
  const number = Number(values.events ?? Math.ceil(200_000 / count));
  const single = await stage.measure(number, 1);
  const bursts = await stage.measure(number * 4, 8);
  await stage.stop();
  return {
    server: row,
    'µs for each delivery': single.server / count,
    'in bursts of 8': bursts.server / count,
    'ms until the last client has an event': single.milliseconds,
    'ms in a second for 1 000 without events': idle / Number(values.idle) / count,
  };
}

async function comeBack(row, count) {
  const stage = new Stage(row, { watches: true });
  await stage.start();
  await stage.open(count);
  const old = stage.servers;
  const ports = await stage.start();
  const before = cpuOf(stage.servers);
  await all(stage.fleets, 'move', { ports });
  const began = performance.now();
  const isKilled = row.endsWith('killed');
  if (isKilled) await Promise.all(old.map((server) => server.stop()));
  else await all(old, 'drain', { timeout: Number(values.drain) * 1000 });
  const gaps = (await all(stage.fleets, 'returned')).flatMap((each) => each.gaps);
  const seconds = (performance.now() - began) / 1000;
  await stage.until('subscribed', count);
  const cpu = cpuOf(stage.servers) - before;
  await stage.publish(1);
  const blocks = (await all(stage.servers, 'longestBlock')).map(({ milliseconds }) => milliseconds);
  await stage.stop();
  if (!isKilled) await Promise.all(old.map((server) => server.stop()));
  return {
    server: row,
    'seconds until all are back': seconds,
    'a client was away, median': median(gaps),
    'at most': Math.max(...gaps),
    'CPU µs for each': cpu / count,
    'longest block of the loop, ms': Math.max(...blocks),
  };
}

/** One row for each number of processes up to `most`. Socket.IO would need a package more. */
async function pods(row, most) {
  if (row.startsWith('socket.io')) return [];
  const redis = await startRedis();
  const rows = [];
  for (const processes of [...[1, 2, 5, 10, 20, 40].filter((step) => step < most), most]) {
    const stage = new Stage(row, { redis: redis.url });
    await stage.start(processes);
    await stage.open(processes * Number(values.sockets));
    await stage.measure(500, 50);
    const connections = await redis.connections();
    const single = await stage.measure(Number(values.events ?? 1000), 1, [redis]);
    const bursts = await stage.measure(Number(values.events ?? 1000), 50, [redis]);
    await stage.stop();
    rows.push({
      server: row,
      processes,
      'connections to Redis': connections,
      'µs of Redis for an event': single.other,
      'in bursts of 50': bursts.other,
      'µs of each process for an event in bursts': bursts.server / processes,
    });
  }
  return rows;
}

async function startRedis() {
  const port = await freePort();
  const child = spawn('redis-server', ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '']);
  process.on('exit', () => child.kill('SIGKILL'));
  for await (const text of child.stdout) if (String(text).includes('Ready to accept')) break;
  const url = `redis://127.0.0.1:${port}`;
  const admin = new (packages('ioredis').Redis)(url);
  return {
    url,
    pid: child.pid,
    /** Without its own. */
    connections: async () => Number(/connected_clients:(\d+)/.exec(await admin.info('clients'))[1]) - 1,
  };
}

/** The rows of a table: the kinds of espalier, and those of each peer. */
const COMMANDS = {
  sockets: { measure: sockets, own: ['idle', 'shared', 'private'], others: ['idle', 'subscribed'] },
  events: { measure: events, own: ['shared', 'private'], others: ['subscribed'] },
  return: {
    measure: comeBack,
    own: ['shared, drained', 'shared, killed'],
    others: ['subscribed, drained', 'subscribed, killed'],
  },
  pods: { measure: pods, own: ['shared', 'history'], others: ['subscribed'] },
};

/** Markdown. */
function table(rows) {
  const names = Object.keys(rows[0]);
  const shown = (value) => {
    if (typeof value === 'string' || Number.isInteger(value)) return value;
    return value >= 100 ? Math.round(value) : value.toPrecision(3);
  };
  const lines = [names, names.map((name) => (name === 'server' ? '---' : '---:'))];
  for (const row of rows) lines.push(names.map((name) => shown(row[name])));
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

const [name, count] = positionals;
if (COMMANDS[name] === undefined || !(Number(count) > 0)) {
  console.error(
    `Usage: node bench/capacity.mjs ${Object.keys(COMMANDS).join('|')} NUMBER; its first lines have the options`,
  );
  process.exit(1);
}
const { measure, own, others } = COMMANDS[name];
const peers = values.peer.split(',').filter((peer) => peer !== '');
const names = [
  ...own.map((kind) => `espalier, ${kind}`),
  ...peers.flatMap((peer) => others.map((kind) => `${peer}, ${kind}`)),
];
const rows = [];
for (const row of names.filter((each) => new RegExp(values.only).test(each)))
  rows.push(await measure(row, Number(count)));
const version = (name) => packages(`${name}/package.json`).version;
const result = {
  command: process.argv.slice(2).join(' '),
  date: new Date().toISOString().slice(0, 10),
  node: execFileSync(serverNode, ['--version'], { encoding: 'utf8' }).trim(),
  cpu: cpus()[0]?.model,
  packages: Object.fromEntries(['graphql', 'ws', 'graphql-ws'].map((each) => [each, version(each)])),
  rows: rows.flat(),
};
if (values.json) console.log(JSON.stringify(result, null, 2));
else console.log(table(result.rows));
process.exit();
