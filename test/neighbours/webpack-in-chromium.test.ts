/** @tags once slow */
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { staticFiles } from '../../middleware/static.ts';
import type { PagesOptions } from '../../types/static.ts';
import { launch } from '../chromium.ts';
import { bare, get, listen, makeFolder } from '../static/fixture.ts';

jest.setTimeout(120_000);

const MAIN = `import './main.css';
import logo from './logo.svg';
import { shared } from './shared.js';
document.documentElement.dataset.logo = logo;
document.title = 'main ' + shared;
document.querySelector('#more').addEventListener('click', async () => {
  try {
    document.title = (await import(/* webpackChunkName: "more" */ './more.js')).default;
  } catch (error) {
    document.title = 'failed: ' + error.message;
  }
});`;

/** Builds an application with a style sheet, an image and a chunk that a click loads. */
function build(format: 'scripts' | 'module'): string {
  const folder = makeFolder({
    'src/main.js': MAIN,
    'src/main.css': 'button { color: rgb(7, 8, 9) }',
    'src/logo.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>',
    'src/shared.js': `export const shared = 'shared';`,
    'src/more.js': `import { shared } from './shared.js'; export default 'more ' + shared;`,
  });
  const target = join(folder, 'dist');
  const args = [join(__dirname, 'webpack-build.mjs'), join(folder, 'src'), target, format];
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return target;
}

let browser: Browser;
const builds = new Map<string, string>();
beforeAll(async () => {
  for (const format of ['scripts', 'module'] as const) builds.set(format, build(format));
  browser = await launch();
});
afterAll(() => browser.close());

/** Opens the application, and loads its chunk. */
async function titleAfterClick(format: 'scripts' | 'module', pages: PagesOptions): Promise<string> {
  const options = { fallback: 'index.html', cacheControl: 'webpack', pages };
  const port = await listen(bare(staticFiles(builds.get(format) as string, options)));
  const page: Page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${port}/`);
  await page.waitForFunction(() => document.title === 'main shared');
  expect(await page.evaluate(() => document.documentElement.dataset['inline'])).toBe('ran');
  expect(await page.evaluate(() => getComputedStyle(document.querySelector('button') as Element).color)).toBe(
    'rgb(7, 8, 9)',
  );
  await page.click('#more');
  await page.waitForFunction(() => /^(?:more|failed)/.test(document.title));
  const title = await page.title();
  await page.close();
  return title;
}

describe('a webpack build', () => {
  it('cacheControl: "webpack" makes exactly the files with a hash immutable', async () => {
    const root = builds.get('scripts') as string;
    const port = await listen(bare(staticFiles(root, { cacheControl: 'webpack' })));
    const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) =>
      /\.\w+$/.test(name),
    );
    const immutable: string[] = [];
    for (const name of names) {
      const { headers } = await get(port, `/${name}`);
      if (headers['cache-control']?.includes('immutable')) immutable.push(name);
    }
    expect(immutable.sort()).toEqual(names.filter((name) => name !== 'index.html').sort());
    for (const kind of [/^js\/.*\.js$/, /\.js\.map$/, /\.chunk\.js$/, /^css\/.*\.css$/, /\.svg$/])
      expect(immutable.some((name) => kind.test(name))).toBe(true);
  });

  it.each(['scripts', 'module'] as const)(
    'an application of %s runs under the policy of its page',
    async (format) => {
      expect(await titleAfterClick(format, { csp: true, config: () => 1 })).toBe('more shared');
    },
  );

  it('an application of modules runs with the integrity of its chunks', async () => {
    expect(await titleAfterClick('module', { csp: true, integrity: true })).toBe('more shared');
  });

  it('the browser refuses the chunks of an application of scripts with integrity, which have no hash', async () => {
    expect(await titleAfterClick('scripts', { integrity: true })).toMatch(/^failed: Loading chunk/);
  });
});
