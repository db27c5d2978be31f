/**
 * A topic is one file, bench/<topic>.mjs, that exports a description of the measurement and runs it.
 *
 *   import { runTopic } from './harness.mjs';
 *
 *   export const topic = {
 *     name: 'server',                          // results/server.json
 *     title: 'createServer',
 *     about: 'One paragraph for docs/benchmarks.md.',
 *     packages: ['express', 'fastify'],        // their versions are printed on top
 *     ratios: ['bare node:http'],              // peers that every row is divided by
 *     contestants: {
 *       // Runs in its own process, pinned to core 0. Import everything inside, so that no other contestant loads it.
 *       // Returns a listener `(req, res)`, a server (listening or not), or `{ port, cpu?, close? }` for a server that
 *       // runs elsewhere (`cpu()` = microseconds used so far; see cpuOfProcesses for nginx or a cluster).
 *       'bare node:http': async () => (req, res) => res.end('hello'),
 *       'express': async () => (await import('express')).default().get('/', (req, res) => res.end('hello')),
 *     },
 *     loads: [
 *       { name: 'hello', requests: [{ path: '/' }], expect: { status: 200, body: 'hello' } },
 *     ],
 *   };
 *   await runTopic(import.meta.url, topic);
 *
 * A load is
 *   name         the table's heading
 *   requests     [{ method, path, headers, body }], used in turn; or a function of an index (with the number of requests as `distinct`)
 *   expect       { status = 200, body?, headers? }: checked before the measurement; the status of every response is
 *   check        (response, contestant) => void, throws when a response is wrong; { status, headers, body: Buffer }
 *   connections  32 keep-alive connections by default; `count` 20000 requests a round, `warmup` as many as that by default
 *   least        the smallest count whatever the scale, for a load whose name contains it; as many as connections by default
 *   contestants  the names of the contestants to measure, default all
 *   drive        instead of requests: async ({ port, count, warming, contestant }) => { operations, ...figures }, run in
 *                the load generator's process (WebSockets, uploads, slow readers); figures appear in the table as they are
 *   unit         the name of an operation, default 'request'
 *   fresh        true: a new server process each round (for memory)
 *   columns      figures to show next to the CPU time: 'rssMiB', 'peakRssMiB', or names that `drive` returns
 *
 * Each contestant is its own process; the server's CPU time (user + system, all threads) is measured around a
 * fixed load, in rounds that interleave the contestants. The results are medians. The load generator has its own core.
 *
 * Command line:  --quick  --rounds=N  --only=<load or contestant, regexp>  --scale=0.1 (share of the count)  --help
 * BENCH_NODE=/path/to/node measures the servers under another Node; from 22.15 on BENCH_GRAPHQL=17 does so on graphql 17.
 * BENCH_RESULT=name writes results/name.json. Before the first run: npm install here.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { given } from './lib/arguments.mjs';
import { environment } from './lib/environment.mjs';
import { installEspalier } from './lib/install-espalier.mjs';
import { measureLoad } from './lib/measure.mjs';
import { tables } from './lib/report.mjs';

export { cpuOfProcesses } from './lib/cpu.mjs';
export { once } from './lib/http-load.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/**
 * Measures a topic when its file is the program, and returns the result; does nothing when a server or load process
 * imports it.
 */
export async function runTopic(url, topic) {
  if (process.env.BENCH_ROLE !== undefined || process.argv[1] !== fileURLToPath(url)) return;
  if (process.argv.includes('--help')) {
    console.log(helpFor(topic));
    return;
  }
  const settings = commandLine();
  installEspalier();
  const result = {
    name: topic.name,
    title: topic.title,
    about: topic.about,
    ...environment(topic),
    loads: [],
  };
  console.log(tables({ ...result, loads: [] }));
  for (const load of topic.loads) {
    const all = load.contestants ?? Object.keys(topic.contestants);
    const names = all.filter((name) => settings.only.test(load.name) || settings.only.test(name));
    const ratios = load.ratios ?? topic.ratios ?? [];
    // Also when --only leaves only the peers that others are compared with.
    if (names.length < all.length && names.every((name) => ratios.includes(name))) continue;
    const rows = await measureLoad(url, load, names, settings);
    result.loads.push({
      name: load.name,
      unit: load.unit ?? 'request',
      ratios,
      columns: load.columns ?? [],
      rows,
    });
    console.log(tables({ loads: result.loads.slice(-1) }));
  }
  mkdirSync(here('results'), { recursive: true });
  const name = process.env.BENCH_RESULT ?? topic.name;
  writeFileSync(here(`results/${name}.json`), `${JSON.stringify(result, null, 2)}\n`);
  return result;
}

function helpFor({ name, loads, contestants }) {
  return [
    `node bench/${name}.mjs [--quick] [--rounds=N] [--scale=0.1] [--only=<load or contestant, regexp>]`,
    `loads: ${loads.map((load) => load.name).join(' | ')}`,
    `contestants: ${Object.keys(contestants).join(' | ')}`,
  ].join('\n');
}

function commandLine() {
  const quick = process.argv.includes('--quick');
  return {
    rounds: Number(given('rounds') ?? (quick ? 2 : 5)),
    scale: Number(given('scale') ?? (quick ? 0.2 : 1)),
    only: new RegExp(given('only') ?? ''),
  };
}
