/** @tags once */
import { rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import express from 'express';
import { memoryFiles } from '../../middleware/sources.ts';
import { staticFiles } from '../../middleware/static.ts';
import { bare, get, listen, makeFolder, put } from './fixture.ts';

const PAGE = { accept: 'text/html' };
const FILES = {
  'www/index.html': 'root',
  'www/404.html': 'root 404',
  'www/shop/index.html': '<base href="/shop/">shop',
  'www/shop/assets/app-3f2a91bc.js': 'app',
  'www/shop/admin/index.html': 'admin',
  'www/shop/admin/404.html': 'admin 404',
  'www/docs/a.html': 'a',
  'outside/index.html': 'outside',
};
const FILES_OF_SITE = Object.fromEntries(
  Object.entries(FILES).flatMap(([name, text]) => (name.startsWith('www') ? [[name.slice(3), text]] : [])),
);
const site = (): string => join(makeFolder(FILES), 'www');

describe("fallback: 'nearest'", () => {
  it.each([
    ['/orders/7', 'root'],
    ['/shop/orders/7', '<base href="/shop/">shop'],
    ['/shop/admin/users/7?tab=1', 'admin'],
    ['/shop/adminx/users', '<base href="/shop/">shop'],
    ['/docs/b/c', 'root'],
    ['/docs/a.html/b', 'root'],
    ['/shop/admin/missing/', 'admin'],
  ])('a navigation to %s gets the index page of the nearest folder above it: %s', async (path, text) => {
    for (const dir of [site(), memoryFiles(FILES_OF_SITE)]) {
      const port = await listen(bare(staticFiles(dir, { fallback: 'nearest' })));
      const response = await get(port, path, PAGE);
      expect([response.status, response.text]).toEqual([200, text]);
      expect(response.headers).toMatchObject({ vary: 'Accept, Sec-Fetch-Mode', etag: expect.any(String) });
    }
  });

  it('assets of an application and requests that are no navigation stay a 404', async () => {
    const port = await listen(bare(staticFiles(site(), { fallback: 'nearest' })));
    expect((await get(port, '/shop/assets/app-3f2a91bc.js')).text).toBe('app');
    expect((await get(port, '/shop/assets/app-00000000.js', PAGE)).status).toBe(404);
    expect((await get(port, '/shop/orders', { accept: 'application/json' })).status).toBe(404);
  });

  it('an application that appears below the mount gets its routes, and they fall to the one above when it is gone', async () => {
    const root = site();
    const port = await listen(express().use('/apps', staticFiles(root, { fallback: 'nearest' })));
    expect((await get(port, '/apps/new/route', PAGE)).text).toBe('root');
    put(join(root, 'new/index.html'), 'new');
    expect((await get(port, '/apps/new/route', PAGE)).text).toBe('new');
    rmSync(join(root, 'new'), { recursive: true });
    expect((await get(port, '/apps/new/route', PAGE)).text).toBe('root');
  });

  it('a folder that is a link out of the root has no page for the paths below it', async () => {
    const root = site();
    symlinkSync(join(root, '../outside'), join(root, 'shop/link'));
    const port = await listen(bare(staticFiles(root, { fallback: 'nearest' })));
    expect((await get(port, '/shop/link/x', PAGE)).text).toBe('<base href="/shop/">shop');
  });

  it('a folder with the name of the page is none, and a site without pages passes the request on', async () => {
    const root = makeFolder({ 'a/index.html/x': '' });
    const port = await listen(bare(staticFiles(root, { fallback: 'nearest', notFound: 'nearest' })));
    for (const path of ['/a/b', '/b', '/a/b/']) expect((await get(port, path, PAGE)).text).toBe('passed on');
  });

  it('a path of thousands of segments looks at no folder below the first that is missing', async () => {
    let stats = 0;
    const files = memoryFiles({ '/index.html': 'root' });
    const counted = {
      ...files,
      stat(path: string) {
        stats++;
        return files.stat(path);
      },
    };
    const port = await listen(bare(staticFiles(counted, { fallback: 'nearest' })));
    expect((await get(port, '/a'.repeat(5000), PAGE)).text).toBe('root');
    expect(stats).toBeLessThan(6);
  });
});

describe("notFound: 'nearest'", () => {
  it.each([
    ['/x', 'root 404'],
    ['/shop/x', 'root 404'],
    ['/shop/admin/x/y', 'admin 404'],
    ['/shop/admin/x.png', 'admin 404'],
  ])('a navigation to %s gets the page for 404 of the nearest folder: %s', async (path, text) => {
    const port = await listen(bare(staticFiles(site(), { notFound: 'nearest' })));
    const response = await get(port, path, PAGE);
    expect([response.status, response.text]).toEqual([404, text]);
    expect(response.headers).toMatchObject({ 'cache-control': 'no-cache' });
  });

  it.each([
    ['/x', 404, 'root 404'],
    ['/shop/x', 200, '<base href="/shop/">shop'],
    ['/shop/x.js', 404, 'root 404'],
    ['/shop/assets/x', 200, '<base href="/shop/">shop'],
    ['/shop/admin/x', 404, 'admin 404'],
    ['/shop/admin/x.js', 404, 'admin 404'],
    ['/docs/x', 404, 'root 404'],
  ])(
    'with both options the nearest folder with a page decides: a navigation to %s gets %d %s',
    async (path, status, text) => {
      for (const dir of [site(), memoryFiles(FILES_OF_SITE)]) {
        const port = await listen(
          bare(staticFiles(dir, { fallback: 'nearest', notFound: 'nearest', cleanUrls: true })),
        );
        const response = await get(port, path, PAGE);
        expect([response.status, response.text]).toEqual([status, text]);
      }
    },
  );

  it('with both options a folder becomes an application when its page for 404 is removed', async () => {
    const root = site();
    const port = await listen(bare(staticFiles(root, { fallback: 'nearest', notFound: 'nearest' })));
    expect((await get(port, '/shop/admin/x', PAGE)).text).toBe('admin 404');
    rmSync(join(root, 'shop/admin/404.html'));
    expect((await get(port, '/shop/admin/x', PAGE)).text).toBe('admin');
    expect((await get(port, '/shop/admin/x.js', PAGE)).text).toBe('root 404');
  });

  it('routes without an application get the page for 404', async () => {
    const root = site();
    rmSync(join(root, 'index.html'));
    const port = await listen(bare(staticFiles(root, { fallback: 'nearest', notFound: 'nearest' })));
    expect((await get(port, '/x', PAGE)).text).toBe('root 404');
    expect((await get(port, '/x', PAGE)).status).toBe(404);
  });
});
