/** @tags once slow */
import { cpSync, existsSync, readdirSync, rmSync } from 'node:fs';
import type { Server } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { staticFiles } from '../../middleware/static.ts';
import { launch } from '../chromium.ts';
import { makeFolder } from '../static/fixture.ts';
import { until } from '../until.ts';
import { buildWithVite } from './vite-build.ts';

jest.setTimeout(120_000);

let browser: Browser;
const folder = makeFolder({});
beforeAll(async () => {
  for (const release of ['one', 'two']) buildWithVite(folder, release);
  browser = await launch();
});
afterAll(() => browser.close());

const live = join(folder, 'live');
const kept = join(folder, 'kept');

/** Puts a build in the place of another. */
function deploy(release: string): void {
  rmSync(live, { recursive: true, force: true });
  cpSync(join(folder, `dist-${release}`), live, { recursive: true });
}

async function serve(port: number, keep: boolean): Promise<Server> {
  const options = { fallback: 'index.html', cacheControl: 'vite', pages: { integrity: true } };
  const files = staticFiles(live, keep ? { ...options, keep: { directory: kept } } : options);
  const server = createServer((req, res) => files(req, res, () => void res.end()));
  await new Promise<void>((done) => server.listen(port, '127.0.0.1', done));
  return server;
}

async function stop(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((done) => server.close(done));
}

/** Opens a page of the first build, replaces build and process, and lets the page load its chunk. */
async function importAfterSwitch(keep: boolean): Promise<string> {
  deploy('one');
  const first = await serve(0, keep);
  const { port } = first.address() as AddressInfo;
  const page: Page = await (await browser.newContext()).newPage();
  await page.goto(`http://127.0.0.1:${port}/`);
  await page.waitForFunction(() => document.title === 'main one shared');
  const chunk = readdirSync(join(live, 'assets')).find((name) => name.startsWith('more')) as string;
  if (keep) await until(() => existsSync(join(kept, 'assets', chunk)));
  await stop(first);
  deploy('two');
  expect(existsSync(join(live, 'assets', chunk))).toBe(false);
  const second = await serve(port, keep);
  await page.click('#more');
  await page.waitForFunction(() => /^(?:more|failed)/.test(document.title));
  const title = await page.title();
  await page.reload();
  await page.waitForFunction(() => document.title === 'main two shared');
  await page.context().close();
  await stop(second);
  return title;
}

describe('a page that is open during a deployment', () => {
  it('it loads a chunk of its own build with the option keep', async () => {
    expect(await importAfterSwitch(true)).toBe('more one shared');
  });

  it('it cannot load it without the option', async () => {
    expect(await importAfterSwitch(false)).toMatch(/^failed/);
  });
});
