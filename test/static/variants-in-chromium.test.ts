/** @tags once slow */
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { staticFiles } from '../../middleware/static.ts';
import { launch } from '../chromium.ts';
import { bare, listen, makeFolder } from './fixture.ts';

// Pictures of one colour: a canvas tells which of them a page shows.

jest.setTimeout(60_000);

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

/** Draws a picture of one pixel in a format that Chromium can write. */
async function draw(type: string, colour: string): Promise<Buffer> {
  const page = await browser.newPage();
  const url = await page.evaluate(
    ([mime = '', fill = '']) => {
      const canvas = document.createElement('canvas');
      canvas.width = canvas.height = 8;
      const context = canvas.getContext('2d') as CanvasRenderingContext2D;
      context.fillStyle = fill;
      context.fillRect(0, 0, 8, 8);
      return canvas.toDataURL(mime, 1);
    },
    [type, colour],
  );
  await page.close();
  return Buffer.from(url.replace(/^.*,/, ''), 'base64');
}

it('an <img> of Chromium shows the variant, a page shows HTML, and fetch gets what it asks for', async () => {
  const folder = makeFolder({
    'index.html': '<!doctype html><link rel="icon" href="data:,"><img src="photo.jpg"><img src="plain.jpg">',
    'index.md': '# Markdown',
    'photo.jpg': await draw('image/jpeg', 'rgb(255, 0, 0)'),
    'photo.webp': await draw('image/webp', 'rgb(0, 0, 255)'),
    'plain.jpg': await draw('image/jpeg', 'rgb(255, 0, 0)'),
  });
  const files = staticFiles(join(folder, '.'), { html: true, variants: ['md', 'avif', 'webp'] });
  const url = `http://127.0.0.1:${await listen(bare(files))}/`;
  const page = await browser.newPage();
  await page.goto(url, { waitUntil: 'load' });
  const colours = await page.$$eval('img', (images) =>
    images.map((image) => {
      const canvas = document.createElement('canvas');
      const context = canvas.getContext('2d') as CanvasRenderingContext2D;
      context.drawImage(image, 0, 0);
      const [red = 0, , blue = 0] = context.getImageData(1, 1, 1, 1).data;
      return blue > red ? 'blue' : 'red';
    }),
  );
  expect(colours).toEqual(['blue', 'red']);
  const texts = await page.evaluate(async () => {
    const text = async (accept?: string): Promise<string> =>
      (await (await fetch('/', accept === undefined ? {} : { headers: { accept } })).text()).slice(0, 2);
    // The cache of the browser keeps both, by Vary.
    return [await text(), await text('text/markdown'), await text(), await text('text/markdown')];
  });
  expect(texts).toEqual(['<!', '# ', '<!', '# ']);
  await page.close();
});
