/**
 * Runs every part of the package in one server under malicious and normal traffic together: static files with compression,
 * files in memory, GraphQL with uploads, documents by id, caches, costs and budgets, subscriptions over sockets and event streams
 * with cursors, live figures and telemetry. Afterwards the server must have no more heap, descriptors, temporary files and timers
 * than before. Prints the latencies of the normal requests without and with the malicious traffic. Needs `npm run build`.
 *
 *   node bench/soak.mjs [--seconds=1200] [--seed=N] [--leak=heap|files|temporaryFiles|namedTemporaryFiles|timers]
 *
 * `BENCH_GRAPHQL=17` adds incremental delivery (Node 22.15 or newer). `--leak` makes the server leak one kind of resource per request:
 * the program must then exit with 1.
 */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { given } from './lib/arguments.mjs';
import { installEspalier } from './lib/install-espalier.mjs';
import { startAttacks } from './lib/soak-attacks.mjs';
import { writeSite } from './lib/soak-files.mjs';
import { startNormalTraffic } from './lib/soak-normal.mjs';
import { serve } from './lib/soak-server.mjs';

const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const ROLE = process.env.SOAK_ROLE;

/** Milliseconds in which the server closes everything that the traffic has left, such as bodies that never end. */
const SETTLE = 20_000;
/** Heap that may remain in caches. */
const HEAP_TOLERANCE = 8 << 20;

if (ROLE === 'server') await serve({ folder: process.env.SOAK_FOLDER, leak: given('leak') });
else if (ROLE === 'normal') await child(startNormalTraffic);
else if (ROLE === 'malicious') await child(startAttacks);
else await soak(Number(given('seconds', 1200)), Number(given('seed', 1)));

/** Runs traffic until the parent sends a message, then sends the results. */
async function child(start) {
  const { SOAK_PORT, SOAK_SEED, SOAK_INCREMENTAL } = process.env;
  const stop = start(Number(SOAK_PORT), {
    seed: Number(SOAK_SEED),
    isIncremental: SOAK_INCREMENTAL === 'true',
  });
  process.on('disconnect', () => process.exit());
  await once(process, 'message');
  process.send(await stop());
}

async function soak(seconds, seed) {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-soak-'));
  installEspalier();
  writeSite(folder);
  const run = (role, env) =>
    fork(fileURLToPath(import.meta.url), process.argv.slice(2), {
      env: { ...process.env, NODE_ENV: 'production', SOAK_ROLE: role, SOAK_FOLDER: folder, ...env },
      execArgv: [
        ...process.execArgv,
        ...(role === 'server' ? ['--expose-gc', '--disable-warning=ExperimentalWarning'] : []),
      ],
    });
  const server = run('server', {});
  const exited = once(server, 'exit').then(([code]) => assert.fail(`the server exited with ${code}`));
  const reply = () => Promise.race([once(server, 'message').then(([message]) => message), exited]);
  const { port, version } = await reply();
  const isIncremental = !version.startsWith('16.');
  const state = async () => {
    server.send('state');
    return await reply();
  };
  const traffic = async (roles, duration) => {
    const env = { SOAK_PORT: `${port}`, SOAK_SEED: `${seed}`, SOAK_INCREMENTAL: `${isIncremental}` };
    const children = roles.map((role) => run(role, env));
    const results = Promise.all(children.map((it) => once(it, 'message').then(([message]) => message)));
    await Promise.race([sleep(duration * 1000), exited]);
    for (const it of children) it.send('stop');
    const messages = await results;
    for (const it of children) it.kill();
    return messages;
  };
  try {
    const [alone] = await traffic(['normal'], Math.min(30, seconds));
    await traffic(['normal', 'malicious'], Math.min(60, seconds));
    await sleep(SETTLE);
    const before = await state();
    const [normal, malicious] = await traffic(['normal', 'malicious'], seconds);
    await sleep(SETTLE);
    const after = await state();
    report({ version, seconds, alone, normal, malicious, before, after });
    check(before, after, [...alone.faults, ...normal.faults]);
  } finally {
    server.removeAllListeners('exit');
    server.kill();
    rmSync(folder, { recursive: true });
  }
}

function report({ version, seconds, alone, normal, malicious, before, after }) {
  console.log(
    `${seconds} seconds with graphql ${version} on Node ${process.versions.node}; attacks: ${JSON.stringify(malicious)}`,
  );
  for (const name of Object.keys(normal.latencies)) {
    const show = ({ count, p50, p99, max }) =>
      `${count} × p50 ${p50.toFixed(1)} p99 ${p99.toFixed(1)} max ${max.toFixed(0)} ms`;
    console.log(
      `${name.padEnd(10)} alone: ${show(alone.latencies[name])}; with malicious traffic: ${show(normal.latencies[name])}`,
    );
  }
  console.log('before', JSON.stringify(before));
  console.log('after ', JSON.stringify(after));
}

/** Prints everything that is wrong after the traffic, and sets the exit code. */
function check(before, after, faults) {
  const problems = [...faults.map((fault) => `a normal client: ${fault}`), ...after.faults];
  for (const name of ['files', 'temporaryFiles', 'sockets', 'timers', 'resources', 'namedTemporaryFiles']) {
    if (after[name] > before[name]) problems.push(`${name}: ${before[name]} before, ${after[name]} after`);
  }
  const growth = after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers;
  if (growth > HEAP_TOLERANCE) problems.push(`the heap has grown by ${growth} bytes`);
  for (const [name, count] of Object.entries(after.subscriptions)) {
    if (count > 0) problems.push(`${name}: ${count} are left`);
  }
  for (const problem of problems) console.log(`✗ ${problem}`);
  console.log(problems.length === 0 ? 'nothing has grown' : `${problems.length} problems`);
  if (problems.length > 0) process.exitCode = 1;
}
