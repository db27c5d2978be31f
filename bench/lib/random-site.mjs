// Random sites, options, deployments and requests for sites-model.mjs. A site is both the files on the disk and what the model
// knows of them; each step of a deployment replaces the model's site, so that a request keeps the ones of its time.
import { mkdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const FOLDERS = [
  '',
  '',
  'a/',
  'a/b/',
  'shop/',
  'shop/admin/',
  'en/',
  'de/',
  'de/a/',
  'pt-BR/',
  'ü x/',
  'assets/',
];
const NAMES = [
  'index.html',
  '404.html',
  'a.html',
  'b.html',
  'v1.2.html',
  'app.js',
  'data.json',
  'note',
  'photo.png',
];
const RARE = [
  '.env',
  '.dot/a.html',
  '.well-known/security.txt',
  'large.bin',
  'empty.txt',
  "it's 100%.txt",
  'q?.txt',
];
const REDIRECTS = [
  { from: '/old/*', to: '/a/:splat', status: 301 },
  { from: '/a/app.js', to: '/b', status: 302, isForced: true },
  { from: '/p/:id', to: '/data.json?id=:id', status: 307 },
  { from: '/store', query: { id: ':id' }, to: '/products/:id', status: 301 },
  { from: '/store', query: { kind: 'new' }, to: '/a/', status: 302 },
  { from: '/rw', to: '/data.json', status: 200 },
  { from: '/spa/*', to: '/a/index.html', status: 200 },
  { from: '/de/gone/*', to: '/de/404.html', status: 404 },
  { from: '/a', to: '/shop', status: 308, isForced: true },
  { from: '/gone', to: '/404.html', status: 404 },
];
const HEADERS = [
  { from: '/*', headers: { 'x-all': '1' } },
  { from: '/a/*', headers: { 'x-a': '2', 'cache-control': 'no-store' } },
  { from: '/shop/:page', headers: { 'x-a': '3' } },
  { from: '/data.json', headers: { 'x-a': '4', vary: 'Origin' } },
  { from: '/de/*', headers: { 'x-all': 'de' } },
];

/** Numbers from 0 to 1 from a seed (mulberry32). */
export class Dice {
  constructor(seed) {
    this.state = seed >>> 0;
  }
  next() {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
  below(count) {
    return Math.floor(this.next() * count);
  }
  pick(list) {
    return list[this.below(list.length)];
  }
  chance(share) {
    return this.next() < share;
  }
  some(list, share) {
    return list.filter(() => this.chance(share));
  }
}

/** What the model has to know of the options, and the options. */
export function makeSetup(dice, keepDirectory) {
  const mode = dice.pick(['plain', 'html', 'extensions', 'clean', 'no-slash', 'slash']);
  const isPlain = mode === 'plain';
  const rules = dice.pick([undefined, undefined, true, true, 'option']);
  const cacheControl = dice.pick([
    undefined,
    /^\/assets\//,
    /^\/assets\//,
    '1h',
    [/^\/assets\//, '1h'],
    'no-store',
    false,
  ]);
  const hasRoots = dice.chance(0.2);
  const setup = {
    mode,
    urls: mode.endsWith('slash') ? mode : undefined,
    fallback: isPlain ? undefined : dice.pick([undefined, 'index.html', 'nearest', 'nearest']),
    notFound: isPlain ? undefined : dice.pick([undefined, '404.html', 'nearest', 'nearest']),
    rules,
    fixed: rules === 'option' ? makeRules(dice) : undefined,
    languages:
      isPlain || dice.chance(0.6)
        ? []
        : dice.pick([
            ['en', 'de'],
            ['de', 'en', 'pt-BR'],
          ]),
    cookie: dice.chance(0.5) ? 'lang' : undefined,
    keep: !hasRoots && `${cacheControl}`.includes('assets') && dice.chance(0.85),
    copies: dice.pick([[], ['br', 'gzip'], ['gzip'], ['gzip', 'br']]),
    compress: dice.chance(0.25),
    pages: dice.chance(0.2) ? { config: { version: 0 }, csp: dice.chance(0.5) } : undefined,
    listing: !isPlain && dice.chance(0.25),
    cache: dice.pick([undefined, undefined, false, { maxBytes: 20_000 }, { revalidateAfter: 30 }]),
    fallthrough: dice.chance(0.7),
    dotfiles: dice.pick(['ignore', 'ignore', 'deny', 'allow']),
    symlinks: dice.pick(['inside', 'inside', 'follow']),
    etag: dice.pick(['content', 'content', 'content', 'stat', false]),
    cacheControl,
    hasRoots,
    mount: dice.chance(0.3) ? '/mnt' : '',
  };
  return { setup, options: optionsOf(setup, keepDirectory) };
}

function optionsOf(setup, directory) {
  const { mode, rules, fixed, languages, cookie, copies, pages } = setup;
  return {
    ...(mode === 'html' || mode === 'extensions' ? { html: true } : {}),
    ...(mode === 'extensions' ? { extensions: 'html' } : {}),
    ...(mode === 'plain' || mode === 'html' || mode === 'extensions'
      ? {}
      : { cleanUrls: setup.urls ?? true }),
    fallback: setup.fallback,
    notFound: setup.notFound,
    missing: 'allow',
    rules: rules === 'option' ? { redirects: lines(fixed.redirects), headers: blocks(fixed.headers) } : rules,
    variants: languages.length > 0 ? { language: languages, cookie } : [],
    keep: setup.keep ? { directory } : undefined,
    precompressed: copies,
    compress: setup.compress,
    pages: pages && { config: () => pages.config, csp: pages.csp },
    listing: setup.listing,
    cache: setup.cache,
    fallthrough: setup.fallthrough,
    dotfiles: setup.dotfiles,
    symlinks: setup.symlinks,
    etag: setup.etag,
    cacheControl: setup.cacheControl,
  };
}

const makeRules = (dice) => ({ redirects: dice.some(REDIRECTS, 0.7), headers: dice.some(HEADERS, 0.7) });
const lines = (redirects) =>
  redirects
    .map(({ from, query = {}, to, status, isForced }) =>
      [
        from,
        ...Object.entries(query).map((pair) => pair.join('=')),
        to,
        `${status}${isForced ? '!' : ''}`,
      ].join('  '),
    )
    .join('\n');
const blocks = (headers) =>
  headers
    .map(({ from, headers: set }) =>
      [from, ...Object.entries(set).map((pair) => `  ${pair.join(': ')}`)].join('\n'),
    )
    .join('\n');

let lastVersion = 0;

/** A folder on the disk and the sites that were there, the newest last. */
export class Folder {
  constructor(dice, setup, place, outside) {
    Object.assign(this, { dice, setup, place, outside, releases: 0 });
    const rules = setup.fixed ?? { redirects: [], headers: [] };
    this.history = [{ since: 0, site: { files: new Map(), folders: new Set(), kept: new Map(), rules } }];
    this.release(rules);
  }

  get site() {
    return this.history.at(-1).site;
  }

  /** The sites from a time on, the newest last. */
  since(time) {
    const first = this.history.findLastIndex(({ since }) => since <= time);
    return this.history.slice(Math.max(0, first)).map(({ site }) => site);
  }

  become(changes) {
    this.history.push({ since: performance.now(), site: { ...this.site, ...changes } });
    if (this.history.length > 200) this.history.shift();
  }

  /** Makes a whole new folder, and switches the link to it. */
  release(rules = this.site.rules) {
    const folder = `${this.place}-${this.releases++}`;
    mkdirSync(folder, { recursive: true });
    const old = this.site;
    const next = { files: new Map(), folders: new Set(['']) };
    const paths = new Set(Array.from({ length: 22 }, () => this.path()));
    paths.add('/index.html').add('/404.html');
    for (const path of paths) this.write(folder, next, path, old.files.get(path));
    const mistaken = this.setup.rules === true ? this.writeRules(folder, rules) : { rules };
    if (this.dice.chance(0.3)) {
      symlinkSync(this.outside, join(folder, 'out.txt'));
      next.files.set('/out.txt', { ...OUTSIDE, isOutside: true });
    }
    symlinkSync(folder, `${this.place}.next`);
    renameSync(`${this.place}.next`, this.place);
    this.become({ ...next, rules: mistaken.rules });
    if (this.folder !== undefined) rmSync(this.folder, { recursive: true });
    this.folder = folder;
  }

  path() {
    const { dice } = this;
    if (dice.chance(0.12)) return `/${dice.pick(RARE)}`;
    if (dice.chance(0.25))
      return `/assets/app-${dice.pick(['DiwrgTda', 'B3xk9f2q', 'Cz81mmPQ'])}.${dice.pick(['js', 'css'])}`;
    return `/${dice.pick(FOLDERS)}${dice.pick(NAMES)}`;
  }

  /** Writes a file beside its place and renames it, as rsync does. A hashed name always has the same bytes. */
  write(folder, into, path, before) {
    const { dice } = this;
    const isHashed = path.startsWith('/assets/');
    const file = before !== undefined && (isHashed || dice.chance(0.3)) ? { ...before } : this.content(path);
    const at = join(folder, path);
    mkdirSync(dirname(at), { recursive: true });
    writeFileSync(join(folder, '.new'), file.bytes);
    file.date = dice.chance(0.7) ? 1e9 + dice.below(1e8) : undefined;
    if (file.date !== undefined) utimesSync(join(folder, '.new'), 1e9, file.date);
    for (const coding of ['br', 'gzip']) rmSync(`${at}${ENDINGS[coding]}`, { force: true });
    renameSync(join(folder, '.new'), at);
    file.copies = {};
    if (file.bytes.length < 100_000 && dice.chance(0.4)) this.copy(at, file);
    into.files.set(path, file);
    for (let end = path.indexOf('/', 1); end > 0; end = path.indexOf('/', end + 1))
      into.folders.add(path.slice(0, end));
  }

  content(path) {
    const { dice } = this;
    const id = `#${path} ${path.startsWith('/assets/') ? 'hashed' : ++lastVersion}#`;
    const padding = 'so it goes. '.repeat(path.startsWith('/assets/') ? 150 : dice.pick([0, 3, 150, 400]));
    let text = `${id} ${padding}`;
    if (path.endsWith('.html'))
      text = `<!doctype html><html><head><title>${id}</title></head><body>${text}</body></html>`;
    if (path.endsWith('large.bin')) text = id.repeat(30_000);
    return { id, bytes: Buffer.from(path.endsWith('empty.txt') ? '' : text) };
  }

  copy(at, file) {
    const { dice } = this;
    const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 3 } };
    for (const coding of dice.some(['br', 'gzip'], 0.7)) {
      const isWrong = dice.chance(0.1);
      const bytes = isWrong ? Buffer.from(`${file.bytes}!`) : file.bytes;
      const coded = coding === 'br' ? brotliCompressSync(bytes, quality) : gzipSync(bytes, { level: 3 });
      writeFileSync(`${at}${ENDINGS[coding]}`, coded);
      if (!isWrong) file.copies[coding] = coded;
    }
  }

  writeRules(folder, before) {
    const { dice } = this;
    const next = makeRules(dice);
    const rules = {};
    const put = (name, key, text, mistake) => {
      const isMistaken = dice.chance(0.25);
      writeFileSync(join(folder, '.new'), isMistaken ? `${text}\n${mistake}\n` : text);
      renameSync(join(folder, '.new'), join(folder, name));
      rules[key] = isMistaken ? before[key] : next[key];
    };
    put('_redirects', 'redirects', lines(next.redirects), '/x https://h.example/ 200');
    put('_headers', 'headers', blocks(next.headers), '/x\n  ETag: "1"');
    return { rules };
  }

  /** One step of a deployment. */
  step(mayRelease) {
    const { dice, folder, site } = this;
    if (mayRelease && dice.chance(0.5)) return this.release();
    if (this.setup.rules === true && mayRelease) return this.become(this.writeRules(folder, site.rules));
    const files = new Map(site.files);
    const folders = new Set(site.folders);
    const paths = [...files.keys()].filter((path) => !files.get(path).isOutside);
    const path = dice.chance(0.5) ? dice.pick(paths) : this.path();
    if (files.has(path) && dice.chance(0.4)) {
      for (const end of ['', '.br', '.gz']) rmSync(join(folder, `${path}${end}`), { force: true });
      files.delete(path);
    } else this.write(folder, { files, folders }, path, files.get(path));
    this.become({ files, folders });
  }
}

const ENDINGS = { br: '.br', gzip: '.gz' };
export const OUTSIDE = { id: '#outside#', bytes: Buffer.from('#outside# of the folder'), copies: {} };

const encode = (path) => path.split('/').map(encodeURIComponent).join('/');
const ENCODINGS = [
  'gzip',
  'br',
  'gzip, br',
  'br;q=0.5, gzip',
  '*',
  'gzip;q=0',
  'identity',
  'gzip;q=0.2, identity;q=0.7',
  'br;q=0, *',
];
const LANGUAGES = [
  'de',
  'de-CH',
  'fr',
  'en;q=0.5, de',
  'pt-BR',
  'pt',
  'de-CH-1996, en;q=0.9',
  'en, de;q=0',
  '*',
];
const RANGES = [
  'bytes=0-9',
  'bytes=5-',
  'bytes=-7',
  'bytes=0-1,5-6',
  'bytes=0-5,3-9',
  'bytes=9999999-',
  'bytes=9-2',
  'bytes=x',
  'bytes=-0',
];

/** @param seen - the ETags that a target had */
export function makeRequest(dice, { setup, folder, seen }) {
  const path = randomPath(dice, folder);
  const query = dice.pick(['', '', 'q=1', 'id=7', 'kind=new', 'id=%2Fx&b']);
  const headers = {};
  const put = (share, name, value) => {
    if (dice.chance(share)) headers[name] = typeof value === 'function' ? value() : value;
  };
  put(0.6, 'accept', () =>
    dice.pick(['text/html,application/xhtml+xml,*/*;q=0.8', 'text/html', '*/*', 'application/json']),
  );
  put(0.1, 'sec-fetch-mode', () => dice.pick(['navigate', 'cors']));
  put(0.6, 'accept-encoding', () => dice.pick(ENCODINGS));
  put(0.6, 'accept-language', () => dice.pick(LANGUAGES));
  put(0.3, 'cookie', () => dice.pick(['lang=de', 'a=1; lang=en', 'lang=xx', 'lang=pt-BR; b=2']));
  const tags = seen.get(setup.mount + path) ?? [];
  const last = tags.at(-1) ?? '"b"';
  const weak = `W/${last.replace(/^W\//, '')}`;
  const tag = () => dice.pick([...tags, '"other"', '*', `"other", ${dice.pick([last, weak])}`]);
  const dates = [...folder.site.files.values(), {}].map((file) => file.date);
  const date = () => new Date((dice.pick(dates) ?? 1e9 + dice.below(1e8)) * 1000).toUTCString();
  put(0.25, 'if-none-match', tag);
  put(0.1, 'if-modified-since', date);
  put(0.06, 'if-match', tag);
  put(0.04, 'if-unmodified-since', date);
  put(0.25, 'range', () => dice.pick(RANGES));
  if (headers.range) put(0.3, 'if-range', () => dice.pick([...tags, '"other"', date(), weak]));
  const method = dice.chance(0.02) ? 'POST' : dice.chance(0.12) ? 'HEAD' : 'GET';
  return { method, path, query, headers };
}

function randomPath(dice, folder) {
  const files = [...folder.site.files.keys()];
  const file = encode(dice.chance(0.6) ? dice.pick(files) : folder.path());
  const at = dice.below(100);
  if (at < 40) return file;
  if (at < 52) return file.replace(/(?:\/index)?\.html$/, '') || '/';
  if (at < 62) return `${file.replace(/(?:\/index)?\.html$/, '')}/`;
  if (at < 70) return file.replace(/[^/]*$/, '');
  if (at < 74) return file.replace(/\/[^/]*$/, '') || '/';
  // A page without the folder of its language.
  if (at < 78) return file.replace(/^\/(?:en|de|pt-BR)(?=\/)/, '');
  if (at < 88)
    return `/${dice.pick(['old/b', 'old', 'old/ü%20x/', 'p/7', 'store', 'rw', 'rw/', 'spa/x/y', 'spa', 'de/gone/x', 'gone', 'a/b/c/d', 'shop/x', 'x/y.js', 'x.png', '_headers', '_redirects', 'out.txt', '.env']).replace('ü', '%C3%BC')}`;
  if (at < 92) return file.replace('a', '%61');
  return dice.pick([
    `/${file}`,
    `${file}//`,
    `/.${file}`,
    `/a/..${file}`,
    `/%2e%2e${file}`,
    `/a%2f..${file}`,
    '/%zz',
    '/a%00',
    '/a\\b',
    file.replace('/', '//'),
    `${file}%5c`,
  ]);
}
