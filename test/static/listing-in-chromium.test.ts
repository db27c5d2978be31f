/** @tags once slow */
import { mkdirSync, readdirSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import promises from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import express from 'express';
import type { Browser } from 'playwright-core';
import { memoryFiles } from '../../middleware/sources.ts';
import { staticFiles } from '../../middleware/static.ts';
import type { StaticFilesOptions } from '../../types/static.ts';
import { launch } from '../chromium.ts';
import { bare, get, listen, makeFolder } from './fixture.ts';

jest.setTimeout(60_000);

const EVIL = `"><img src=x onerror=alert(1)>'&.txt`;
const FILES = {
  'www/b10.txt': 'x'.repeat(20_000),
  'www/b9.txt': 'x',
  'www/a folder/c.txt': '',
  'www/a folder/.hidden': '',
  'www/.env': 'secret',
  'www/.git/config': '',
  'www/with-index/index.html': '<p>index',
  [`www/${EVIL}`]: 'evil',
  'www/javascript:alert(1)': 'x',
  'www/#?%25.txt': 'odd',
  'www/a-very-long-name-that-no-phone-can-show-in-one-line-and-that-has-no-space.tar.gz': 'x',
  'outside/secret.txt': 'secret',
};

function folderWithLinks(): string {
  const folder = makeFolder(FILES);
  symlinkSync('../outside', join(folder, 'www/link'));
  symlinkSync('/etc/passwd', join(folder, 'www/passwd'));
  symlinkSync('b9.txt', join(folder, 'www/inside'));
  mkdirSync(join(folder, 'www/empty'));
  return folder;
}

async function start(options: StaticFilesOptions = { listing: true }): Promise<number> {
  return listen(bare(staticFiles(join(folderWithLinks(), 'www'), options)));
}

interface Listed {
  readonly entries: readonly { readonly name: string; readonly size?: number }[];
}

const namesAt = async (port: number, path: string): Promise<string[]> => {
  const { text } = await get(port, path, { accept: 'application/json' });
  const { entries } = JSON.parse(text) as Listed;
  return entries.map(({ name }) => name);
};

describe('listing', () => {
  it('staticFiles lists what requests can reach: folders first, numbers by their value', async () => {
    const port = await start();
    const names = await namesAt(port, '/');
    expect(names.slice(0, 3)).toEqual(['a folder', 'empty', 'with-index']);
    expect(names.indexOf('b9.txt')).toBeLessThan(names.indexOf('b10.txt'));
    for (const hidden of ['.env', '.git', 'link', 'passwd']) expect(names).not.toContain(hidden);
    expect(names).toContain('inside');
    expect(await namesAt(port, '/a%20folder/')).toEqual(['c.txt']);
    expect(await namesAt(port, '/empty/')).toEqual([]);
    expect((await get(port, '/with-index/')).text).toBe('<p>index');
    expect((await get(port, '/empty')).headers.location).toBe('./empty/');
    for (const path of ['/link/', '/.git/', '/none/', '/b9.txt/', '/../', '/a%20folder/../', '//'])
      expect([path, (await get(port, path)).status]).toEqual([path, 404]);
  });

  it('a listing has conditions, HEAD and a policy; it is off by default and obeys dotfiles', async () => {
    const port = await start();
    const page = await get(port, '/');
    expect(page.headers).toMatchObject({ vary: 'Accept', 'cache-control': 'no-cache' });
    expect(page.headers['content-security-policy']).toMatch(/^default-src 'none'; style-src 'sha256-/);
    const etag = String(page.headers.etag);
    expect((await get(port, '/', { 'if-none-match': etag })).status).toBe(304);
    const json = { accept: 'application/json', 'if-none-match': etag };
    expect((await get(port, '/', json)).status).toBe(200);
    const head = await get(port, '/', {}, 'HEAD');
    expect([head.headers['content-length'], head.text]).toEqual([String(page.body.length), '']);
    expect((await get(await start({ html: true }), '/')).text).toBe('passed on');
    expect(await namesAt(await start({ listing: true, dotfiles: 'allow' }), '/')).toContain('.env');
    expect(() => staticFiles(__dirname, { listing: true, html: false })).toThrow('remove the option "html"');
  });

  it('a listing has breadcrumbs from the mount, types, times in UTC, and an order by name, size or time', async () => {
    const root = makeFolder({ 'd/e/a.png': 'aaa', 'd/e/b.txt': 'b', 'd/e/c.txt': 'cc', 'd/e/f/x': '' });
    for (const [name, at] of [
      ['a.png', 3],
      ['b.txt', 9],
      ['c.txt', 5],
    ] as const)
      utimesSync(join(root, 'd/e', name), 1e9 + at, 1e9 + at);
    const port = await listen(express().use('/m', staticFiles(root, { listing: true })));
    expect(await namesAt(port, '/m/d/e/?sort=size')).toEqual(['f', 'b.txt', 'c.txt', 'a.png']);
    expect(await namesAt(port, '/m/d/e/?sort=-size')).toEqual(['f', 'a.png', 'c.txt', 'b.txt']);
    expect(await namesAt(port, '/m/d/e/?a=b&sort=time')).toEqual(['f', 'a.png', 'c.txt', 'b.txt']);
    expect(await namesAt(port, '/m/d/e/?sort=-name')).toEqual(['f', 'c.txt', 'b.txt', 'a.png']);
    expect(await namesAt(port, '/m/d/e/?sort=constructor')).toEqual(['f', 'a.png', 'b.txt', 'c.txt']);
    const { text } = await get(port, '/m/d/e/?sort=time');
    const links = '<a href="../../"><bdi>/</bdi></a> <a href="../"><bdi>d</bdi></a> <bdi>e</bdi>';
    for (const part of [links, 'href="?sort=-time"', 'href="?sort=name"', 'UTC', '<i>image/png</i>'])
      expect(text).toContain(part);
  });

  it('a listing has at most 1000 entries, and many requests for it get the same answer', async () => {
    const files = Object.fromEntries(Array.from({ length: 1200 }, (_, index) => [`n${index}`, '']));
    const port = await listen(bare(staticFiles(makeFolder(files), { listing: true })));
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => get(port, '/', { accept: 'application/json' })),
    );
    const [first] = answers;
    expect(JSON.parse(String(first?.text))).toMatchObject({ complete: false });
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(await namesAt(port, '/')).toHaveLength(1000);
    expect((await get(port, '/')).text).toContain('The first 1000 entries');
  });

  it('a listing of many names has the first ones in order, with folders before files', async () => {
    const files = Object.fromEntries(Array.from({ length: 1500 }, (_, index) => [`www/n${index}`, '']));
    const root = join(makeFolder({ ...files, 'www/zz/a.txt': '', 'www/.hidden': '' }), 'www');
    symlinkSync('zz', join(root, 'zlink'));
    const ordered = ['zlink', 'zz', ...Array.from({ length: 1500 }, (_, index) => `n${index}`)];
    const source = memoryFiles(Object.fromEntries(ordered.slice(2).map((name) => [name, ''])));
    source.set('zz/a.txt', '');
    for (const [dir, expected] of [
      [root, ordered],
      [source, ordered.slice(1)],
    ] as const) {
      const port = await listen(bare(staticFiles(dir, { listing: true })));
      expect(await namesAt(port, '/')).toEqual(expected.slice(0, 1000));
    }
  });

  it('a listing reads the names in a folder again when it has changed, and sizes each time', async () => {
    const root = makeFolder({ 'a.txt': '1', 'b.txt': '1' });
    const port = await listen(bare(staticFiles(root, { listing: true })));
    const reads = [jest.spyOn(promises, 'opendir'), jest.spyOn(promises, 'readdir')];
    const count = () => reads.reduce((sum, { mock }) => sum + mock.calls.length, 0);
    const sizes = async () =>
      (JSON.parse((await get(port, '/', { accept: 'application/json' })).text) as Listed).entries.map(
        ({ name, size }) => `${name} ${size}`,
      );
    // The names of a folder that has just changed are not kept: another change could leave its times as they are.
    let before: number;
    do {
      before = count();
      expect(await sizes()).toEqual(['a.txt 1', 'b.txt 1']);
    } while (count() > before);
    writeFileSync(join(root, 'a.txt'), '12345');
    expect(await sizes()).toEqual(['a.txt 5', 'b.txt 1']);
    expect(count()).toBe(before);
    writeFileSync(join(root, 'c.txt'), '');
    expect(await sizes()).toEqual(['a.txt 5', 'b.txt 1', 'c.txt 0']);
    for (const read of reads) read.mockRestore();
  });

  it('a listing shows the names of this moment, whatever changes before each request', async () => {
    const root = makeFolder({});
    const port = await listen(bare(staticFiles(root, { listing: true, dotfiles: 'allow' })));
    let seed = 5;
    const random = (below: number) => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
      return Math.floor((seed / 2 ** 32) * below);
    };
    const change = (): void => {
      const path = join(root, String(random(8)));
      rmSync(path, { recursive: true, force: true });
      const kind = random(4);
      if (kind === 0) writeFileSync(path, 'x'.repeat(random(5)));
      else if (kind === 1) mkdirSync(path);
      else if (kind === 2) symlinkSync(String(random(8)), path);
    };
    const model = (): string[] => {
      const found = readdirSync(root).flatMap((name) => {
        const stats = statSync(join(root, name), { throwIfNoEntry: false, bigint: false });
        return stats === undefined ? [] : [{ name, isFolder: stats.isDirectory() }];
      });
      return found
        .sort((a, b) => Number(b.isFolder) - Number(a.isFolder) || (a.name < b.name ? -1 : 1))
        .map(({ name }) => name);
    };
    for (let step = 0; step < 300; step++) {
      try {
        change();
        model();
      } catch {
        // A link to itself: the next step starts with an empty folder.
        for (const name of readdirSync(root)) rmSync(join(root, name), { recursive: true });
      }
      expect([step, await namesAt(port, '/')]).toEqual([step, model()]);
    }
  });

  it('a listing keeps the Cache-Control of earlier middleware', async () => {
    const files = staticFiles(makeFolder({ 'a.txt': '' }), { listing: true });
    const guarded = (req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void): void => {
      res.setHeader('Cache-Control', 'no-store');
      files(req, res, next);
    };
    const port = await listen(bare(guarded));
    expect((await get(port, '/')).headers['cache-control']).toBe('no-store');
  });

  it('folders of a source and folders below a mount are listed, before the fallback page', async () => {
    const source = memoryFiles({ 'docs/a.txt': 'a', 'index2.html': '' });
    const port = await listen(bare(staticFiles(source, { listing: true, fallback: 'index2.html' })));
    expect(await namesAt(port, '/')).toEqual(['docs', 'index2.html']);
    expect((await get(port, '/none/', { accept: 'text/html' })).text).toBe('');
    const files = staticFiles(join(folderWithLinks(), 'www'), { listing: true });
    const app = await listen(express().use('/files', files) as never);
    expect((await get(app, '/files')).headers.location).toBe('./files/');
  });

  it('every name of a listing opens its file in Chromium, and none of them runs', async () => {
    const port = await start();
    const browser: Browser = await launch();
    for (const [scheme, width] of [
      ['light', 375],
      ['dark', 375],
      ['light', 1280],
      ['dark', 1280],
    ] as const) {
      const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height: 800 } });
      const page = await context.newPage();
      const problems: string[] = [];
      page.on('console', (message) => problems.push(message.text()));
      page.on('pageerror', (error) => problems.push(String(error)));
      page.on('dialog', (dialog) => void problems.push(dialog.message()));
      await page.goto(`http://127.0.0.1:${port}/`);
      // There is no icon.
      expect(problems.filter((problem) => !problem.includes('404 (Not Found)'))).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
      // Axe-core cannot see the ground that only `color-scheme` gives.
      const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      expect(ground).toBe(scheme === 'dark' ? 'rgb(18, 18, 18)' : 'rgb(255, 255, 255)');
      const urls = await page.$$eval('li a', (links) =>
        links.map((link) => (link as HTMLAnchorElement).href),
      );
      for (const url of urls) {
        expect(url).toMatch(/^http:/);
        expect([url, (await page.request.get(url)).status()]).toEqual([url, 200]);
      }
      const folder = process.env['SCREENSHOTS'];
      if (folder !== undefined) await page.screenshot({ path: `${folder}/listing-${width}-${scheme}.png` });
      await context.close();
    }
    await browser.close();
  });
});
