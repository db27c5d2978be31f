/** @tags once slow */

import express from 'express';
import type { Browser, Page } from 'playwright-core';
import { type StaticFilesOptions, staticFiles } from '../../middleware/static.ts';
import { launch } from '../chromium.ts';
import { listen, makeFolder, put } from '../kit.ts';
import { attackFiles } from './attack-files.ts';

jest.setTimeout(180_000);

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

/** Pictures, a sound and a video that Chromium has made. */
async function makeMedia(): Promise<Record<string, Buffer>> {
  const page = await browser.newPage();
  const made = await page.evaluate(async () => {
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = 16;
    const context = canvas.getContext('2d') as CanvasRenderingContext2D;
    context.fillRect(0, 0, 16, 16);
    const recorder = new MediaRecorder(canvas.captureStream(30), { mimeType: 'video/webm' });
    const chunks: Blob[] = [];
    recorder.ondataavailable = ({ data }) => chunks.push(data);
    const stopped = new Promise((resolve) => {
      recorder.onstop = resolve;
    });
    recorder.start();
    for (let frame = 0; frame < 10; frame++) {
      context.fillRect(frame, 0, 1, 16);
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
    recorder.stop();
    await stopped;
    const reader = new FileReader();
    reader.readAsDataURL(new Blob(chunks));
    await new Promise((resolve) => {
      reader.onload = resolve;
    });
    const pictures = ['png', 'jpeg', 'webp'].map((type) => [type, canvas.toDataURL(`image/${type}`)]);
    return Object.fromEntries([...pictures, ['webm', String(reader.result)]]) as Record<string, string>;
  });
  await page.close();
  const media = Object.entries(made).map(([type, url]) => [
    `good.${type}`,
    Buffer.from(url.replace(/^.*,/, ''), 'base64'),
  ]);
  const wav = Buffer.alloc(44 + 8000);
  wav.write('RIFF', 0);
  wav.writeUInt32LE(36 + 8000, 4);
  wav.write('WAVEfmt ', 8);
  for (const [at, value] of [
    [16, 16],
    [24, 8000],
    [28, 8000],
    [40, 8000],
  ] as const)
    wav.writeUInt32LE(value, at);
  for (const [at, value] of [
    [20, 1],
    [22, 1],
    [32, 1],
    [34, 8],
  ] as const)
    wav.writeUInt16LE(value, at);
  wav.write('data', 36);
  return { ...Object.fromEntries(media), 'good.wav': wav };
}

/** Loads every file in every way that a page can, and returns the names of those that ran. */
async function attack(url: string, names: readonly string[]): Promise<Set<string>> {
  const ran = new Set<string>();
  const context = await browser.newContext();
  const watch = (page: Page): Page => {
    page.on('console', (message) => {
      const name = /^RAN (\S+)/.exec(message.text())?.[1];
      if (name !== undefined) ran.add(name);
    });
    return page;
  };
  const page = watch(await context.newPage());
  for (const name of names) {
    const target = `${url}/files/${encodeURIComponent(name)}`;
    // A download ends the navigation with an error.
    await page.goto(target, { waitUntil: 'load' }).catch(() => undefined);
  }
  await page.goto(`${url}/page`);
  for (const name of names) {
    await page.evaluate(
      async (target) => {
        const load = (element: string, attribute: string, more: object = {}): Promise<unknown> =>
          new Promise((resolve) => {
            const created = Object.assign(document.createElement(element), more, {
              onload: resolve,
              onerror: resolve,
            });
            created.setAttribute(attribute, target);
            document.body.append(created);
            // Neither event comes for a download in a frame.
            setTimeout(resolve, 250);
          });
        await Promise.all([
          load('iframe', 'src'),
          load('embed', 'src'),
          load('object', 'data'),
          load('img', 'src'),
          load('script', 'src'),
          load('script', 'src', { type: 'module' }),
          load('link', 'href', { rel: 'stylesheet' }),
          load('link', 'href', { rel: 'import' }),
          import(target).catch(() => undefined),
          navigator.serviceWorker.register(target).catch(() => undefined),
          new Promise((resolve) => {
            const worker = new Worker(target);
            worker.onerror = resolve;
            setTimeout(resolve, 250);
          }),
        ]);
      },
      `/files/${encodeURIComponent(name)}`,
    );
  }
  // The messages of a page arrive in their order.
  const last = page.waitForEvent('console', (message) => message.text() === 'END');
  await page.evaluate(() => console.log('END'));
  await last;
  await context.close();
  return ran;
}

async function serve(options: StaticFilesOptions): Promise<{ url: string; names: string[]; folder: string }> {
  const media = await makeMedia();
  const files = attackFiles(media['good.png'] as Buffer);
  const folder = makeFolder({ ...files, ...media });
  put(`${folder}/folder/index.html`, '<script>console.log("RAN folder")</script>');
  const app = express();
  app.get('/page', (_req, res) => res.type('html').send('<!doctype html><link rel="icon" href="data:,">'));
  app.use('/files', staticFiles(folder, options));
  const { url } = await listen(app);
  return { url, folder, names: [...Object.keys(files), 'folder/', ...Object.keys(media)] };
}

it('an attack by 40 files runs scripts without the option untrusted, so that this test would notice them', async () => {
  const { url, names } = await serve({ html: true });
  expect(names.length).toBeGreaterThan(40);
  const some = ['page.htm', 'a.svg', 'a.xhtml', 'a.js', 'a.mjs'];
  expect([...(await attack(url, some))].sort()).toEqual([...some].sort());
});

it('no script of an attack by 40 files runs in Chromium with the option untrusted', async () => {
  const { url, names } = await serve({ untrusted: true });
  expect([...(await attack(url, names))]).toEqual([]);
});

it('Chromium shows pictures, sound and video with the option untrusted, in a page and by themselves', async () => {
  const { url } = await serve({ untrusted: true });
  const page = await browser.newPage();
  await page.goto(`${url}/page`);
  const shown = await page.evaluate(async () => {
    const load = (element: string, name: string, event: string): Promise<string> =>
      new Promise((resolve) => {
        const created = Object.assign(document.createElement(element), { src: `/files/${name}` });
        created.addEventListener(event, () => resolve(`${name} shown`));
        created.addEventListener('error', () => resolve(`${name} failed`));
        document.body.append(created);
      });
    return Promise.all([
      load('img', 'good.png', 'load'),
      load('img', 'good.jpeg', 'load'),
      load('img', 'good.webp', 'load'),
      load('audio', 'good.wav', 'loadeddata'),
      load('video', 'good.webm', 'loadeddata'),
    ]);
  });
  expect(shown.filter((each) => !each.endsWith('shown'))).toEqual([]);
  for (const name of ['good.png', 'good.jpeg', 'good.webp']) {
    await page.goto(`${url}/files/${name}`);
    expect(await page.evaluate(() => document.images[0]?.naturalWidth)).toBe(16);
  }
  for (const name of ['good.wav', 'good.webm']) {
    await page.goto(`${url}/files/${name}`);
    const video = page.locator('video');
    await video.waitFor();
    // The policy of the file forbids the evaluation of text, which waitForFunction needs.
    const isLoaded = (): Promise<boolean> =>
      video.evaluate((element) => (element as HTMLVideoElement).readyState >= 2);
    for (let waited = 0; waited < 500 && !(await isLoaded()); waited++)
      await new Promise((resolve) => setTimeout(resolve, 10));
    expect([name, await isLoaded()]).toEqual([name, true]);
  }
  await page.close();
});
