/** @tags once slow */
import type { Browser, Page } from 'playwright-core';
import { launch } from '../chromium.ts';
import { until } from '../until.ts';
import { type Shop, startShop } from './page.ts';

let browser: Browser;
let shop: Shop;
beforeAll(async () => {
  browser = await launch();
});
beforeEach(async () => {
  shop = await startShop();
});
afterEach(() => shop.close());
afterAll(() => browser.close());

/** Opens the page, and collects its problems and the addresses that it requests. */
async function open(options: Parameters<Browser['newContext']>[0] = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(10_000);
  const page = await context.newPage();
  const problems: string[] = [];
  const requests: string[] = [];
  page.on('console', (message) => problems.push(`console ${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => problems.push(`error: ${error.message}`));
  page.on('request', (request) => requests.push(request.url()));
  await page.goto(`${shop.origin}/inspect`);
  await page.locator('#state', { hasText: 'live' }).waitFor();
  return { page, problems, requests, context };
}

const rows = (page: Page, section: string): Promise<string[]> =>
  page.locator(`#${section} tbody tr`).allInnerTexts();

it('the page of inspect shows operations, errors and sockets as they change, and requests nothing else', async () => {
  const { page, problems, requests, context } = await open();
  expect(await page.locator('#operations .empty').isVisible()).toBe(true);
  for (let turn = 0; turn < 3; turn++) await shop.send('query Product { product }');
  await shop.send('query Basket { basket }');
  const client = await shop.subscribe();
  await shop.send('mutation Checkout { checkout }');
  await shop.asset();
  await page.locator('#operations tbody tr', { hasText: 'Checkout' }).waitFor();
  await page.locator('#operations tbody tr', { hasText: '{ events }' }).waitFor();
  const operations = await rows(page, 'operations');
  expect(operations.find((row) => row.includes('Product'))).toMatch(
    /query\s*Product\s+3\s+0\s+[\d.]+ (?:µs|ms)/,
  );
  expect(await rows(page, 'errors')).toEqual([
    expect.stringMatching(/UNAUTHENTICATED\s+1\s+Sign in to see your basket/),
  ]);
  expect(await page.locator('#tiles').textContent()).toMatch(/Sockets and streams\s*1/);
  expect(await page.locator('#budgets').textContent()).toMatch(/Documents\s*[\d.]+ KiB of \d+ MiB/);
  expect(await page.title()).toBe('espalier: live figures');
  await client.close();
  await page.locator('#live', { hasText: /Sockets and event streams\s*0/ }).waitFor();
  expect(problems).toEqual([]);
  expect([...new Set(requests)].filter((url) => !url.startsWith('data:'))).toEqual([
    `${shop.origin}/inspect`,
  ]);
  await context.close();
});

it('the page of inspect lists deprecated fields in use with their clients', async () => {
  const { page, problems, context } = await open();
  expect(await page.locator('#deprecated .empty').isVisible()).toBe(true);
  await shop.send('{ price }', 'shop <b>1</b>');
  await shop.send('{ price }', 'shop <b>1</b>');
  await page.locator('#deprecated tbody tr').waitFor();
  expect(await rows(page, 'deprecated')).toEqual([
    expect.stringMatching(/^Query\.price\s+shop <b>1<\/b>\s+2\s+\d+\s+s ago$/),
  ]);
  expect(problems).toEqual([]);
  await context.close();
});

it('a click on a heading sorts a table, a second one turns the order around, and a filter leaves the rows with its text', async () => {
  for (const query of ['query Basket { basket }', 'query Stock { stock }', 'query Product { product }'])
    await shop.send(query);
  for (let turn = 0; turn < 2; turn++) await shop.send('query Stock { stock }');
  const { page, problems, context } = await open();
  const names = () => page.locator('#operations tbody code').allInnerTexts();
  const heading = (name: string) => page.locator('#operations').getByRole('button', { name });
  const sorted = (name: string) =>
    page.locator('#operations th', { has: page.getByRole('button', { name }) }).getAttribute('aria-sort');
  await page.locator('#operations tbody tr').nth(2).waitFor();

  await heading('Operation').click();
  expect(await names()).toEqual(['Basket', 'Product', 'Stock']);
  await heading('Operation').click();
  expect([await names(), await sorted('Operation')]).toEqual([['Stock', 'Product', 'Basket'], 'descending']);
  await heading('Errors').click();
  expect((await names())[0]).toBe('Basket');
  await heading('Requests').click();
  expect([(await names())[0], await sorted('Requests'), await sorted('Operation')]).toEqual([
    'Stock',
    'descending',
    null,
  ]);

  // The order and the filter stay when new figures arrive.
  await page.getByRole('searchbox').fill('pro');
  expect(await names()).toEqual(['Product']);
  await shop.send('query Promise { price }');
  await shop.send('query Promise { price }');
  await page.locator('#operations tbody tr', { hasText: 'Promise' }).waitFor();
  expect(await names()).toEqual(['Promise', 'Product']);
  await page.getByRole('searchbox').fill('no such row');
  expect(await page.locator('#operations .empty').innerText()).toBe('Nothing matches the filter.');
  await page.getByRole('searchbox').fill('');
  expect((await names()).length).toBe(4);
  expect(problems).toEqual([]);
  await context.close();
});

it('a long name stays on one line, and the pointer shows it whole, with exact values and the figures of a second', async () => {
  const name = 'Long'.repeat(20);
  await shop.send(`query ${name} { product }`);
  await shop.send('query Short { product }');
  const { page, context } = await open({ viewport: { width: 375, height: 740 } });
  const row = (text: string) => page.locator('#operations tbody tr', { hasText: text });
  await row(name).waitFor();
  const height = async (text: string) => (await row(text).locator('code').boundingBox())?.height ?? 0;
  expect(await height(name)).toBeLessThan(1.5 * (await height('Short')));
  expect(await row(name).locator('td').first().getAttribute('title')).toBe(name);
  expect(await row(name).locator('td').nth(3).getAttribute('title')).toMatch(/^\d+\.\d{3} ms$/);
  const seconds = await page.locator('#chart title').allTextContents();
  expect(seconds.length).toBe(120);
  expect(seconds.some((text) => /^[12] operations, 0 with errors, (?:now|\d+\s+s ago)$/.test(text))).toBe(
    true,
  );
  await context.close();
});

it('the page of inspect has a pause button, and shows when the server does not respond', async () => {
  const { page, context } = await open();
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.locator('#state', { hasText: 'paused' }).waitFor();
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.locator('#state', { hasText: 'live' }).waitFor();
  await shop.close();
  await page.locator('#state', { hasText: 'no connection' }).waitFor();
  await context.close();
});

it.each([
  ['a phone', { viewport: { width: 360, height: 740 } }],
  ['a phone in dark mode', { viewport: { width: 360, height: 740 }, colorScheme: 'dark' as const }],
  ['a wide window', { viewport: { width: 1600, height: 900 } }],
])('the page fits on %s without horizontal scrolling', async (_, options) => {
  const long = `query ${'Long'.repeat(20)} { product }`;
  await shop.send(long);
  await shop.send('query Basket { basket }');
  const { page, context } = await open(options);
  await page.locator('#errors tbody tr').waitFor();
  const { width, scroll, background } = await page.evaluate(() => ({
    width: document.documentElement.clientWidth,
    scroll: document.documentElement.scrollWidth,
    background: getComputedStyle(document.body).backgroundColor,
  }));
  expect(scroll).toBe(width);
  expect(background === 'rgb(18, 22, 15)').toBe('colorScheme' in options);
  await context.close();
});

it('the policy of the inspect page blocks scripts and styles that a message contains', async () => {
  const { page, problems, context } = await open();
  await shop.send('query Nope { nope_ }');
  await page.evaluate(() => {
    document.body.insertAdjacentHTML(
      'beforeend',
      '<img src=x onerror="document.title=1"><p style="color:red">x</p>',
    );
    const script = document.createElement('script');
    script.textContent = 'document.title = "2"';
    document.body.append(script);
    // The script runs immediately, if at all, and the attribute when the image cannot be loaded.
    return new Promise((resolve) => document.querySelector('img')?.addEventListener('error', resolve));
  });
  await until(() => problems.some((problem) => problem.includes('Content Security Policy')));
  expect(await page.title()).toBe('espalier: live figures');
  await context.close();
});
