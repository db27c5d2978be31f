/** @tags once slow */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import express from 'express';
import helmet from 'helmet';
import type { Browser, Page } from 'playwright-core';
import { staticFiles } from '../../middleware/static.ts';
import type { PagesOptions } from '../../types/static.ts';
import { launch } from '../chromium.ts';
import { listen, makeFolder } from '../static/fixture.ts';
import { buildWithVite } from './vite-build.ts';

jest.setTimeout(120_000);

let browser: Browser;
const folder = makeFolder({});
let dist: string;
beforeAll(async () => {
  dist = buildWithVite(folder, 'one');
  browser = await launch();
});
afterAll(() => browser.close());

const assets = () => join(dist, 'assets');
const csp = "default-src 'self'";

/** Opens the application and collects what the console says. */
async function open(
  pages: PagesOptions,
  { before = [], replace }: { before?: express.RequestHandler[]; replace?: (body: string) => string } = {},
): Promise<{ page: Page; messages: string[]; statuses: number[]; url: string }> {
  const app = express();
  for (const each of before) app.use(each);
  if (replace !== undefined) {
    // A cache that has changed scripts.
    app.use('/assets', (req, res, next) => {
      if (!req.path.endsWith('.js')) return next();
      res.type('js').send(replace(readFileSync(join(assets(), req.path), 'utf8')));
    });
  }
  app.use(staticFiles(dist, { fallback: 'index.html', cacheControl: /^\/assets\//, pages }));
  const url = `http://127.0.0.1:${await listen(app)}/`;
  const page = await browser.newPage();
  const messages: string[] = [];
  const statuses: number[] = [];
  page.on('console', (message) => {
    if (!message.location().url.endsWith('/favicon.ico')) messages.push(message.text());
  });
  page.on('response', (response) => {
    if (response.url() === url) statuses.push(response.status());
  });
  await page.goto(url);
  return { page, messages, statuses, url };
}

const title = (page: Page, expected: RegExp): Promise<unknown> =>
  page.waitForFunction(([source]) => new RegExp(source as string).test(document.title), [expected.source]);

/** Uses the whole application: main script, style sheet, inline code, and a chunk that is loaded later. */
async function exerciseApp(page: Page): Promise<void> {
  await title(page, /^main one shared$/);
  expect(await page.evaluate(() => document.documentElement.dataset['inline'])).toBe('ran');
  expect(await page.evaluate(() => getComputedStyle(document.body).backgroundColor)).toBe('rgb(1, 2, 3)');
  expect(await page.evaluate(() => getComputedStyle(document.querySelector('button') as Element).color)).toBe(
    'rgb(7, 8, 9)',
  );
  await page.click('#more');
  await title(page, /^more one shared$/);
}

const injected = (page: Page): Promise<string> =>
  page.evaluate(async () => {
    const script = document.createElement('script');
    script.textContent = "document.documentElement.dataset.injected = 'ran'";
    document.body.append(script);
    document.body.insertAdjacentHTML(
      'beforeend',
      `<img src=x onerror="document.documentElement.dataset.injected = 'ran'">`,
    );
    await new Promise((done) => setTimeout(done, 200));
    return document.documentElement.dataset['injected'] ?? 'refused';
  });

describe('a Vite build in Chromium', () => {
  it('the application runs under its policy with integrity and configuration, and an injected script does not', async () => {
    const { page, messages } = await open({ csp, integrity: true, config: () => ({ api: '</script>é' }) });
    await exerciseApp(page);
    expect(messages).toEqual([]);
    const config = () => JSON.parse(document.getElementById('app-config')?.textContent ?? '');
    expect(await page.evaluate(config)).toEqual({ api: '</script>é' });
    expect(await injected(page)).toBe('refused');
    await page.close();
  });

  it('without the policy the injected script runs', async () => {
    const { page } = await open({ config: () => 1 });
    await exerciseApp(page);
    expect(await injected(page)).toBe('ran');
    await page.close();
  });

  it('a reload is a 304, and the application runs under the stored policy', async () => {
    const { page, statuses } = await open({ csp, integrity: true });
    await exerciseApp(page);
    await page.reload();
    await exerciseApp(page);
    expect(await injected(page)).toBe('refused');
    // Playwright shows the stored response; its time shows that the server sent none.
    expect(statuses.every((status) => status === 200 || status === 304)).toBe(true);
    await page.close();
  });

  it('the application runs with helmet mounted before, whose other directives stay', async () => {
    const strict = helmet({
      contentSecurityPolicy: { directives: { styleSrc: ["'self'"], upgradeInsecureRequests: null } },
    });
    const { page, messages } = await open({ csp }, { before: [strict] });
    await exerciseApp(page);
    expect(messages).toEqual([]);
    expect(await injected(page)).toBe('refused');
    await page.close();
  });

  it('helmet alone refuses the inline code of the page', async () => {
    const strict = helmet({
      contentSecurityPolicy: { directives: { styleSrc: ["'self'"], upgradeInsecureRequests: null } },
    });
    const { page, messages } = await open({ config: () => 1 }, { before: [strict] });
    await title(page, /^main one/);
    expect(await page.evaluate(() => document.documentElement.dataset['inline'])).toBeUndefined();
    expect(messages.join()).toContain('Content Security Policy');
    await page.close();
  });

  it("the application runs under 'strict-dynamic' with integrity, and with a nonce", async () => {
    const policy = "script-src 'strict-dynamic'; object-src 'none'; base-uri 'none'";
    for (const pages of [{ csp: policy, integrity: true }, { csp: { policy, nonce: true } }]) {
      const { page, messages } = await open(pages);
      await exerciseApp(page);
      expect(messages).toEqual([]);
      await page.close();
    }
  });

  it('the browser refuses a script that a cache has replaced', async () => {
    const { page, messages } = await open(
      { integrity: true },
      { replace: (body) => `${body};document.documentElement.dataset.stolen = 'yes'` },
    );
    await page.waitForTimeout(500);
    expect(await page.title()).toBe('start');
    expect(await page.evaluate(() => document.documentElement.dataset['stolen'])).toBeUndefined();
    expect(messages.join()).toContain('integrity');
    await page.close();
  });

  it('the browser refuses a style sheet that was replaced', async () => {
    const name = readdirSync(assets()).find((each) => each.endsWith('.css')) as string;
    const change: express.RequestHandler = (req, res, next) =>
      req.path === `/assets/${name}` ? void res.type('css').send('button { color: red }') : next();
    const { page, messages } = await open({ integrity: true }, { before: [change] });
    await title(page, /^main one/);
    const color = () => getComputedStyle(document.querySelector('button') as Element).color;
    expect(await page.evaluate(color)).not.toBe('rgb(255, 0, 0)');
    expect(messages.join()).toContain('integrity');
    await page.close();
  });

  it('the browser refuses an injected element that loads a script of the same origin, such as an upload', async () => {
    const upload: express.RequestHandler = (req, res, next) =>
      req.path === '/upload.js' ? void res.type('js').send('document.title = "stolen"') : next();
    for (const [pages, expected] of [
      [{ csp, integrity: true }, 'refused'],
      [{ csp }, 'ran'],
    ] as const) {
      const { page } = await open(pages, { before: [upload] });
      await title(page, /^main one/);
      const result = page.evaluate(
        () =>
          new Promise((done) => {
            const script = document.createElement('script');
            script.src = '/upload.js';
            script.onload = () => done('ran');
            script.onerror = () => done('refused');
            document.body.append(script);
          }),
      );
      expect(await result).toBe(expected);
      await page.close();
    }
  });

  it('the browser refuses a chunk that is replaced after the page was opened', async () => {
    const { page } = await open({ integrity: true });
    await title(page, /^main one/);
    const name = readdirSync(assets()).find((each) => each.startsWith('more')) as string;
    const before = readFileSync(join(assets(), name));
    writeFileSync(join(assets(), name), 'export default "stolen";');
    await page.click('#more');
    await title(page, /^failed: /);
    writeFileSync(join(assets(), name), before);
    await page.close();
  });
});
