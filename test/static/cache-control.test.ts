/** @tags once */
import { readFileSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import { staticFiles } from '../../middleware/static.ts';
import type { StaticFilesOptions } from '../../types/static.ts';
import { bare, get, listen, makeFolder } from './fixture.ts';

const IMMUTABLE = 'public, max-age=31536000, immutable';
const root = makeFolder({
  'index.html': 'home',
  'docs/index.html': 'docs',
  'about.html': 'about',
  'app.3f2a91.js': 'js',
  'assets/app-3f2a91.js': 'js',
  'app.3f2a91.js.br': brotliCompressSync('js'),
  'film.mp4': Buffer.alloc(9 << 20),
});

async function cacheControlOf(options: StaticFilesOptions, path: string): Promise<string | undefined> {
  const port = await listen(bare(staticFiles(root, options)));
  const response = await get(port, path, { 'Sec-Fetch-Mode': 'navigate', 'Accept-Encoding': 'br' });
  expect(response.status).toBe(200);
  return response.headers['cache-control'];
}

describe('the path that cacheControl gets', () => {
  it.each<[string, string, StaticFilesOptions]>([
    ['/', '/index.html', { html: true }],
    ['/docs/', '/docs/index.html', { html: true }],
    ['/docs/index.html?x', '/docs/index.html', {}],
    ['/about', '/about.html', { extensions: ['html'] }],
    ['/%61bout.html/', '/about.html', {}],
    ['/some/route', '/index.html', { fallback: './index.html' }],
    ['/app.3f2a91.js', '/app.3f2a91.js', { precompressed: ['br'] }],
  ])('staticFiles passes the file served for %s: %s', async (url, file, options) => {
    const paths: string[] = [];
    const cacheControl = (path: string): undefined => void paths.push(path);
    expect(await cacheControlOf({ ...options, cacheControl }, url)).toBe('public, max-age=0');
    expect(paths).toEqual([file]);
  });

  it('staticFiles does not send a page as immutable for the URL of its directory', async () => {
    const options = {
      html: true,
      cacheControl: (path: string) => (path.endsWith('.html') ? undefined : 'immutable'),
    };
    expect(await cacheControlOf(options, '/docs/')).toBe('public, max-age=0');
    expect(await cacheControlOf(options, '/app.3f2a91.js')).toBe(IMMUTABLE);
    expect(await cacheControlOf({ html: true, cacheControl: /^\/docs\/$/ }, '/docs/')).toBe(
      'public, max-age=0',
    );
  });
});

describe('the cacheControl option', () => {
  it.each<[StaticFilesOptions, string | undefined]>([
    [{ cacheControl: 'private, no-store' }, 'private, no-store'],
    [{ cacheControl: ['vite', 'private, no-store', 'immutable'] }, 'private, no-store'],
    [
      { cacheControl: () => 'public, max-age=60, stale-while-revalidate=600' },
      'public, max-age=60, stale-while-revalidate=600',
    ],
    [{ cacheControl: [() => undefined, '1h'] }, 'public, max-age=3600'],
    [{ cacheControl: [() => undefined, /about/] }, IMMUTABLE],
    [{ cacheControl: () => '1h' }, 'public, max-age=3600'],
    [{ cacheControl: [() => false, '1h'] }, undefined],
  ])('staticFiles with %o sends %s', async (options, expected) => {
    expect(await cacheControlOf(options, '/about.html')).toBe(expected);
  });

  it('staticFiles calls a cacheControl function once while the file does not change', async () => {
    let calls = 0;
    const cacheControl = (): string => `public, max-age=${++calls}`;
    const port = await listen(bare(staticFiles(root, { cacheControl })));
    for (let i = 0; i < 3; i++) {
      expect((await get(port, '/about.html')).headers['cache-control']).toBe('public, max-age=1');
    }
  });

  it.each([
    ['a line break', () => 'max-age=1\r\nX-Injected: yes'],
    ['an empty string', () => ''],
    ['a number', () => 60],
    ['null', () => null],
    ['a promise', async () => 'no-cache'],
  ])('staticFiles reports a cacheControl function that returns %s', async (_name, cacheControl) => {
    const port = await listen(bare(staticFiles(root, Object({ cacheControl }))));
    const response = await get(port, '/about.html');
    expect(response.status).toBe(500);
    expect(response.text).toMatch(/option "cacheControl" returned .*; accepted: /);
    expect(response.headers).not.toHaveProperty('x-injected');
  });
});

describe('the presets of docs/static-files.md', () => {
  const docs = readFileSync(join(__dirname, '../../docs/static-files.md'), 'utf8');
  const section = docs.slice(docs.indexOf('## Cache-Control'), docs.indexOf('## Serve private downloads'));
  const presets = new Map(
    [...section.matchAll(/^\| ([^|`]+) \| `(\{.*?\})`/gm)].map(([, name, code]) => [name, code as string]),
  );

  it.each([
    ['hashed assets and pages of one build', '/assets/app-3f2a91.js', IMMUTABLE],
    ['hashed assets and pages of one build', '/docs/index.html', 'public, max-age=0'],
    ['pages behind a CDN', '/about.html', 'public, max-age=0, s-maxage=60, stale-while-revalidate=600'],
    ['pages behind a CDN', '/assets/app-3f2a91.js', 'public, max-age=0'],
    ['downloads behind a login', '/film.mp4', 'private, no-cache'],
    ['documents that clients must not store', '/film.mp4', 'no-store'],
  ])('staticFiles with the preset for %s sends for %s: %s', async (name, path, expected) => {
    const options = new Function(`return ${presets.get(name)}`)();
    expect(await cacheControlOf(options, path)).toBe(expected);
  });
});

describe('placeholder modification times', () => {
  it.each([
    ['the epoch', 0],
    ['one second after the epoch, as Nix sets it', 1],
    ['the start of 1980, as zip archives have it', 315_532_800],
    ['the fixed time of npm packages', 499_162_500],
  ])('staticFiles sends no Last-Modified for %s', async (_name, seconds) => {
    utimesSync(`${root}/film.mp4`, seconds, seconds);
    const port = await listen(bare(staticFiles(root)));
    const date = new Date(seconds * 1000).toUTCString();
    for (const path of ['/film.mp4']) {
      const response = await get(port, path, { 'If-Modified-Since': date }, 'HEAD');
      expect(response.status).toBe(200);
      expect(response.headers).not.toHaveProperty('last-modified');
      const range = await get(port, path, { Range: 'bytes=0-1', 'If-Range': date });
      expect(range.status).toBe(200);
    }
  });

  it('staticFiles sends Last-Modified for other times', async () => {
    utimesSync(`${root}/film.mp4`, 2, 2);
    const port = await listen(bare(staticFiles(root)));
    const { headers } = await get(port, '/film.mp4', {}, 'HEAD');
    expect(headers['last-modified']).toBe('Thu, 01 Jan 1970 00:00:02 GMT');
  });
});
