/** @tags once */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import express from 'express';
import { staticFiles } from '../../middleware/static.ts';
import { bare, get, listen, makeFolder, put } from './fixture.ts';

const NAVIGATE = { 'Sec-Fetch-Mode': 'navigate' };

describe('cleanUrls', () => {
  const root = makeFolder({
    'index.html': 'home',
    'guide.html': 'guide page',
    'guide/index.html': 'guide index',
    'guide/intro.html': 'intro',
    'blog.html': 'blog page',
    'blog/post.html': 'post',
    'docs/index.html': 'docs index',
    'v1.2.html': 'version',
    'empty/x.txt': 'x',
    'app.js': 'js',
  });
  let port: number;
  beforeAll(async () => {
    port = await listen(bare(staticFiles(root, { cleanUrls: true })));
  });

  it.each([
    ['/', 'home'],
    ['/guide', 'guide page'],
    ['/guide/', 'guide index'],
    ['/guide/intro', 'intro'],
    ['/guide/intro.html', 'intro'],
    ['/blog', 'blog page'],
    ['/blog/post', 'post'],
    ['/docs/', 'docs index'],
    ['/v1.2', 'version'],
    ['/app.js', 'js'],
  ])('staticFiles sends %s with cleanUrls: %s', async (path, text) => {
    const response = await get(port, path);
    expect([response.status, response.text]).toEqual([200, text]);
  });

  it.each([
    ['/docs', 301],
    ['/blog/', 404],
    ['/empty/', 404],
    ['/none', 404],
    ['/none.js', 404],
    ['/app', 404],
  ])('staticFiles responds to %s with cleanUrls: %i', async (path, status) => {
    expect((await get(port, path)).status).toBe(status);
  });

  it('a browser asks again for a redirect to a folder, which may be a page later', async () => {
    expect((await get(port, '/docs')).headers['cache-control']).toBe('no-cache');
    const mounted = await listen(express().use('/site', staticFiles(root, { html: true })));
    for (const path of ['/site', '/site/docs'])
      expect(await get(mounted, path)).toMatchObject({
        status: 301,
        headers: { 'cache-control': 'no-cache' },
      });
  });

  it('staticFiles detects a page that is created next to a directory, and one that is deleted', async () => {
    expect((await get(port, '/docs')).status).toBe(301);
    put(`${root}/docs.html`, 'docs page');
    expect((await get(port, '/docs')).text).toBe('docs page');
    rmSync(`${root}/docs.html`);
    expect((await get(port, '/docs')).status).toBe(301);
  });
});

describe('extensions next to directories', () => {
  it('staticFiles sends guide.html for /guide if the directory guide has no index file', async () => {
    const root = makeFolder({ 'guide.html': 'page', 'guide/a.txt': 'a', 'v1.2.html': 'version' });
    const port = await listen(bare(staticFiles(root, { html: true, extensions: 'html' })));
    expect((await get(port, '/guide')).text).toBe('page');
    expect((await get(port, '/v1.2')).text).toBe('version');
    put(`${root}/guide/index.html`, 'index');
    expect((await get(port, '/guide')).headers.location).toBe('./guide/');
    rmSync(`${root}/guide/index.html`);
    expect((await get(port, '/guide')).text).toBe('page');
  });

  it('staticFiles with index: false redirects to the directory and sends no index file', async () => {
    const root = makeFolder({ 'dir/index.html': 'index', 'a.txt': 'a' });
    const port = await listen(bare(staticFiles(root, { index: false })));
    expect((await get(port, '/dir')).headers.location).toBe('./dir/');
    expect((await get(port, '/dir/')).text).toBe('passed on');
    expect((await get(port, '/a.txt/')).status).toBe(404);
    const withoutPages = await listen(bare(staticFiles(root, { html: false, index: false })));
    expect((await get(withoutPages, '/dir')).text).toBe('passed on');
  });
});

describe('notFound', () => {
  const page = '<h1>not found</h1>'.repeat(20);
  const files = { '404.html': page, '404.html.br': brotliCompressSync(page), 'index.html': 'home' };

  it.each([
    ['from memory', {}],
    ['streamed', { cache: false as const }],
  ])('staticFiles sends the notFound page %s with status 404 for navigations', async (_how, more) => {
    const root = makeFolder(files);
    const options = { notFound: '404.html', precompressed: true, cacheControl: '1d', ...more };
    const port = await listen(bare(staticFiles(root, options)));
    for (const path of ['/none', '/none/', '/none.png']) {
      const response = await get(port, path, NAVIGATE);
      expect([response.status, response.text]).toEqual([404, page]);
      expect(response.headers).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'content-length': String(page.length),
        'cache-control': 'no-cache',
        vary: 'Accept, Sec-Fetch-Mode, Accept-Encoding',
      });
      expect(response.headers).not.toHaveProperty('etag');
      const br = await get(port, path, { ...NAVIGATE, 'Accept-Encoding': 'br' });
      expect([br.status, br.headers['content-encoding']]).toEqual([404, 'br']);
      const head = await get(port, path, NAVIGATE, 'HEAD');
      expect([head.status, head.body.length]).toEqual([404, 0]);
    }
  });

  it('staticFiles ignores conditions and ranges for the notFound page', async () => {
    const port = await listen(bare(staticFiles(makeFolder(files), { notFound: '404.html' })));
    const { headers } = await get(port, '/404.html');
    for (const condition of [
      { 'If-None-Match': headers.etag as string },
      { 'If-Modified-Since': headers['last-modified'] as string },
      { 'If-Match': '"other"' },
      { Range: 'bytes=0-1' },
    ]) {
      const response = await get(port, '/none', { ...NAVIGATE, ...condition });
      expect([response.status, response.text]).toEqual([404, page]);
    }
    expect((await get(port, '/404.html')).status).toBe(200);
  });

  it('staticFiles calls next for requests that are not navigations, and if the notFound page is missing', async () => {
    const root = makeFolder(files);
    const port = await listen(bare(staticFiles(root, { notFound: '404.html' })));
    const plain = await get(port, '/api/none');
    expect([plain.status, plain.text, plain.headers.vary]).toEqual([
      404,
      'passed on',
      'Accept, Sec-Fetch-Mode',
    ]);
    rmSync(`${root}/404.html`);
    expect((await get(port, '/none', NAVIGATE)).text).toBe('passed on');
  });

  it('staticFiles sends the fallback page for routes and the notFound page for assets', async () => {
    const options = { notFound: '404.html', fallback: 'index.html' };
    const port = await listen(bare(staticFiles(makeFolder(files), options)));
    expect(await get(port, '/route', NAVIGATE)).toMatchObject({ status: 200, text: 'home' });
    expect(await get(port, '/none.png', NAVIGATE)).toMatchObject({ status: 404, text: page });
  });

  it('staticFiles responds with a plain 404 when the fallback page and the notFound page were deleted', async () => {
    const options = { notFound: '404.html', fallback: 'index.html' };
    const folder = makeFolder({ 'a.txt': 'a', '404.html': 'none', 'index.html': 'home' });
    const port = await listen(bare(staticFiles(folder, options)));
    for (const name of ['404.html', 'index.html']) rmSync(join(folder, name));
    expect(await get(port, '/route', NAVIGATE)).toMatchObject({ status: 404, text: 'passed on' });
  });
});
