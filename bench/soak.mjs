/**
 * Runs every part of the package in one server under hostile and normal traffic together: static files, GraphQL, uploads,
 * subscriptions and pubsub. Afterwards the server must have no more heap, descriptors, temporary files and timers than before.
 * Prints the latencies of the normal requests without and with the hostile traffic. Needs `npm run build`.
 *
 *   node bench/soak.mjs [--seconds=1200] [--seed=N]
 */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startHostileTraffic } from './lib/soak-hostile.mjs';
import { startNormalTraffic } from './lib/soak-normal.mjs';
import { serve } from './lib/soak-server.mjs';

const given = (name, fallback) =>
  Number(process.argv.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3) ?? fallback);
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const ROLE = process.env.SOAK_ROLE;

/** Milliseconds in which the server closes everything that the traffic has left, such as bodies that never end. */
const SETTLE = 20_000;
/** Heap that may remain in caches. */
const HEAP_TOLERANCE = 8 << 20;

if (ROLE === 'server') await serve(process.env.SOAK_FOLDER);
else if (ROLE === 'normal') await child(startNormalTraffic);
else if (ROLE === 'hostile') await child(startHostileTraffic);
else await soak(given('seconds', 1200), given('seed', 1));

/** Runs traffic until the parent sends a message, then sends the results. */
async function child(start) {
  const stop = start(Number(process.env.SOAK_PORT), Number(process.env.SOAK_SEED));
  process.on('disconnect', () => process.exit());
  await once(process, 'message');
  process.send(await stop());
}

async function soak(seconds, seed) {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-soak-'));
  for (const name of ['site', 'uploads']) mkdirSync(join(folder, name));
  writeFileSync(join(folder, 'site/small.css'), 'body { color: red }\n'.repeat(100));
  writeFileSync(join(folder, 'site/big.bin'), Buffer.alloc(12 << 20, 'x'));
  const run = (role, env) =>
    fork(fileURLToPath(import.meta.url), {
      env: { ...process.env, NODE_ENV: 'production', SOAK_ROLE: role, SOAK_FOLDER: folder, ...env },
      execArgv: [...process.execArgv, ...(role === 'server' ? ['--expose-gc'] : [])],
    });
  const server = run('server', {});
  const exited = once(server, 'exit').then(([code]) => assert.fail(`the server exited with ${code}`));
  const reply = () => Promise.race([once(server, 'message').then(([message]) => message), exited]);
  const { port } = await reply();
  const state = async () => {
    server.send('state');
    return await reply();
  };
  const traffic = async (roles, duration) => {
    const children = roles.map((role) => run(role, { SOAK_PORT: String(port), SOAK_SEED: String(seed) }));
    const results = Promise.all(children.map((it) => once(it, 'message').then(([message]) => message)));
    await Promise.race([sleep(duration * 1000), exited]);
    for (const it of children) it.send('stop');
    const messages = await results;
    for (const it of children) it.kill();
    return messages;
  };
  try {
    const [alone] = await traffic(['normal'], Math.min(30, seconds));
    await traffic(['normal', 'hostile'], Math.min(60, seconds));
    await sleep(SETTLE);
    const before = await state();
    const [normal, hostile] = await traffic(['normal', 'hostile'], seconds);
    await sleep(SETTLE);
    const after = await state();
    print({ seconds, alone, normal, hostile, before, after });
    check(before, after, normal);
  } finally {
    server.removeAllListeners('exit');
    server.kill();
    rmSync(folder, { recursive: true });
  }
}

function print({ seconds, alone, normal, hostile, before, after }) {
  console.log(`${seconds} seconds; hostile actions: ${JSON.stringify(hostile)}`);
  for (const name of Object.keys(normal.latencies)) {
    const show = ({ count, p50, p99, max }) =>
      `${count} × p50 ${p50.toFixed(1)} p99 ${p99.toFixed(1)} max ${max.toFixed(0)} ms`;
    console.log(
      `${name.padEnd(10)} alone: ${show(alone.latencies[name])}; with hostile traffic: ${show(normal.latencies[name])}`,
    );
  }
  console.log('before', JSON.stringify(before));
  console.log('after ', JSON.stringify(after));
}

function check(before, after, normal) {
  assert.deepEqual(normal.faults, []);
  for (const name of ['files', 'temporaryFiles', 'sockets', 'timers', 'namedTemporaryFiles']) {
    assert.ok(after[name] <= before[name], `${name}: ${before[name]} before, ${after[name]} after`);
  }
  assert.ok(after.heapUsed - before.heapUsed < HEAP_TOLERANCE, 'the heap has grown');
  assert.deepEqual(after.faults, [], 'unhandled rejections and 5xx responses');
}
