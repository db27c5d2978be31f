// Events per second, CPU time per event and delay of each engine of createPubSub, in one process that publishes and
// subscribes. The file needs Node 24, and PostgreSQL the URL of a database:
//   node pubsub-engines.mjs --rounds=5 --postgres=postgres://app@127.0.0.1:5432/postgres
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { given } from './lib/arguments.mjs';
import { installEspalier } from './lib/install-espalier.mjs';
import { median } from './lib/median.mjs';
import { startServer } from './lib/redis-faults.mjs';

const PAYLOAD = { id: 0, name: 'an event for each user' };
const AT_A_TIME = 50;
const rounds = Number(given('rounds', 5));
const count = Number(given('events', 10_000));
const delays = Number(given('delays', 500));

installEspalier();
const { createPubSub, file } = await import('espalier/pubsub');
const server = await startServer();
const redis = `redis://app:secret@127.0.0.1:${server.port}`;
const folder = mkdtempSync(join(tmpdir(), 'espalier-engines-'));
const history = { length: 1000, ttl: 300_000 };

const engines = {
  memory: () => createPubSub(),
  'memory, history': () => createPubSub({ history }),
  redis: () => createPubSub({ transport: redis }),
  'redis, history': () => createPubSub({ transport: redis, history }),
};
if (Number(process.versions.node.split('.')[0]) >= 24) {
  let files = 0;
  engines.file = () => createPubSub({ transport: file(join(folder, `${files++}.db`)), history });
}
const database = given('postgres', '');
if (database !== '') {
  const { postgres } = await import('espalier/postgres');
  const { default: pg } = await import('pg');
  engines.postgres = () => {
    const pool = new pg.Pool({ connectionString: database });
    const events = createPubSub({ transport: postgres(pool), history });
    return Object.assign(events, { end: () => pool.end() });
  };
}

/** Publishes until all events have arrived. */
async function burst(events) {
  const stream = events.subscribe('event');
  await events.ready('event');
  const before = { time: performance.now(), cpu: process.cpuUsage() };
  const reading = (async () => {
    for (let read = 0; read < count; read++) await stream.next();
  })();
  for (let sent = 0; sent < count; sent += AT_A_TIME)
    await Promise.all(Array.from({ length: AT_A_TIME }, () => events.publish('event', PAYLOAD)));
  await reading;
  const { user, system } = process.cpuUsage(before.cpu);
  const time = performance.now() - before.time;
  await stream.return();
  return { rate: (count / time) * 1000, cpu: (user + system) / count };
}

/** Returns the milliseconds between a publish and its event, one at a time. */
async function delayOf(events) {
  const stream = events.subscribe('delay');
  await events.ready('delay');
  const times = [];
  for (let sent = 0; sent < delays; sent++) {
    const began = performance.now();
    const arrived = stream.next();
    await events.publish('delay', PAYLOAD);
    await arrived;
    times.push(performance.now() - began);
  }
  await stream.return();
  times.sort((a, b) => a - b);
  return { middle: times[delays >> 1], late: times[Math.floor(delays * 0.99)] };
}

console.log('| engine | events/s | CPU µs per event | delay ms, median | 99 % |\n|---|---:|---:|---:|---:|');
for (const [name, create] of Object.entries(engines)) {
  const results = [];
  for (let round = 0; round <= rounds; round++) {
    const events = create();
    const result = { ...(await burst(events)), ...(await delayOf(events)) };
    await events.close();
    await events.end?.();
    // The first round warms up.
    if (round > 0) results.push(result);
  }
  const of = (key) => median(results.map((result) => result[key]));
  console.log(
    `| ${name} | ${of('rate').toFixed(0)} | ${of('cpu').toFixed(1)} | ${of('middle').toFixed(2)} | ${of('late').toFixed(2)} |`,
  );
}
rmSync(folder, { recursive: true });
await server.close();
