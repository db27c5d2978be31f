// Takes the pictures of docs/images again, in Chromium: `npm run pictures` after `npm run build`, or with the names of some,
// such as `npm run pictures -- graphiql`. Look at each of them before you commit it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { graphqlHTTP } from 'espalier';
import express from 'express';
import { buildSchema } from 'graphql';
import { chromium } from 'playwright-core';
import { LAUNCH_OPTIONS } from '../test/chromium.ts';

const root = join(import.meta.dirname, '..');
// Without a guard, inspect is only on in development. Tests are CommonJS.
process.env.NODE_ENV ??= 'development';
const { startShop } = createRequire(import.meta.url)('../test/inspect/page.ts');
const TAKEN = { graphiql: takeGraphiQL, inspect: takeInspect, 'photo-wall': takePhotoWall };
const names = process.argv.slice(2);
for (const name of names.length > 0 ? names : Object.keys(TAKEN)) await TAKEN[name]();

/** Opens a page that `prepare` makes ready, and writes its picture. */
async function take(file, url, options, prepare) {
  const browser = await chromium.launch(LAUNCH_OPTIONS);
  const context = await browser.newContext({ reducedMotion: 'reduce', ...options });
  const page = await context.newPage();
  await page.goto(url);
  await prepare(page, context);
  await page.screenshot({ path: join(root, 'docs/images', `${file}.png`), animations: 'disabled' });
  console.log(`wrote docs/images/${file}.png`);
  await browser.close();
}

async function takeGraphiQL() {
  const schema = buildSchema(`
    type Query {
      "What stands on the shelves, the newest first."
      books(first: Int = 10): [Book!]!
      "One book by its title, if we have it."
      book(title: String!): Book
    }
    type Book { title: String! pages: Int author: Author }
    type Author { name: String! }
  `);
  const books = [
    { title: 'Walden', pages: 352, author: { name: 'Henry David Thoreau' } },
    { title: 'Silent Spring', pages: 400, author: { name: 'Rachel Carson' } },
    { title: 'Cannery Row', pages: 196, author: { name: 'John Steinbeck' } },
  ];
  const rootValue = { books: ({ first }) => books.slice(0, first) };
  const server = express().use('/graphql', graphqlHTTP(schema, { rootValue })).listen(0);
  await once(server, 'listening');
  const query = `query Shelf($first: Int) {
  books(first: $first) {
    title
    pages
    author {
      name
    }
  }
}`;
  const linked = new URLSearchParams({ query, variables: '{\n  "first": 3\n}' });
  const url = `http://localhost:${server.address().port}/graphql#${linked}`;
  const viewport = { width: 1200, height: 720 };
  for (const [file, colorScheme] of [
    ['graphiql', 'light'],
    ['graphiql-dark', 'dark'],
  ]) {
    await take(file, url, { viewport, colorScheme }, async (page) => {
      await page.locator('.graphiql-query-editor').getByText('Shelf').waitFor();
      await page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
      await page.locator('.graphiql-doc-explorer').getByText('Query', { exact: true }).last().click();
      await page.locator('.graphiql-execute-button').click();
      await page.locator('.graphiql-response').getByText('Steinbeck').waitFor();
      await page.mouse.move(640, 640);
      await page.locator('.graphiql-tooltip').waitFor({ state: 'detached' });
    });
  }
  server.close();
}

/** The traffic of a shop: more and more visitors, some of whom are not signed in. */
async function visitShop(shop, seconds) {
  const clients = await Promise.all(Array.from({ length: 20 }, () => shop.subscribe()));
  for (let tick = 0; tick < seconds * 10; tick++) {
    const some = Math.ceil((tick / 60) * (1 + Math.sin(tick / 9)));
    for (let each = 0; each < some; each++) {
      await shop.send('query Product { product }');
      await shop.send('query Search { search }');
    }
    await shop.asset();
    if (tick % 4 === 0) await shop.send('mutation Checkout { checkout }');
    if (tick % 5 === 0) await shop.send('query Stock { stock }');
    if (tick % 11 === 0) await shop.send('query Basket { basket }');
    if (tick % 25 === 0) await shop.send('{ price }');
    if (tick % 40 === 0) await shop.send('query RecommendationsForTheFrontPageOfTheShop { search }');
    await pause(100);
  }
  return clients;
}

async function takeInspect() {
  const shop = await startShop();
  const clients = await visitShop(shop, 40);
  const isLive = (page) => page.locator('#state', { hasText: 'live' }).waitFor();
  const slowestFirst = async (page) => {
    await isLive(page);
    await page.locator('#operations').getByRole('button', { name: 'p99' }).click();
    await page.mouse.move(0, 0);
  };
  const url = `${shop.origin}/inspect`;
  const viewport = { width: 1180, height: 1490 };
  await take('inspect', url, { viewport, colorScheme: 'light' }, slowestFirst);
  await take('inspect-dark', url, { viewport, colorScheme: 'dark' }, slowestFirst);
  const phone = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true };
  await take('inspect-phone', url, { ...phone, colorScheme: 'light' }, isLive);
  await Promise.all(clients.map((client) => client.close()));
  await shop.close();
}

async function takePhotoWall() {
  const folder = mkdtempSync(join(tmpdir(), 'photo-wall-'));
  const child = spawn(process.execPath, ['--import', 'tsx', 'examples/photo-wall/server.ts'], {
    cwd: root,
    env: { ...process.env, PORT: '0', DATA_DIR: folder },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(child.stdout, 'data');
  const url = /http:\/\/localhost:\d+/.exec(String(line))[0];
  const viewport = { width: 980, height: 620 };
  await take('photo-wall', url, { viewport, colorScheme: 'light' }, async (page, context) => {
    await page.locator('#live', { hasText: 'Live' }).waitFor();
    await page.waitForFunction(() => [...document.images].every(({ complete }) => complete));
    const network = await context.newCDPSession(page);
    await network.send('Network.emulateNetworkConditions', {
      offline: false,
      latency: 0,
      downloadThroughput: -1,
      uploadThroughput: 200_000,
    });
    const picture = readFileSync(join(root, 'examples/photo-wall/pictures/evening-tide.png'));
    // Browsers ignore what follows the picture, so the upload is long enough to be seen.
    const buffer = Buffer.concat([picture, Buffer.alloc(2_000_000)]);
    await page.locator('#picker').setInputFiles({ name: 'evening-tide.png', mimeType: 'image/png', buffer });
    await page
      .locator('.upload .state')
      .getByText(/^[56]\d %/)
      .waitFor();
  });
  child.kill();
  await once(child, 'exit');
  rmSync(folder, { recursive: true, force: true });
}
