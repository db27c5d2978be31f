/** @tags once slow */
// EventSource in Chromium continues after its last event, while the process of the server ends and another one starts.
import type { Browser } from 'playwright-core';
import { createPubSub, type PubSub } from '../../middleware/pubsub.ts';
import { launch } from '../chromium.ts';
import { startExample, stopExamples } from '../examples/start.ts';
import { freePort } from '../programs.ts';
import { type RedisServer, startRedis } from '../redis.ts';

jest.setTimeout(120_000);

let redis: RedisServer;
let events: PubSub<{ tick: number }>;
let browser: Browser;

beforeAll(async () => {
  [redis, browser] = await Promise.all([startRedis(), launch()]);
  events = createPubSub({ transport: redis.url, history: { length: 10_000 }, onError: false });
});
afterAll(async () => {
  await browser?.close();
  await stopExamples();
  await events?.close();
  await redis?.kill();
});

it.each([
  ['is killed', 'SIGKILL'],
  ['closes its connections and exits', 'SIGTERM'],
] as const)(
  'EventSource receives each event once when the server %s and another one starts',
  async (_title, signal) => {
    const env = {
      PORT: `${await freePort()}`,
      REDIS_URL: redis.url,
      CURSOR_KEY: 'a secret of at least 32 bytes!!!',
    };
    const start = () => startExample('../test/pubsub/server', env);
    const server = await start();
    const page = await browser.newPage();
    await page.goto(`${server.url}/graphql?query={ready}`);
    await page.evaluate((target) => {
      const state = { seen: [] as number[], opened: 0 };
      Object.assign(globalThis, { state });
      const source = new EventSource(target);
      source.addEventListener('open', () => state.opened++);
      source.addEventListener('next', ({ data }) => state.seen.push(JSON.parse(data).data.tick));
    }, `${server.url}/graphql?query=subscription{tick}`);
    const last = () => page.evaluate(() => Reflect.get(globalThis, 'state').seen.at(-1) ?? -1);
    let published = 0;
    /** Publishes a number, slowly, so that the history contains all of them. */
    const publishNext = async () => {
      await events.publish('tick', published++);
      await new Promise((resolve) => setTimeout(resolve, 5));
    };
    const publishUntil = async (size: number) => {
      while ((await last()) < size) await publishNext();
    };
    await publishUntil(0);
    let isRunning = true;
    const stopped = server.stop(signal).then(() => {
      isRunning = false;
    });
    while (isRunning) await publishNext();
    await stopped;
    for (let missed = 0; missed < 20; missed++) await publishNext();
    await start();
    await publishUntil(published);
    await page.waitForFunction(
      (size) => Reflect.get(globalThis, 'state').seen.at(-1) === size,
      published - 1,
    );
    const { seen, opened } = await page.evaluate(() => Reflect.get(globalThis, 'state'));
    expect(seen).toEqual(Array.from({ length: published - seen[0] }, (_, i) => seen[0] + i));
    expect(opened).toBeGreaterThan(1);
    await page.close();
  },
);
