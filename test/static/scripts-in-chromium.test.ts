/** @tags once slow */
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { staticFiles } from '../../middleware/static.ts';
import { launch } from '../chromium.ts';
import { bare, get, listen, makeFolder } from './fixture.ts';

jest.setTimeout(60_000);

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

const read = async (files: Record<string, string>, path: string, options: object): Promise<string[]> => {
  const root = join(makeFolder(files), 'www');
  const port = await listen(bare(staticFiles(root, { html: true, ...options })));
  const page = await browser.newPage();
  const problems: string[] = [];
  page.on('console', (message) => problems.push(message.text()));
  page.on('pageerror', (error) => problems.push(String(error)));
  await page.goto(`http://127.0.0.1:${port}${path}`);
  await page.waitForLoadState('networkidle');
  const text = (await page.innerText('body')).trim();
  await page.close();
  // The page of the 404 has this status, and there is no icon.
  return [text, ...problems.filter((problem) => !problem.includes('404 (Not Found)'))];
};

it('Chromium runs scripts of every name that bundlers and browsers know', async () => {
  const add = (name: string) => `document.body.append('${name} ')`;
  const names = ['js', 'mjs', 'umd.cjs', 'es6', 'jsm', 'es'].map((extension) => `lib.${extension}`);
  const html = [
    '<title></title><body></body>',
    ...names.map((name) => `<script src="${name}"></script><script type=module src="m-${name}"></script>`),
  ].join('\n');
  const files = Object.fromEntries(
    names.flatMap((name) => [
      [`www/${name}`, add(name)],
      [`www/m-${name}`, add(`m-${name}`)],
    ]),
  );
  const [text, ...problems] = await read({ 'www/index.html': html, ...files }, '/', {});
  expect(problems).toEqual([]);
  expect(text?.split(/\s+/).sort()).toEqual([...names, ...names.map((name) => `m-${name}`)].sort());
});

// The 404 page of VitePress names its first module only: the others are in a folder below.
const SITE = {
  'www/404.html': '<title></title><body></body><script type="module" src="/assets/app.DQ1x.js"></script>',
  'www/assets/app.DQ1x.js':
    'import{t}from"./chunks/theme.B2y.js";import"../vendor/v1.js";t();import(`./chunks/@local.C3.js`)',
  'www/assets/chunks/theme.B2y.js': 'export*from "./framework.js"',
  'www/assets/chunks/framework.js': 'export const t = () => document.body.append("theme ")',
  'www/assets/chunks/@local.C3.js': 'document.body.append("search ")',
  'www/vendor/v1.js': 'document.body.append("vendor ")',
};

it('Chromium loads the modules that a module in another folder imports, with pages.integrity', async () => {
  const pages = { integrity: true };
  expect(await read(SITE, '/404', { cleanUrls: true, pages })).toEqual(['vendor theme search']);
});

it('Chromium loads what an inline script imports, with pages.integrity', async () => {
  const html = '<title></title><body></body><script type=module>import("./assets/app.DQ1x.js")</script>';
  expect(await read({ ...SITE, 'www/index.html': html }, '/', { pages: { integrity: true } })).toEqual([
    'vendor theme search',
  ]);
});

it('the import map of pages.integrity has relative URLs where the page has them', async () => {
  const html = '<script type=module src="./assets/app.DQ1x.js"></script>';
  const root = join(makeFolder({ ...SITE, 'www/index.html': html }), 'www');
  const port = await listen(bare(staticFiles(root, { html: true, pages: { integrity: true } })));
  const { text } = await get(port, '/');
  const { integrity } = JSON.parse(/<script type="importmap">(.*?)<\/script>/.exec(text)?.[1] ?? '');
  expect(Object.keys(integrity).sort()).toEqual([
    './assets/app.DQ1x.js',
    './assets/chunks/@local.C3.js',
    './assets/chunks/framework.js',
    './assets/chunks/theme.B2y.js',
    './vendor/v1.js',
  ]);
});
