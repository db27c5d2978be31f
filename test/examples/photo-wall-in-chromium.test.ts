/** @tags once slow */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { launch } from '../chromium.ts';
import { freePort } from '../programs.ts';
import { until } from '../until.ts';
import { type Running, startExample, stopExamples } from './start.ts';

const artifacts = resolve(__dirname, '../../artifacts');
const picture = resolve(__dirname, '../../examples/photo-wall/pictures/hills-in-may.png');
const folder = mkdtempSync(join(tmpdir(), 'photo-wall-'));
const temporary = join(folder, 'tmp');
const env = { DATA_DIR: join(folder, 'data'), TMPDIR: temporary };
const problems: string[] = [];

let browser: Browser;
let wall: Running;
let port: string;
let page: Page;
let other: Page;

beforeAll(async () => {
  for (const path of [artifacts, temporary]) mkdirSync(path, { recursive: true });
  port = String(await freePort());
  [browser, wall] = await Promise.all([launch(), startExample('photo-wall/server', { ...env, PORT: port })]);
  [page, other] = await Promise.all([visit(), visit()]);
});
afterAll(async () => {
  await browser?.close();
  await stopExamples();
  rmSync(folder, { recursive: true, force: true });
});

/** Opens the wall in a new browser context and waits until it is live. */
async function visit(
  options: Parameters<Browser['newContext']>[0] = {},
  { prepare, url = wall.url }: { prepare?: (context: BrowserContext) => Promise<unknown>; url?: string } = {},
): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
  await prepare?.(context);
  const visitor = await context.newPage();
  visitor.on('console', (message) => message.type() === 'error' && problems.push(message.text()));
  visitor.on('pageerror', (error) => problems.push(String(error)));
  await visitor.goto(url);
  await visitor.locator('#live', { hasText: 'Live' }).waitFor();
  return visitor;
}

const tiles = (visitor: Page, title: string) => visitor.locator('.tile', { hasText: title });
const uploads = (visitor: Page) => visitor.locator('.upload');
// tsx keeps its own cache there.
const leftovers = () => readdirSync(temporary).filter((name) => !name.startsWith('tsx-'));
const kept = () => readdirSync(join(env.DATA_DIR, 'pictures')).length;
const choose = (visitor: Page, files: Parameters<Page['setInputFiles']>[1]) =>
  visitor.locator('#picker').setInputFiles(files);
const named = (name: string, buffer: Buffer, mimeType = 'image/png') => ({ name, mimeType, buffer });

describe('the photo wall', () => {
  it('a new photo wall shows six example pictures', async () => {
    const fresh = await startExample('photo-wall/server', { ...env, DATA_DIR: join(folder, 'new') });
    const visitor = await visit({}, { url: fresh.url });
    await tiles(visitor, 'Full moon on the lake').waitFor();
    expect(await visitor.locator('.tile').count()).toBe(6);
    await visitor.waitForFunction(() => [...document.images].every((image) => image.complete));
  });

  it('the last row of the photo wall fills the width if it nearly does, and a picture alone keeps its height', async () => {
    const fresh = await startExample('photo-wall/server', { ...env, DATA_DIR: join(folder, 'row') });
    const visitor = await visit({}, { url: fresh.url });
    await tiles(visitor, 'Full moon on the lake').waitFor();
    // Of the layout, which the animation of new pictures does not change.
    const boxes = (): Promise<{ right: number; height: number }[]> =>
      visitor.evaluate(
        "['#wall', '.tile', '.tile:last-child'].map((name) => document.querySelector(name)).map((box) => ({ right: box.offsetLeft + box.offsetWidth, height: box.offsetHeight }))",
      );
    const [wall, , full] = await boxes();
    expect(Math.abs((full?.right ?? 0) - (wall?.right ?? 0))).toBeLessThanOrEqual(1);
    await visitor.evaluate(
      "document.querySelectorAll('.tile:nth-child(n + 5)').forEach((tile) => tile.remove())",
    );
    await visitor.locator('#wall:not(.filled)').waitFor();
    const [, first, alone] = await boxes();
    expect(alone?.height).toBeLessThanOrEqual((first?.height ?? 0) + 1);
  });

  it('the photo wall shows an added picture in every open tab', async () => {
    await choose(page, named('Picnic_in-the.hills.png', readFileSync(picture)));
    await Promise.all([page, other].map((visitor) => tiles(visitor, 'Picnic in the hills').waitFor()));
    expect(await tiles(page, 'Picnic in the hills').count()).toBe(1);
    expect(await other.locator('.tile .title').first().textContent()).toBe('Picnic in the hills');
    await other.screenshot({ path: join(artifacts, 'photo-wall-other-tab.png') });
    const finished = uploads(page).locator('css=.done');
    if ((await finished.count()) > 0) expect(await finished.locator('progress').isVisible()).toBe(false);
  });

  it('the photo wall accepts several pictures by drag and drop', async () => {
    const bytes = readFileSync(picture).toString('base64');
    await page.evaluate((base64) => {
      const data = new DataTransfer();
      const content = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
      for (const name of ['dropped one.png', 'dropped two.png']) {
        data.items.add(new File([content], name, { type: 'image/png' }));
      }
      dispatchEvent(new DragEvent('dragenter', { dataTransfer: data }));
      dispatchEvent(new DragEvent('drop', { dataTransfer: data, cancelable: true }));
    }, bytes);
    for (const title of ['Dropped one', 'Dropped two']) await tiles(other, title).waitFor();
    expect(await page.locator('#drop').isHidden()).toBe(true);
  });

  it('the viewer of the photo wall opens, moves between pictures and closes by keyboard', async () => {
    await page.locator('.tile button').first().press('Enter');
    const title = page.locator('#viewer-title');
    const first = await title.textContent();
    await page.keyboard.press('ArrowRight');
    expect(await title.textContent()).not.toBe(first);
    await page.keyboard.press('ArrowLeft');
    expect(await title.textContent()).toBe(first);
    await page.keyboard.press('Escape');
    await page.locator('#viewer').waitFor({ state: 'hidden' });
  });

  it('the photo wall shows why a file was refused and does not store the file', async () => {
    const before = kept();
    const huge = join(folder, 'huge.png');
    writeFileSync(huge, readFileSync(picture));
    truncateSync(huge, 100 * 1024 * 1024);
    await choose(page, named('notes.png', Buffer.from('Dear diary, these are not pixels at all.')));
    await choose(
      page,
      named('page.png', Buffer.from('<svg onload="alert(1)"><script>alert(1)</script></svg>')),
    );
    await choose(page, named('torn.png', readFileSync(picture).subarray(0, 20_000)));
    await choose(page, huge);
    await page.locator('.upload.failed').nth(3).waitFor();
    const reasons = (await page.locator('.upload.failed').allInnerTexts())
      .map((text) => text.split('\n'))
      .sort();
    expect(reasons).toEqual([
      ['huge.png', 'This file has 100 MB; the limit is 10 MB.'],
      ['notes.png', 'This is not a picture that can be shown.'],
      ['page.png', 'This is not a picture that can be shown.'],
      ['torn.png', expect.stringMatching(/damaged or not complete|not a picture that can be shown/)],
    ]);
    const failed = page.locator('.upload.failed');
    while ((await failed.count()) > 0) await failed.first().getByRole('button').click();
    expect(kept()).toBe(before);
    await until(() => leftovers().length === 0);
  });

  it('the photo wall does not store an upload whose tab is closed and accepts the next upload', async () => {
    const before = kept();
    const leaving = await visit();
    const network = await leaving.context().newCDPSession(leaving);
    await network.send('Network.emulateNetworkConditions', {
      offline: false,
      latency: 0,
      downloadThroughput: -1,
      uploadThroughput: 20_000,
    });
    await choose(
      leaving,
      named('never there.png', Buffer.concat([readFileSync(picture), Buffer.alloc(3_000_000)])),
    );
    await uploads(leaving)
      .locator('.state', { hasText: /^[1-9]\d? %/ })
      .waitFor();
    await leaving.close();
    await choose(page, named('still alive.png', readFileSync(picture)));
    await tiles(other, 'Still alive').waitFor();
    expect(kept()).toBe(before + 1);
    await until(() => leftovers().length === 0);
    expect(await tiles(other, 'Never there').count()).toBe(0);
  });

  it('the photo wall keeps its pictures over a restart, and open tabs reconnect', async () => {
    const shown = await page.locator('.tile').count();
    const blocked = await visit(
      {},
      {
        prepare: (context) => context.route('**/uploads/**', (route) => route.abort()),
      },
    );
    await blocked.locator('.tile.broken').first().waitFor();
    await blocked.context().unroute('**/uploads/**');
    expect(await wall.stop()).toBe(0);
    await page.locator('#live', { hasText: 'Reconnecting' }).waitFor();
    wall = await startExample('photo-wall/server', { ...env, PORT: port });
    for (const visitor of [page, other]) await visitor.locator('#live', { hasText: 'Live' }).waitFor();
    // Pictures that could not be loaded are loaded again.
    await blocked.locator('.tile.broken').first().waitFor({ state: 'detached' });
    expect(await blocked.locator('.tile.broken').count()).toBe(0);
    await choose(other, named('after the restart.png', readFileSync(picture)));
    await tiles(page, 'After the restart').waitFor();
    expect(await page.locator('.tile').count()).toBe(shown + 1);
    const late = await visit();
    await tiles(late, 'Full moon on the lake').waitFor();
    expect(await late.locator('.tile').count()).toBe(shown + 1);
  });

  it('the photo wall shows a text instead of an unreadable picture', async () => {
    await choose(page, named('soon unreadable.png', readFileSync(picture)));
    await tiles(page, 'Soon unreadable').waitFor();
    const newest = readdirSync(join(env.DATA_DIR, 'pictures')).sort().at(-1) as string;
    const path = join(env.DATA_DIR, 'pictures', newest);
    writeFileSync(path, 'no longer a picture');
    const late = await visit();
    await tiles(late, '“Soon unreadable” cannot be shown').waitFor();
    expect(await late.locator('.tile.broken').count()).toBe(1);
    writeFileSync(path, readFileSync(picture));
  });

  it('the photo wall gives out a link to a picture that is not on the wall, without JavaScript', async () => {
    const before = kept();
    const context = await browser.newContext({ javaScriptEnabled: false });
    const visitor = await context.newPage();
    await visitor.goto(wall.url);
    const share = visitor.locator('details');
    await share.locator('summary').click();
    await share.locator('input[type=file]').setInputFiles(picture);
    const shown = visitor.waitForResponse(/\/unlisted\/\w+\.png\?/);
    await share.getByRole('button', { name: 'Get a link' }).click();
    expect((await shown).status()).toBe(200);
    await visitor.waitForURL(/\/unlisted\//);
    expect(kept()).toBe(before);
  });

  it('the photo wall reports no error under its strict Content-Security-Policy', () => {
    // Messages of the browser about the server's restart are expected.
    expect(
      problems.filter((text) => !/ERR_CONNECTION_REFUSED|ERR_FAILED|WebSocket connection/.test(text)),
    ).toEqual([]);
  });
});

/** Whether the tiles of every row reach the right edge of the wall, as they do when their animations have ended. */
function rowsAreFilled(): boolean {
  const right = document.querySelector('#wall')?.getBoundingClientRect().right ?? 0;
  const rows = new Map<number, number>();
  for (const tile of document.querySelectorAll('.tile')) {
    const { top, right: end } = tile.getBoundingClientRect();
    const row = Math.round(top);
    rows.set(row, Math.max(rows.get(row) ?? 0, end));
  }
  return [...rows.values()].every((end) => Math.abs(right - end) <= 1);
}

describe('the photo wall on all kinds of screens', () => {
  it.each([
    ['desktop', 'light', 1280, 860],
    ['phone', 'dark', 390, 844],
  ] as const)('the photo wall fits a %s with %s colours', async (device, colorScheme, width, height) => {
    const visitor = await visit({ viewport: { width, height }, colorScheme, hasTouch: device === 'phone' });
    await tiles(visitor, 'Evening tide').waitFor();
    await visitor.waitForFunction(() =>
      [...document.images].every(({ complete, y }) => complete || y > innerHeight),
    );
    expect(await visitor.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBe(0);
    if (device === 'phone') await visitor.waitForFunction(rowsAreFilled);
    await visitor.screenshot({ path: join(artifacts, `photo-wall-${device}-${colorScheme}.png`) });
  });

  it('an empty photo wall invites visitors to add a picture', async () => {
    const data = join(folder, 'empty');
    mkdirSync(join(data, 'photos'), { recursive: true });
    const { url } = await startExample('photo-wall/server', { ...env, DATA_DIR: data });
    const visitor = await browser.newPage();
    await visitor.goto(url);
    await visitor.getByRole('heading', { name: 'Nothing on the wall yet' }).waitFor();
    await visitor.screenshot({ path: join(artifacts, 'photo-wall-empty.png') });
    await choose(visitor, named('the first.png', readFileSync(picture)));
    await tiles(visitor, 'The first').waitFor();
    expect(await visitor.locator('#empty').isHidden()).toBe(true);
  });
});
