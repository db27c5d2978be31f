/** @tags once */
import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import express from 'express';
import { memoryFiles } from '../../middleware/sources.ts';
import { staticFiles } from '../../middleware/static.ts';
import type { StaticFilesOptions } from '../../types/static.ts';
import { bare, get, listen, makeFolder, put } from './fixture.ts';

const FILES = {
  'index.html': 'home',
  '404.html': 'missing',
  'a.html': 'a',
  'b/index.html': 'b',
  'both.html': 'page both',
  'both/index.html': 'folder both',
  'v1.2.html': 'version',
  'deep/er/x.html': 'x',
  'page.js.html': 'a page about page.js',
  LICENSE: 'text',
  'LICENSE.html': 'licence page',
  'app.js': 'app',
  'a b/ü.html': 'ü',
};
const PAGE = { accept: 'text/html' };

const serve = (options: StaticFilesOptions, dir = makeFolder(FILES)): Promise<number> =>
  listen(bare(staticFiles(dir, options)));

/** Where a client is redirected to: the URL that it makes of its own and the header. */
async function follow(port: number, path: string, mount = ''): Promise<string> {
  const { status, headers } = await get(port, mount + path);
  expect([status, headers['cache-control']]).toEqual([308, 'no-cache']);
  const url = new URL(String(headers.location), `http://site.example${mount}${path}`);
  expect(url.host).toBe('site.example');
  return url.href.slice('http://site.example'.length);
}

describe.each([
  ['no-slash', { a: '/a', b: '/b', both: '/both', folder: '/both/', version: '/v1.2', x: '/deep/er/x' }],
  ['slash', { a: '/a/', b: '/b/', both: '/both', folder: '/both/', version: '/v1.2/', x: '/deep/er/x/' }],
] as const)("cleanUrls: '%s'", (cleanUrls, at) => {
  it('each page is at one URL', async () => {
    const port = await serve({ cleanUrls });
    const texts = {
      '/': 'home',
      [at.a]: 'a',
      [at.b]: 'b',
      [at.both]: 'page both',
      [at.folder]: 'folder both',
    };
    Object.assign(texts, { [at.version]: 'version', [at.x]: 'x', '/page.js.html': 'a page about page.js' });
    for (const [path, text] of Object.entries(texts))
      expect([path, (await get(port, path)).status, (await get(port, path)).text]).toEqual([path, 200, text]);
  });

  it('all other spellings redirect to it with their query', async () => {
    const port = await serve({ cleanUrls });
    const spellings = {
      [at.a]: ['/a', '/a/', '/a.html'],
      [at.b]: ['/b', '/b/', '/b/index.html', '/b/index'],
      '/': ['/index.html', '/index'],
      [at.both]: ['/both.html'],
      [at.folder]: ['/both/index.html', '/both/index'],
      [at.version]: ['/v1.2', '/v1.2/', '/v1.2.html'],
      [at.x]: ['/deep/er/x', '/deep/er/x/', '/deep/er/x.html'],
    };
    for (const [url, others] of Object.entries(spellings))
      for (const other of others.filter((each) => each !== url))
        expect([other, await follow(port, `${other}?q=1&r=%2F`)]).toEqual([other, `${url}?q=1&r=%2F`]);
  });

  it('redirects are relative to the mount and behind a proxy that removes a prefix', async () => {
    const app = express().use('/site/docs', staticFiles(makeFolder(FILES), { cleanUrls }));
    const port = await listen(app);
    expect(await follow(port, '/a.html', '/site/docs')).toBe(`/site/docs${at.a}`);
    expect(await follow(port, '/b/index.html?x', '/site/docs')).toBe(`/site/docs${at.b}?x`);
    expect(await follow(port, '/index.html', '/site/docs')).toBe('/site/docs/');
    const { headers } = await get(port, '/site/docs/deep/er/x.html');
    expect(new URL(String(headers.location), 'http://h/proxied/deep/er/x.html').pathname).toBe(
      `/proxied${at.x}`,
    );
  });

  it.each([
    ['//a', '/a'],
    ['///b//', '/b/'],
    ['//other.example/%2e%2e', undefined],
    ['//other.example/', '/other.example/'],
    ['//user@other.example', '/user%40other.example'],
    ['/deep//er///x.html?q', '/deep/er/x.html?q'],
    ['//javascript:alert(1)', '/javascript%3Aalert(1)'],
    ['//..//a', undefined],
    [`/${'/'.repeat(100)}a`, undefined],
  ])('a path with empty segments, %s, redirects to the same host only: %s', async (path, target) => {
    const port = await serve({ cleanUrls });
    if (target === undefined) expect((await get(port, path)).status).toBe(404);
    else expect(await follow(port, path)).toBe(target);
  });

  it('files that are no pages keep their names', async () => {
    const port = await serve({ cleanUrls });
    expect((await get(port, '/app.js')).text).toBe('app');
    expect((await get(port, '/LICENSE')).text).toBe('text');
    expect((await get(port, '/app.js/')).status).toBe(404);
    expect((await get(port, '/LICENSE/')).text).toBe('licence page');
  });

  it('names with spaces and other letters stay encoded', async () => {
    const port = await serve({ cleanUrls });
    const path = `/a%20b/%C3%BC${cleanUrls === 'slash' ? '/' : ''}`;
    expect(await follow(port, '/a%20b/%C3%BC.html')).toBe(path);
    expect((await get(port, path)).text).toBe('ü');
  });

  it('a page moves to another URL when a page appears beside it, and back', async () => {
    const dir = makeFolder(FILES);
    const port = await serve({ cleanUrls }, dir);
    expect((await get(port, at.b)).text).toBe('b');
    put(join(dir, 'b.html'), 'page b');
    expect((await get(port, '/b')).text).toBe('page b');
    expect((await get(port, '/b/')).text).toBe('b');
    rmSync(join(dir, 'b.html'));
    expect((await get(port, at.b)).text).toBe('b');
    expect(await follow(port, cleanUrls === 'slash' ? '/b' : '/b/')).toBe(at.b);
  });

  it('the pages of fallback and notFound are sent and not redirected to', async () => {
    const port = await serve({ cleanUrls, fallback: 'index.html', notFound: '404.html' });
    expect((await get(port, '/route', PAGE)).text).toBe('home');
    const missing = await get(port, '/route.js', PAGE);
    expect([missing.status, missing.text]).toEqual([404, 'missing']);
    const nearest = await serve({ cleanUrls, fallback: 'nearest', notFound: 'nearest' });
    expect((await get(nearest, '/b/route', PAGE)).text).toBe('b');
    expect((await get(nearest, '/b/route.js', PAGE)).text).toBe('missing');
  });

  it('variants of a page are negotiated at its URL', async () => {
    const dir = makeFolder({ ...FILES, 'a.md': '# a' });
    const port = await serve({ cleanUrls, variants: ['md'] }, dir);
    expect((await get(port, at.a, { accept: 'text/markdown' })).text).toBe('# a');
    expect((await get(port, '/a.md', { accept: 'text/html, text/markdown;q=0.5' })).text).toBe('# a');
  });

  it('a source has the same URLs, and middleware that rewrites a URL gets the page', async () => {
    const source = memoryFiles(FILES);
    const files = staticFiles(source, { cleanUrls });
    const port = await listen(bare(files));
    expect((await get(port, at.b)).text).toBe('b');
    expect(await follow(port, '/b/index.html')).toBe(at.b);
    const app = express().use((req, _res, next) => {
      req.url = '/b/index.html';
      next();
    }, files);
    expect((await get(await listen(app), '/other')).text).toBe('b');
  });

  it('conditions hold at the URL of a page', async () => {
    const port = await serve({ cleanUrls });
    const { headers } = await get(port, at.a);
    expect((await get(port, at.a, { 'if-none-match': String(headers.etag) })).status).toBe(304);
    expect((await get(port, '/a.html', { 'if-none-match': String(headers.etag) })).status).toBe(308);
  });

  it('relative scripts of a page get the integrity of the files at its URL', async () => {
    const dir = makeFolder({
      'p/index.html': '<script src="./s.js"></script>',
      's.js': 'root',
      'p/s.js': 'of the folder',
    });
    const port = await serve({ cleanUrls, pages: { integrity: true } }, dir);
    const bytes = cleanUrls === 'slash' ? 'of the folder' : 'root';
    const hash = createHash('sha384').update(bytes).digest('base64');
    expect((await get(port, cleanUrls === 'slash' ? '/p/' : '/p')).text).toContain(
      `integrity="sha384-${hash}"`,
    );
  });
});
