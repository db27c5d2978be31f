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
import { createHash } from 'node:crypto';
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
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { staticFiles } from '../dist/static.mjs';
import { given } from './lib/arguments.mjs';
import { openFiles } from './lib/open-files.mjs';
import { Dice, Folder, makeRequest, makeSetup, OUTSIDE } from './lib/random-site.mjs';
import { evaluate, expected, hasDot, headersOf, ownPath, readPath, weigh } from './lib/site-model.mjs';

const TYPES = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  png: 'image/png',
};
const IMMUTABLE = 'public, max-age=31536000, immutable';
const DECODERS = { br: brotliDecompressSync, gzip: gunzipSync, identity: (bytes) => bytes };
const decode = (coding, bytes) => DECODERS[coding](bytes);

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
process.on('warning', () => counts.warnings++);

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
  const server = createServer((req, res) => {
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
    await new Promise((done) => server.close(done));
    rmSync(base, { recursive: true });
  }
  counts.sites++;
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

/** The first difference of a response from what the model expects of this site, if any. */
function compare(run, asked, got, site) {
  const { setup } = run;
  if (asked.stray !== undefined) return got.status === 418 ? undefined : 'a name leads out of the roots';
  const want = expected(site, setup, asked);
  if (want.kind === 'passed') return comparePassed(got, want, setup);
  if (got.status === 418) return 'passed on';
  if (want.kind === 'redirect') return compareRedirect(got, want, asked, setup);
  if (want.kind === 'listing') return compareListing(got, want, site, setup, asked);
  if (want.kind === 'gone' && got.status === 404)
    return got.headers['cache-control'] === 'no-store' && /^text\/plain/.test(got.headers['content-type'])
      ? undefined
      : 'a missing chunk';
  if (want.kind === 'gone') return site.kept.has(want.path) ? 'gone' : undefined;
  return compareFile(run, asked, got, site, want);
}

function comparePassed(got, want, setup) {
  if (want.error === 405 && !setup.fallthrough)
    return got.status === 405 && got.headers.allow === 'GET, HEAD' ? undefined : 'not a 405';
  if (got.status !== 418) return 'not passed on';
  const error = got.headers['x-error'];
  if (setup.fallthrough) return error === 'none' ? undefined : `passed with the error ${error}`;
  return want.error === undefined
    ? /^40[034]$/.test(error)
      ? undefined
      : `error ${error}`
    : error === `${want.error}`
      ? undefined
      : `error ${error}`;
}

function compareRedirect({ status, headers }, want, asked, { mount }) {
  if (status !== want.status) return 'another status of a redirect';
  const from = new URL(`http://h${mount}${asked.path}`);
  const to = new URL(headers.location, from);
  if (to.host !== 'h') return 'a redirect to another host';
  if (decodeURIComponent(to.pathname) !== mount + want.to) return `a redirect to ${to.pathname}`;
  const query = new URLSearchParams(want.query ?? asked.query);
  if (new URLSearchParams(to.search).toString() !== query.toString()) return `a redirect with ${to.search}`;
  return status !== 301 || want.isRule
    ? headers['cache-control'] === 'no-cache'
      ? undefined
      : 'a redirect that is kept'
    : undefined;
}

function compareListing(got, { path }, site, setup, asked) {
  if (got.status !== 200)
    return got.status === 304 || got.status === 412 || got.status === 206 ? undefined : 'no listing';
  if (asked.method === 'HEAD' || !/json/.test(got.headers['content-type']) || got.headers['content-encoding'])
    return undefined;
  const { symlinks, dotfiles } = setup;
  const isHidden = (at) =>
    (dotfiles !== 'allow' && hasDot(at)) || (site.files.get(at)?.isOutside && symlinks !== 'follow');
  const below = [...site.files.keys(), ...site.folders].filter((at) => at.startsWith(path) && !isHidden(at));
  const names = below
    .map((at) => at.slice(path.length))
    .filter((name) => name !== '' && !name.includes('/'))
    .sort();
  const listed = JSON.parse(got.body)
    .entries.map(({ name }) => name)
    .filter((name) => !/\.(?:br|gz)$/.test(name))
    .sort();
  return `${names}` === `${listed}` ? undefined : `a listing of ${listed}, not ${names}`;
}

/** What the client may get for a file: its bytes in each coding that it may be sent in. */
function representations(site, setup, want, asked) {
  const file =
    want.kind === 'kept' ? { bytes: site.kept.get(want.path), copies: {} } : site.files.get(want.path);
  const isMade = setup.pages !== undefined && want.path.endsWith('.html');
  const copies = isMade ? [] : setup.copies.filter((coding) => file.copies[coding]);
  const weight = (coding) => weigh(asked.headers['accept-encoding'], coding);
  let codings = [...copies, 'identity'];
  const isFree = setup.compress || want.kind === 'kept';
  if (isFree) codings = ['br', 'gzip', 'identity'].filter((coding) => weight(coding) > 0);
  else codings = codings.toSorted((a, b) => weight(b) - weight(a)).slice(0, 1);
  return { file, isMade, codings, hasCopies: copies.length > 0, isFree };
}

function compareFile(run, asked, got, site, want) {
  const { setup } = run;
  const { file, isMade, codings, hasCopies, isFree } = representations(site, setup, want, asked);
  const { headers, status, body } = got;
  if (want.status === 404) {
    if (status !== 404 || headers.etag || headers['cache-control'] !== 'no-cache')
      return 'not a page with 404';
  } else if (![200, 206, 304, 412, 416].includes(status)) return `status ${status}`;
  const hasBody = asked.method === 'GET' && (status < 300 || status === 404);
  const coding = headers['content-encoding'] ?? (hasBody || isFree ? 'identity' : codings[0]);
  const isWhole = asked.method === 'GET' && (status === 200 || status === 404);
  if (isWhole || status === 206) {
    if (!codings.includes(coding)) return `coded as ${coding}`;
    if (isWhole && Number(headers['content-length']) !== body.length) return 'another Content-Length';
  }
  if (isWhole) {
    const plain = decode(coding, body);
    if (isMade) {
      const config = JSON.stringify(setup.pages.config);
      if (!plain.includes(file.id) || !plain.includes(config)) return 'another page';
      if (setup.pages.csp && !headers['content-security-policy']) return 'no policy';
    } else if (!plain.equals(file.bytes)) return 'other bytes';
    if (!isFree && !isMade && coding !== 'identity' && !body.equals(file.copies[coding]))
      return 'another copy';
  }
  const wrong = compareHeaders(setup, asked, got, site, want, { file, isMade, hasCopies, isFree });
  if (wrong !== undefined || want.status === 404) return wrong;
  return compareConditions(run, asked, got, { file, isMade, coding, isFree, want });
}

function compareHeaders(setup, asked, { headers, status }, site, want, { file, isMade, hasCopies, isFree }) {
  if (status >= 412) return undefined;
  const { path } = readPath(asked.path);
  const rules = headersOf(site.rules.headers, path);
  if (want.isInPlace || want.isNegotiated) {
    const own = headersOf(site.rules.headers, ownPath(site, setup, want.path));
    const isOwn = want.isInPlace || !rules['cache-control'];
    const cacheControl = (isOwn ? own : rules)['cache-control'];
    Object.assign(rules, { ...own, ...rules, 'cache-control': cacheControl });
  }
  for (const [name, value] of Object.entries(rules))
    if (name.startsWith('x-') && headers[name] !== value) return `${name}: ${headers[name]}, not ${value}`;
  const cacheControl =
    want.status === 404 ? 'no-cache' : (rules['cache-control'] ?? cacheControlOf(want, setup));
  if (headers['cache-control'] !== cacheControl)
    return `Cache-Control: ${headers['cache-control']}, not ${cacheControl}`;
  const vary = (headers.vary ?? '').toLowerCase().split(/,\s*/);
  if (rules.vary && !vary.includes('origin')) return 'Vary without that of a rule';
  if (want.isNegotiated) {
    if (!vary.includes('accept-language') || (setup.cookie && !vary.includes('cookie')))
      return 'Vary without the language';
    if (want.path.endsWith('.html') && headers['content-language'] !== want.language)
      return `Content-Language: ${headers['content-language']}`;
  }
  if (hasCopies && !vary.includes('accept-encoding')) return 'Vary without the coding';
  if (!hasCopies && !isFree && vary.includes('accept-encoding')) return 'Vary with a coding';
  const type = TYPES[want.path.split('.').at(-1)];
  if (status === 200 && type && headers['content-type'] !== type)
    return `Content-Type: ${headers['content-type']}`;
  const date = headers['last-modified'];
  if (date && (isMade || want.kind === 'kept')) return 'a Last-Modified';
  return date && file.date && !hasCopies && Date.parse(date) !== file.date * 1000
    ? 'another Last-Modified'
    : undefined;
}

function cacheControlOf({ kind, path }, { cacheControl, fallback }) {
  if (kind === 'kept') return IMMUTABLE;
  for (const rule of [cacheControl ?? []].flat()) {
    if (rule === false) return undefined;
    if (rule instanceof RegExp && rule.test(path)) return IMMUTABLE;
    if (rule === 'no-store') return rule;
    if (rule === '1h' && !(fallback && path.endsWith('.html'))) return 'public, max-age=3600';
  }
  return 'public, max-age=0';
}

function compareConditions(run, asked, got, { file, isMade, coding, isFree, want }) {
  const { setup } = run;
  const { headers, status, body } = got;
  const key = `${coding} ${isMade ? `${file.id}${JSON.stringify(setup.pages.config)}` : (file.id ?? want.path)}`;
  if (asked.method === 'GET' && status === 200) {
    const hash = createHash('sha1').update(body).digest('base64');
    const known = headers.etag && bodies.get(headers.etag);
    if (known && (known.hash !== hash || known.coding !== coding)) return 'an ETag of other bytes';
    if (headers.etag) bodies.set(headers.etag, { hash, coding });
    if (setup.etag === false ? headers.etag : !headers.etag && file.bytes.length < 1e5)
      return `ETag: ${headers.etag}`;
    const isKept = isMade || (isFree && coding !== 'identity');
    for (const name of [key, headers.etag])
      run.known.set(name, { hash, tag: headers.etag, body: isKept ? body : undefined });
    const target = setup.mount + asked.path;
    if (headers.etag) run.seen.set(target, [...(run.seen.get(target) ?? []), headers.etag].slice(-4));
  }
  if (status === 412 && isFree) return undefined;
  if (status === 412)
    return /if-(?:un)?m/.test(Object.keys(asked.headers).join()) ? compareFailed(run, asked, key) : 'a 412';
  const date =
    isMade || want.kind === 'kept' ? undefined : Date.parse(headers['last-modified']) / 1000 || file.date;
  const raw = bytesOf();
  const learned = setup.etag === 'content' ? run.known.get(key)?.tag : undefined;
  const tag = headers.etag ?? learned;
  // A 416 names no ETag.
  const { range } = asked.headers;
  const conditions = status === 416 && (tag === undefined || isFree) ? { range } : asked.headers;
  const result = evaluate(
    { method: asked.method, headers: conditions },
    { tag, date, size: raw?.length ?? 200 },
  );
  if (status === 416) {
    const copies = isFree && !isMade ? Object.values(file.copies) : [];
    const sizes = [raw, ...copies].map((each) => each?.length);
    const isRight = sizes.some((size) => headers['content-range'] === `bytes */${size}`);
    return raw === undefined || want.kind === 'kept' || (result.status === 416 && isRight)
      ? undefined
      : 'a 416';
  }
  // A page whose bytes are not known yet.
  if (raw === undefined && asked.headers.range && result.status < 300)
    return [200, 206].includes(status) ? undefined : `status ${status}`;
  if (result.status !== status) return `status ${status}, not ${result.status}`;
  if (status === 304) return body.length === 0 ? undefined : 'a body of a 304';
  if (status === 206) return compareParts(got, result.ranges, raw);
  return asked.method === 'HEAD' && raw && Number(headers['content-length']) !== raw.length
    ? 'another Content-Length'
    : undefined;

  /** The bytes of the representation, if they are known. */
  function bytesOf() {
    if (isMade) return run.known.get(key)?.body;
    if (isFree && coding !== 'identity') return headers.etag && run.known.get(headers.etag)?.body;
    return coding === 'identity' ? file.bytes : file.copies[coding];
  }
}

/** A 412 is right if no ETag of the request is the one that this representation has had. */
function compareFailed({ known, setup }, asked, key) {
  const { hash } = known.get(key) ?? {};
  const match = asked.headers['if-match'];
  if (match === undefined || setup.etag === 'stat') return undefined;
  if (match === '*') return 'a 412 for *';
  return hash && setup.etag !== false && known.get(match)?.hash === hash
    ? 'a 412 for the same bytes'
    : undefined;
}

function compareParts({ headers, body }, ranges, raw) {
  const type = /^multipart\/byteranges; boundary=(.+)$/.exec(headers['content-type']);
  const parts = [];
  if (type === null) parts.push([headers['content-range'], body]);
  else
    for (const part of body.toString('latin1').split(`--${type[1]}`).slice(1, -1)) {
      const end = part.indexOf('\r\n\r\n');
      parts.push([
        /content-range: (.+)/i.exec(part)[1].trim(),
        Buffer.from(part.slice(end + 4, -2), 'latin1'),
      ]);
    }
  const sent = [];
  for (const [range, bytes] of parts) {
    const [, first, last, size] = (/^bytes (\d+)-(\d+)\/(\d+)$/.exec(range) ?? []).map(Number);
    if (size !== raw.length || !raw.subarray(first, last + 1).equals(bytes))
      return `the part ${range} of other bytes`;
    sent.push([first, last]);
  }
  const covers = ([start, end]) => sent.some(([first, last]) => first <= start && end <= last);
  return ranges.every(covers) ? undefined : 'missing parts';
}

/** RFC 9111 §4.1: whether a cache would have answered this request with an earlier response that is another one. */
function reuse({ stored, setup }, asked, { status, headers, body }, site) {
  const { method, path, query } = asked;
  if (method !== 'GET' || asked.stray || /if-|range/.test(Object.keys(asked.headers).join()))
    return undefined;
  const responses = stored.get(site) ?? stored.set(site, new Map()).get(site);
  const list = responses.get(path + query) ?? responses.set(path + query, []).get(path + query);
  const plain = status === 418 ? '' : decode(headers['content-encoding'] ?? 'identity', body);
  const outcome = `${status} ${headers.location} ${createHash('sha1').update(plain).digest('hex')}`;
  const names = (headers.vary ?? '')
    .toLowerCase()
    .split(/,\s*/)
    .filter((name) => name !== '' && name !== 'origin');
  const other = list.find(
    (each) =>
      each.names.every((name) => each.headers[name] === asked.headers[name]) && each.outcome !== outcome,
  );
  if (status !== 418 && headers['cache-control'] !== 'no-store')
    list.push({ names, headers: asked.headers, outcome });
  return other === undefined || setup.compress ? undefined : `a cache would send ${JSON.stringify(other)}`;
}

/** Whether a response during a deployment has only bytes of the time since its request. */
function isPossible({ status, headers, body }, sites) {
  if (status >= 500) return false;
  if (status !== 200 || body.length === 0) return true;
  const plain = decode(headers['content-encoding'] ?? 'identity', body);
  return /json|plain/.test(headers['content-type']) && !plain.includes('#/')
    ? true
    : sites.some(({ files }) =>
        [...files.values()].some(({ id, bytes }) => bytes.equals(plain) || plain.includes(id)),
      );
}
