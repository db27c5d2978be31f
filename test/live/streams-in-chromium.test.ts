/** @tags once slow */
import type { Browser, Page } from 'playwright-core';
import { launch } from '../chromium.ts';
import { until } from '../until.ts';
import { type Served, serve, withParams } from './serve-streams.ts';

const COUNT = 'subscription { count(to: 3) }';

describe('streaming responses in a browser', () => {
  let browser: Browser;
  let page: Page;
  let served: Served;

  beforeAll(async () => {
    browser = await launch();
  });
  beforeEach(async () => {
    served = await serve();
    page = await browser.newPage();
    await page.goto(withParams(served.url, { query: '{ hello }' }));
  });
  afterEach(async () => {
    await page.close();
  });
  afterAll(() => browser.close());

  it('EventSource receives the events of a subscription and its completion', async () => {
    const seen = await page.evaluate(
      (url) =>
        new Promise<string[]>((resolve) => {
          const data: string[] = [];
          const events = new EventSource(url);
          events.addEventListener('next', (event) => data.push(event.data));
          events.addEventListener('complete', () => {
            events.close();
            resolve(data);
          });
        }),
      withParams(served.url, { query: COUNT }),
    );
    expect(seen).toEqual([1, 2, 3].map((count) => JSON.stringify({ data: { count } })));
  });

  it('EventSource shows the error of an invalid document', async () => {
    const seen = await page.evaluate(
      (url) =>
        new Promise<string>((resolve) => {
          const events = new EventSource(url);
          events.addEventListener('next', (event) => {
            events.close();
            resolve(event.data);
          });
        }),
      withParams(served.url, { query: '{ unknown }' }),
    );
    expect(seen).toContain('Cannot query field');
  });

  it('fetch reads each event as soon as it is published, and its abort ends the source', async () => {
    const { live, url, subscriptions } = served;
    await page.evaluate((target) => {
      const state = { text: '', stop: new AbortController() };
      Object.assign(globalThis, { state });
      const body = JSON.stringify({ query: 'subscription { events(topic: "a") }' });
      const headers = { accept: 'text/event-stream', 'content-type': 'application/json' };
      fetch(target, { method: 'POST', body, headers, signal: state.stop.signal })
        .then(async ({ body: stream }) => {
          const reader = stream?.pipeThrough(new TextDecoderStream()).getReader();
          for (;;) {
            const { done, value } = (await reader?.read()) ?? { done: true };
            if (done) return;
            state.text += value;
          }
        })
        .catch(() => undefined);
    }, url);
    await until(() => live.open === 1);
    for (const event of ['one', 'two']) {
      live.publish('a', event);
      await page.waitForFunction(
        (text) => Reflect.get(globalThis, 'state').text.includes(text),
        `"events":"${event}"`,
      );
    }
    await page.evaluate(() => Reflect.get(globalThis, 'state').stop.abort());
    await until(() => live.open === 0 && subscriptions.stats().connections === 0);
  });
});
