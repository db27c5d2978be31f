/**
 * Random sites with random options of `staticFiles`, random requests, and deployments between and during them. Each response is
 * compared with a model of the documentation (lib/site-model.mjs): status, headers and bytes, and one body for each ETag, ever. A
 * request during a deployment must get an answer that was right at some time since it was sent.
 *
 *   node --expose-gc bench/sites-model.mjs [--requests=2000] [--seed=1] [--deployments=5] [--site=n]
 *
 * A difference is printed with the command that repeats its site. Exits with 1 if there was one, or if descriptors or memory are
 * left at the end.
 */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { Agent, createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { staticFiles } from '../dist/static.mjs';
import { given } from './lib/arguments.mjs';
import { openFiles } from './lib/open-files.mjs';
import { Dice, Folder, makeRequest, makeSetup, OUTSIDE } from './lib/random-site.mjs';
import { expected } from './lib/site-model.mjs';
import { compare, isPossible, reuse } from './lib/site-response.mjs';

const requests = Number(given('requests', 2000));
const seed = Number(given('seed', 1));
const deployments = Number(given('deployments', 5));
const onlySite = given('site', undefined);
const agent = new Agent({ keepAlive: true, maxSockets: 32 });
const counts = { sites: 0, deployments: 0, requests: 0, during: 0, mixed: 0, warnings: 0, differences: 0 };
/** How often the model expected each kind of response, with its status. */
const outcomes = {};
/** The body of each ETag, ever. */
const bodies = new Map();
// Mistakes in rules are warnings.
process.removeAllListeners('warning').on('warning', () => counts.warnings++);

await run(onlySite === undefined ? 8 : 0, 1e9, 1e6);
bodies.clear();
const before = await figures();
await run(onlySite === undefined ? Number.POSITIVE_INFINITY : 1, Number(onlySite ?? 0), requests);
bodies.clear();
const after = await figures();
console.table({ before, after });
console.log(JSON.stringify(counts), JSON.stringify(outcomes));
const isLeft = after.files > 0 || after.sockets > before.sockets || after.heapMiB > before.heapMiB + 8;
if (isLeft) console.error('descriptors or memory are left');
process.exitCode = isLeft || counts.differences > 0 ? 1 : 0;

async function run(sites, first, limit) {
  const from = counts.requests;
  for (let n = 0; n < sites && counts.requests - from < limit && counts.differences < 10; n++)
    await serveSite(first + n);
}

async function figures() {
  agent.destroy();
  await new Promise((done) => setTimeout(done, 300));
  global.gc?.();
  const open = openFiles();
  return {
    files: open.filter((target) => target.includes('espalier-sites-')).length,
    sockets: open.filter((target) => target.startsWith('socket:')).length,
    heapMiB: Math.round((process.memoryUsage().heapUsed / 2 ** 20) * 10) / 10,
  };
}

/** One site with its deployments. */
async function serveSite(number) {
  const base = mkdtempSync(join(tmpdir(), 'espalier-sites-'));
  const dice = new Dice(seed * 1e5 + number);
  const { setup, options } = makeSetup(dice, join(base, 'kept'));
  writeFileSync(join(base, 'outside.txt'), OUTSIDE.bytes);
  const roots = join(base, 'roots');
  mkdirSync(roots);
  const folders = (setup.hasRoots ? ['one', 'two'] : ['one']).map(
    (name) => new Folder(dice, setup, join(roots, name), join(base, 'outside.txt')),
  );
  const root = setup.hasRoots ? (req) => req.headers['x-site'] : join(roots, 'one');
  const files = staticFiles(root, setup.hasRoots ? { ...options, roots } : options);
  const open = new Set();
  const server = createServer({ keepAliveTimeout: 0 }, (req, res) => {
    open.add(res);
    res.once('close', () => open.delete(res));
    req.originalUrl = req.url;
    req.url = req.url.slice(setup.mount.length);
    files(req, res, (error) =>
      res.writeHead(418, { 'x-error': String(error?.status ?? 'none') }).end(error?.stack),
    );
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const run = {
    number,
    dice,
    setup,
    folders,
    port: server.address().port,
    seen: new Map(),
    known: new Map(),
    bodies,
    stored: new WeakMap(),
    base,
    isQuiet: false,
  };
  try {
    for (let n = 0; n <= deployments && counts.differences < 10; n++) {
      // A file that was written a moment ago has no ETag and no copies yet.
      await new Promise((done) => setTimeout(done, 40));
      run.isQuiet = true;
      for (let sent = 0; sent < 200; sent += 8)
        await Promise.all(Array.from({ length: 8 }, () => exchange(run)));
      run.isQuiet = false;
      noteKept(run);
      if (n < deployments) await deploy(run);
    }
  } finally {
    files.close();
    await closed(server, open);
    rmSync(base, { recursive: true });
  }
  counts.sites++;
}

/** Waits until the server is closed. All responses have arrived, so none may still be open in the server. */
async function closed(server, open) {
  const watchdog = setTimeout(() => {
    counts.differences++;
    console.error(
      `\nno end of ${JSON.stringify([...open].map(({ req }) => [req.method, req.originalUrl, req.headers]))}`,
    );
    server.closeAllConnections();
  }, 20_000);
  await new Promise((done) => server.close(done));
  clearTimeout(watchdog);
}

async function deploy(run) {
  const { dice, setup } = run;
  const open = [];
  const steps = 2 + dice.below(6);
  for (let step = 0; step < steps; step++) {
    const folder = dice.pick(run.folders);
    for (let sent = 0; sent < 6; sent++) open.push(exchange(run));
    await new Promise(setImmediate);
    folder.step(step === 0 && dice.chance(0.6));
    if (setup.pages && dice.chance(0.2)) {
      setup.pages.config = { version: setup.pages.config.version + 1 };
      for (const each of run.folders) each.become({});
    }
    counts.during += 6;
  }
  await Promise.all(open);
  counts.deployments++;
  // The server reads the new rules before the next ones: a mistake in those keeps the last that it has read.
  for (const folder of run.folders)
    await send(run, { method: 'GET', path: '/', query: '', headers: {}, folder });
  noteKept(run);
}

/** Which copies are complete: the requests for these files must get them from now on. */
function noteKept({ setup, folders: [folder], base }) {
  if (!setup.keep) return;
  const assets = join(base, 'kept', 'assets');
  const names = existsSync(assets) ? readdirSync(assets).filter((name) => !name.startsWith('.')) : [];
  for (const name of names) folder.site.kept.set(`/assets/${name}`, readFileSync(join(assets, name)));
}

async function exchange(run) {
  const { dice, setup, seen } = run;
  const folder = dice.pick(run.folders);
  const asked = makeRequest(dice, { setup, folder, seen });
  asked.folder = folder;
  if (setup.hasRoots && dice.chance(0.05))
    asked.stray = dice.pick(['..', '/etc', 'none', '../outside.txt', 'one/../..', '.']);
  const { isQuiet } = run;
  const sentAt = performance.now() - (setup.cache?.revalidateAfter ?? 0) - 1;
  const got = await send(run, asked);
  counts.requests++;
  const { kind } = expected(folder.site, setup, asked);
  outcomes[`${kind} ${got.status}`] = (outcomes[`${kind} ${got.status}`] ?? 0) + 1;
  const sites = folder.since(sentAt);
  let difference;
  for (const site of sites) {
    difference =
      compare(run, asked, got, site) ?? (sites.length === 1 ? reuse(run, asked, got, site) : undefined);
    if (difference === undefined) return;
  }
  // Between two steps a response may combine both, such as the page of one and the rules of the other.
  if ((sites.length > 1 || !isQuiet) && isPossible(got, sites)) return void counts.mixed++;
  report(run, asked, got, sites.at(-1), difference);
}

function send({ port, setup }, { method, path, query, headers, folder, stray }) {
  const target = setup.mount + path + (query && `?${query}`);
  const site = setup.hasRoots ? { 'x-site': stray ?? folder.place.split('/').at(-1) } : {};
  return new Promise((resolve, reject) => {
    const sent = request({ port, method, path: target, headers: { ...headers, ...site }, agent }, (res) => {
      const chunks = [];
      res.on('data', (chunk) => chunks.push(chunk));
      res.on('error', reject);
      res.on('end', () =>
        resolve({ status: res.statusCode, headers: res.headers, body: Buffer.concat(chunks) }),
      );
    });
    sent.on('error', reject);
    sent.setTimeout(20_000, () =>
      sent.destroy(new Error(`no response to ${method} ${target} ${JSON.stringify(headers)}`)),
    );
    sent.end();
  });
}

function report({ number, setup }, asked, got, site, difference) {
  counts.differences++;
  const { folder: _folder, ...sent } = asked;
  const want = expected(site, setup, asked);
  console.error(`\n${difference}\n  --seed=${seed} --site=${number}`);
  console.error(`  sent ${JSON.stringify(sent)}\n  want ${JSON.stringify(want)}`);
  console.error(
    `  got ${got.status} ${JSON.stringify(got.headers)} ${got.body.toString('latin1').slice(0, 90)}`,
  );
  if (counts.differences > 1) return;
  const files = [...site.files].map(
    ([path, { date, copies }]) => `${path} ${date ?? ''} ${Object.keys(copies)}`,
  );
  console.error(`  setup ${JSON.stringify(setup)}`);
  console.error(`  site ${JSON.stringify({ files, folders: [...site.folders], rules: site.rules })}`);
}
