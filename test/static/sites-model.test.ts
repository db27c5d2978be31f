/** @tags once */
import { rmSync, writeFileSync } from 'node:fs';
import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { staticFiles } from '../../middleware/static.ts';
import type { StaticFilesOptions } from '../../types/static.ts';
import * as kit from '../kit.ts';
import { bare, put } from './fixture.ts';

// Random sites with random options, and random requests for them, against a model of docs/static-files.md, static-sites.md and
// static-rules.md. SITES=500 REQUESTS=60 sends more than 100 000, SEED=n another one.
const SITES = Number(process.env['SITES'] ?? 12);
const REQUESTS = Number(process.env['REQUESTS'] ?? 100);

let seed = Number(process.env['SEED'] ?? 1);
const random = (below: number): number => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return Math.floor((seed / 2 ** 32) * below);
};
const oneOf = <T>(list: readonly T[]): T => list[random(list.length)] as T;
const chance = (share: number): boolean => random(1000) < share * 1000;

const FOLDERS = ['', 'a/', 'a/b/', 'en/', 'de/', 'de/a/', 'ü x/'];
const NAMES = ['index.html', '404.html', 'a.html', 'b.html', 'v1.2.html', 'app.js', 'data.json', 'note'];
const REDIRECTS =
  '/old/* /a/:splat 301\n/a/app.js /b 302!\n/p/:id /data.json?id=:id 307\n/rw /data.json 200\n';
const HEADERS = '/*\n  X-All: 1\n/a/*\n  X-A: 2\n  Cache-Control: no-store\n';
const LANGUAGES = ['en', 'de'];

type Site = Map<string, string>;
interface Setup {
  readonly mode: 'html' | 'clean' | 'no-slash' | 'slash';
  readonly fallback: 'index.html' | 'nearest' | undefined;
  readonly notFound: '404.html' | 'nearest' | undefined;
  readonly hasRules: boolean;
  readonly hasLanguages: boolean;
}

type Expected =
  | {
      readonly kind: 'file';
      readonly path: string;
      readonly status: 200 | 404;
      readonly url: string;
      readonly negotiated?: boolean;
    }
  | { readonly kind: 'redirect'; readonly status: number; readonly to: string }
  | { readonly kind: 'passed' };

const isAsset = (path: string): boolean => /\.(?:js|json)$/.test(path);
/** The folders of each site. A file that is removed leaves its folder. */
const foldersOf = new WeakMap<Site, Set<string>>();
const isFolder = (site: Site, path: string): boolean => foldersOf.get(site)?.has(path) === true;

function addFolders(site: Site, path: string): void {
  const folders = foldersOf.get(site) ?? new Set();
  foldersOf.set(site, folders);
  for (let end = path.indexOf('/', 1); end > 0; end = path.indexOf('/', end + 1))
    folders.add(path.slice(0, end));
}

/** The one URL of a page with the option `cleanUrls`. */
function urlOf(site: Site, file: string, mode: Setup['mode']): string {
  if (!file.endsWith('.html')) return file;
  const stem = file.replace(/\/index\.html$/, '').replace(/\.html$/, '');
  if (stem === '') return '/';
  const isBoth = site.has(`${stem}.html`) && site.has(`${stem}/index.html`);
  const hasSlash = isBoth ? file.endsWith('/index.html') : mode === 'slash';
  return hasSlash ? `${stem}/` : stem;
}

/** What a path leads to, without rules, languages and the pages for missing files. */
function lookUp(site: Site, path: string, { mode }: Setup): Expected | undefined {
  const stem = path.replace(/\/$/, '');
  const index = `${stem}/index.html`;
  const page = `${stem}.html`;
  const has = (file: string): boolean => site.has(file) && !(isAsset(stem) && file !== path);
  const file = (found: string): Expected => ({ kind: 'file', path: found, status: 200, url: path });
  if (mode === 'html' || mode === 'clean') {
    if (path.endsWith('/')) return site.has(index) ? file(index) : undefined;
    if (site.has(path)) return file(path);
    if (mode === 'clean' && has(page)) return file(page);
    return isFolder(site, path) ? { kind: 'redirect', status: 301, to: `${path}/` } : undefined;
  }
  const found = (path.endsWith('/') ? [index, page] : [path, page, index]).find(has);
  if (found !== undefined) {
    const url = urlOf(site, found, mode);
    return url === path ? file(found) : { kind: 'redirect', status: 308, to: url };
  }
  return !path.endsWith('/') && isFolder(site, path)
    ? { kind: 'redirect', status: 301, to: `${path}/` }
    : undefined;
}

interface Asked {
  readonly path: string;
  readonly isNavigation: boolean;
  readonly languages: readonly string[];
}

function expected(site: Site, asked: Asked, setup: Setup): Expected {
  const { path, isNavigation, languages } = asked;
  const rule = setup.hasRules ? ruleFor(path) : undefined;
  if (rule?.isForced === true) return rule.action;
  const own = lookUp(site, path, setup);
  const hasLanguage = /^\/(?:en|de)(?:\/|$)/.test(path);
  if (setup.hasLanguages && !hasLanguage) {
    if (own?.kind === 'file' && own.path.endsWith('.html')) {
      const best = languages.find((each) => each === 'en' || site.has(`/${each}${own.path}`)) ?? 'en';
      const inLanguage = `/${best}${own.path}`;
      const others = LANGUAGES.some((each) => site.has(`/${each}${own.path}`));
      if (!others) return own;
      return site.has(inLanguage)
        ? { ...own, path: inLanguage, url: '', negotiated: true }
        : { ...own, negotiated: true };
    }
    if (own === undefined && !isAsset(path)) {
      for (const language of languages) {
        const found = lookUp(site, `/${language}${path}`, setup);
        if (found?.kind === 'file') return { ...found, negotiated: true };
        if (found?.kind !== 'redirect') continue;
        const to = `/${found.to.split('/').slice(2).join('/')}`;
        if (found.status === 301) return { ...found, to: `${path}/` };
        if (to !== path) return { ...found, to };
        const moved = lookUp(site, found.to, setup);
        if (moved?.kind === 'file') return { ...moved, negotiated: true };
      }
    }
  }
  if (own !== undefined) return own;
  if (rule !== undefined)
    return rule.action.kind !== 'file' || site.has(rule.action.path) ? rule.action : { kind: 'passed' };
  return isNavigation ? pageFor(site, path, setup) : { kind: 'passed' };
}

function pageFor(site: Site, path: string, { fallback, notFound }: Setup): Expected {
  const folders = ['/'];
  for (
    let end = path.indexOf('/', 1);
    end > 0 && isFolder(site, path.slice(0, end));
    end = path.indexOf('/', end + 1)
  )
    folders.unshift(path.slice(0, end + 1));
  const pages = (option: string | undefined, name: string): string[] =>
    option === undefined
      ? []
      : option === 'nearest'
        ? folders.map((folder) => folder + name)
        : [`/${option}`];
  const isByFolder = fallback === 'nearest' && notFound === 'nearest' && !isAsset(path);
  for (const folder of isByFolder ? folders : [])
    for (const [name, status] of [['404.html', 404] as const, ['index.html', 200] as const])
      if (site.has(folder + name)) return { kind: 'file', path: folder + name, status, url: path };
  const first = isAsset(path) ? undefined : pages(fallback, 'index.html').find((each) => site.has(each));
  if (first !== undefined) return { kind: 'file', path: first, status: 200, url: path };
  const second = pages(notFound, '404.html').find((each) => site.has(each));
  return second === undefined ? { kind: 'passed' } : { kind: 'file', path: second, status: 404, url: path };
}

function ruleFor(path: string): { isForced: boolean; action: Expected } | undefined {
  const stem = path.replace(/\/$/, '');
  const redirect = (status: number, to: string, isForced = false) => ({
    isForced,
    action: { kind: 'redirect', status, to } as const,
  });
  if (/^\/old(?:\/|$)/.test(path)) return redirect(301, `/a/${path.slice(5)}`);
  if (stem === '/a/app.js') return redirect(302, '/b', true);
  const [, id] = /^\/p\/([^/]+)$/.exec(stem) ?? [];
  if (id !== undefined) return redirect(307, `/data.json?id=${id}`);
  if (stem !== '/rw') return undefined;
  return { isForced: false, action: { kind: 'file', path: '/data.json', status: 200, url: path } };
}

const agent = new Agent({ keepAlive: true });
afterAll(() => agent.destroy());

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

const ask = (port: number, path: string, headers: Record<string, string>): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const sent = request({ port, path, headers, agent }, (res) => {
      const chunks: Buffer[] = [];
      res.on('data', (chunk: Buffer) => chunks.push(chunk));
      res.on('end', () =>
        resolve({ status: res.statusCode ?? 0, headers: res.headers, body: Buffer.concat(chunks) }),
      );
    });
    sent.on('error', reject);
    sent.end();
  });

const encode = (path: string): string => path.split('/').map(encodeURIComponent).join('/');

/** The differences of a response from the model. */
async function check(port: number, site: Site, asked: Asked, setup: Setup): Promise<string | undefined> {
  const url = encode(asked.path);
  const headers: Record<string, string> = {
    accept: asked.isNavigation ? 'text/html' : '*/*',
    'accept-language': asked.languages.join(', '),
    'accept-encoding': oneOf(['identity', 'gzip']),
  };
  const want = expected(site, asked, setup);
  const got = await ask(port, `${url}?q=1`, headers);
  const place = `${JSON.stringify({ asked, setup, want, files: [...site.keys()] })} got ${got.status} ${JSON.stringify(got.headers)} ${got.body.toString('latin1').slice(0, 60)}`;
  if (want.kind === 'passed') return got.body.toString() === 'passed on' ? undefined : place;
  if (want.kind === 'redirect') {
    const to = new URL(String(got.headers.location), `http://h${url}`);
    const [path = '', query = 'q=1'] = want.to.split('?');
    return got.status === want.status && to.host === 'h' && to.href === `http://h${encode(path)}?${query}`
      ? undefined
      : place;
  }
  const text = site.get(want.path);
  const isCoded = got.headers['content-encoding'] === 'gzip';
  const body = isCoded ? gunzipSync(got.body) : got.body;
  if (got.status !== want.status || body.toString() !== text) return place;
  if (isCoded && headers['accept-encoding'] !== 'gzip') return place;
  if (want.negotiated === true && !String(got.headers.vary).includes('Accept-Language')) return place;
  if (setup.hasLanguages && want.path.endsWith('.html')) {
    const language = /^\/(en|de)\//.exec(want.path)?.[1] ?? 'en';
    if (got.headers['content-language'] !== language) return place;
  }
  if (setup.hasRules && got.headers['x-all'] !== '1') return place;
  if (want.status === 404)
    return got.headers.etag === undefined && got.headers['cache-control'] === 'no-cache' ? undefined : place;
  const tag = String(got.headers.etag);
  if (!tag.startsWith('"')) return place;
  const same = await ask(port, url, { ...headers, 'if-none-match': tag });
  if (same.status !== 304 || same.headers.etag !== tag) return `${place} not 304 but ${same.status}`;
  const failed = await ask(port, url, { ...headers, 'if-match': '"other"' });
  if (failed.status !== 412) return `${place} not 412 but ${failed.status}`;
  const part = await ask(port, url, { ...headers, 'accept-encoding': 'identity', range: 'bytes=1-3' });
  return part.status === 206 && part.body.equals(body.subarray(1, 4))
    ? undefined
    : `${place} part ${part.status}`;
}

function makeSetup(): { setup: Setup; options: StaticFilesOptions } {
  const setup: Setup = {
    mode: oneOf(['html', 'clean', 'no-slash', 'slash'] as const),
    fallback: oneOf([undefined, 'nearest'] as const),
    notFound: oneOf([undefined, 'nearest'] as const),
    hasRules: chance(0.4),
    hasLanguages: chance(0.4),
  };
  const { mode, fallback, notFound } = setup;
  return {
    setup,
    options: {
      ...(mode === 'html' ? { html: true } : mode === 'clean' ? { cleanUrls: true } : { cleanUrls: mode }),
      fallback,
      notFound,
      precompressed: ['gzip'],
      rules: setup.hasRules,
      variants: setup.hasLanguages ? { language: LANGUAGES } : [],
    },
  };
}

/** Adds, changes or removes a file with its compressed copy. */
function change(folder: string, site: Site, number: number): void {
  const path = `/${oneOf(FOLDERS)}${oneOf(NAMES)}`;
  const at = join(folder, path);
  rmSync(`${at}.gz`, { force: true });
  if (site.delete(path) && chance(0.5)) {
    rmSync(at);
    return;
  }
  const text = `${path} ${number} ${'x'.repeat(random(40))}`;
  put(at, text);
  site.set(path, text);
  addFolders(site, path);
  if (chance(0.3)) writeFileSync(`${at}.gz`, gzipSync(text));
}

it('random sites answer as the documentation says: pages, redirects, rules, languages, codings, conditions and ranges', async () => {
  const differences: string[] = [];
  for (let n = 0; n < SITES && differences.length < 5; n++) {
    const { setup, options } = makeSetup();
    const folder = kit.makeFolder({ _redirects: REDIRECTS, _headers: HEADERS });
    const site: Site = new Map();
    for (let files = 0; files < 12; files++) change(folder, site, files);
    const { port, close } = await kit.listen(bare(staticFiles(folder, options)));
    for (let i = 0; i < REQUESTS; i++) {
      if (chance(0.1)) change(folder, site, i + 100);
      const file = `/${oneOf(FOLDERS)}${oneOf(NAMES)}`;
      const path = oneOf([
        file,
        file.replace(/\.html$/, ''),
        file.replace(/\.html$/, '/'),
        file.replace(/[^/]*$/, ''),
        `/${oneOf(['old/b', 'p/7', 'rw', 'a/b/c/d', 'x'])}`,
        file.replace(/\/[^/]*$/, '') || '/',
      ]);
      const asked = {
        path,
        isNavigation: chance(0.6),
        languages: oneOf([
          ['en', 'de'],
          ['de', 'en'],
        ]),
      };
      const difference = await check(port, site, asked, setup);
      if (difference !== undefined) differences.push(difference);
    }
    await close();
  }
  expect(differences.slice(0, 5)).toEqual([]);
}, 3_600_000);
