/** @tags once */
import { rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import express from 'express';
import { memoryFiles } from '../../middleware/sources.ts';
import { staticFiles } from '../../middleware/static.ts';
import type { StaticFilesOptions } from '../../types/static.ts';
import { bare, get, listen, makeFolder, put, type TestResponse } from './fixture.ts';

const MARKDOWN = '# guide\n'.repeat(300);
const FILES = {
  'www/index.html': '<p>home',
  'www/index.md': 'home',
  'www/guide.html': '<p>guide',
  'www/guide.md': MARKDOWN,
  'www/guide.md.gz': gzipSync(MARKDOWN),
  'www/other.html': '<p>other',
  'www/other.html.md': 'other',
  'www/plain.html': '<p>plain',
  'www/photo.jpg': 'jpg',
  'www/photo.avif': 'avif',
  'www/photo.webp': 'webp',
  'www/logo.png': 'png',
  'www/logo.png.webp': 'webp of the logo',
  'www/sign.svg': '<svg/>',
  'www/sign.webp': 'sign',
  'www/a b & c.html': '<p>a',
  'www/a b & c.md': 'a',
  'www/.secret.html': '<p>secret',
  'www/.secret.md': 'secret',
  'www/folder.html': '<p>folder',
  'www/folder.md/x': '',
  'www/leak.html': '<p>leak',
  'outside.md': 'outside',
};
const VARIANTS = ['md', 'avif', 'webp'] as const;

async function start(options: StaticFilesOptions = {}, folder = makeFolder(FILES)): Promise<number> {
  return listen(bare(staticFiles(join(folder, 'www'), { cleanUrls: true, variants: VARIANTS, ...options })));
}

const CHROMIUM_IMAGE = 'image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8';
const FIREFOX_IMAGE = 'image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5';
const SAFARI_IMAGE =
  'image/webp,image/avif,image/jxl,image/heic,video/*;q=0.8,image/png,image/*;q=0.8,*/*;q=0.5';
const PAGE = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8';

describe('variants', () => {
  it.each([
    ['/guide', 'text/markdown', 'guide.md'],
    ['/guide', 'text/markdown, text/html;q=0.9, */*;q=0.1', 'guide.md'],
    ['/guide', 'text/html, text/markdown', 'guide.md'],
    ['/guide', 'TEXT/Markdown;charset=UTF-8', 'guide.md'],
    ['/guide', 'text/markdown;q=0.5, text/html', 'guide.html'],
    ['/guide', 'text/markdown;q=0.5, */*;q=0.8', 'guide.html'],
    ['/photo.avif', CHROMIUM_IMAGE, 'photo.avif'],
    ['/sign.svg', CHROMIUM_IMAGE, 'sign.svg'],
    ['/guide', 'text/markdown;q=0', 'guide.html'],
    ['/guide', 'text/markdown;q=x', 'guide.html'],
    ['/guide', 'text/markdown;charset=latin1', 'guide.html'],
    ['/guide', 'text/*', 'guide.html'],
    ['/guide', '*/*', 'guide.html'],
    ['/guide', PAGE, 'guide.html'],
    ['/guide', '', 'guide.html'],
    ['/guide', undefined, 'guide.html'],
    ['/guide', `text/markdown${', a/b'.repeat(40)}`, 'guide.html'],
    ['/guide.html', 'text/markdown', 'guide.md'],
    ['/other', 'text/markdown', 'other.html.md'],
    ['/', 'text/markdown', 'index.md'],
    ['/plain', 'text/markdown', 'plain.html'],
    ['/photo.jpg', CHROMIUM_IMAGE, 'photo.avif'],
    ['/photo.jpg', FIREFOX_IMAGE, 'photo.avif'],
    ['/photo.jpg', SAFARI_IMAGE, 'photo.avif'],
    ['/photo.jpg', 'image/webp,*/*', 'photo.webp'],
    ['/photo.jpg', 'image/avif;q=0.8,image/webp,*/*', 'photo.webp'],
    ['/photo.jpg', 'image/avif,image/jpeg', 'photo.avif'],
    ['/photo.jpg', 'image/*', 'photo.jpg'],
    ['/photo.jpg', 'text/markdown', 'photo.jpg'],
    ['/photo.webp', CHROMIUM_IMAGE, 'photo.avif'],
    ['/photo.avif', 'image/webp', 'photo.webp'],
    ['/logo.png', CHROMIUM_IMAGE, 'logo.png.webp'],
    ['/guide.md', 'text/html', 'guide.md'],
  ])('staticFiles sends for %s with Accept: %s the file %s', async (path, accept, name) => {
    const { status, text } = await get(shared, path, accept === undefined ? {} : { accept });
    expect([status, text]).toEqual([200, String(FILES[`www/${name}` as keyof typeof FILES])]);
  });
  let shared: number;
  beforeAll(async () => {
    shared = await start();
  });

  it('a variant has its own ETag, codings, ranges, HEAD and 304, and says where it is', async () => {
    const port = await start({ precompressed: true });
    const accept = 'text/markdown';
    const direct = await get(port, '/guide.md');
    const variant = await get(port, '/guide', { accept });
    const page = await get(port, '/guide');
    expect(variant.headers).toMatchObject({
      etag: direct.headers.etag,
      vary: 'Accept, Accept-Encoding',
      'content-location': './guide.md',
      'content-type': 'text/markdown; charset=utf-8',
    });
    expect(variant.headers.link).toBeUndefined();
    expect(page.headers.etag).not.toBe(direct.headers.etag);
    const coded = await get(port, '/guide', { accept, 'accept-encoding': 'gzip' });
    expect(coded.headers).toMatchObject({ 'content-encoding': 'gzip', 'content-location': './guide.md' });
    const etag = String(variant.headers.etag);
    const known = await get(port, '/guide', { accept, 'if-none-match': etag });
    expect([known.status, known.headers.vary, known.headers['content-location']]).toEqual([
      304,
      'Accept, Accept-Encoding',
      './guide.md',
    ]);
    expect((await get(port, '/guide', { 'if-none-match': etag })).status).toBe(200);
    const part = await get(port, '/guide', { accept, range: 'bytes=0-6' });
    expect(part).toMatchObject({ status: 206, text: '# guide' });
    const head = await get(port, '/guide', { accept }, 'HEAD');
    expect(head.headers['content-length']).toBe(String(MARKDOWN.length));
    const wrong = await get(port, '/guide', { accept, range: 'bytes=99999-' });
    expect([wrong.status, wrong.headers['content-location']]).toEqual([416, undefined]);
  });

  it('a page links to its Markdown, after the links of other middleware, also in a 304', async () => {
    const files = staticFiles(join(makeFolder(FILES), 'www'), { cleanUrls: true, variants: VARIANTS });
    const app = express();
    app.use((_req, res, next) => {
      res.setHeader('Link', '</x.css>; rel="preload"; as="style"');
      next();
    });
    app.use('/docs', files);
    const port = await listen(app);
    const { headers } = await get(port, '/docs/guide');
    expect(headers.link).toBe(
      '</x.css>; rel="preload"; as="style", <./guide.md>; rel="alternate"; type="text/markdown"',
    );
    const known = await get(port, '/docs/guide', { 'if-none-match': String(headers.etag) });
    expect([known.status, known.headers.link, known.headers.vary]).toEqual([304, headers.link, 'Accept']);
    expect((await get(port, '/docs/a%20b%20&%20c')).headers.link).toContain('<./a%20b%20%26%20c.md>');
    expect((await get(port, '/docs/photo.jpg')).headers.link).not.toContain('alternate');
  });

  it('the references are right below a mount, and for a file with a slash', async () => {
    const files = staticFiles(join(makeFolder(FILES), 'www'), {
      html: true,
      variants: VARIANTS,
    });
    const port = await listen(express().use('/docs', files) as never);
    expect((await get(port, '/docs/')).headers.link).toContain('<./index.md>');
    const plain = await start({ cleanUrls: false });
    expect((await get(plain, '/guide.html/', { accept: 'text/markdown' })).headers['content-location']).toBe(
      '../guide.md',
    );
  });

  it('Vary: Accept is sent only where a variant exists, and variants appear and disappear', async () => {
    const folder = makeFolder(FILES);
    const port = await start({}, folder);
    const varies = async (path: string): Promise<unknown> => (await get(port, path)).headers.vary;
    expect(await varies('/guide')).toBe('Accept');
    expect(await varies('/photo.jpg')).toBe('Accept');
    expect(await varies('/plain')).toBeUndefined();
    expect(await varies('/guide.md')).toBeUndefined();
    expect(await varies('/folder')).toBeUndefined();
    put(join(folder, 'www/plain.md'), 'plain');
    rmSync(join(folder, 'www/guide.md'));
    expect(await varies('/plain')).toBe('Accept');
    expect((await get(port, '/plain', { accept: 'text/markdown' })).text).toBe('plain');
    expect(await varies('/guide')).toBeUndefined();
    expect((await get(port, '/guide', { accept: 'text/markdown' })).text).toBe('<p>guide');
    put(join(folder, 'www/plain.md'), 'changed');
    expect((await get(port, '/plain', { accept: 'text/markdown' })).text).toBe('changed');
  });

  it('a variant obeys the rules of paths', async () => {
    const folder = makeFolder(FILES);
    symlinkSync('../outside.md', join(folder, 'www/leak.md'));
    const accept = 'text/markdown';
    const port = await start({}, folder);
    const leak = await get(port, '/leak', { accept });
    expect([leak.text, leak.headers.vary, leak.headers.link]).toEqual(['<p>leak', undefined, undefined]);
    expect((await get(port, '/.secret', { accept })).status).toBe(404);
    const follows = await start({ symlinks: 'follow', dotfiles: 'allow' }, folder);
    expect((await get(follows, '/leak', { accept })).text).toBe('outside');
    expect((await get(follows, '/.secret', { accept })).text).toBe('secret');
  });

  it('the pages for routes and for 404 responses have no variants', async () => {
    const port = await start({ fallback: 'index.html', notFound: 'guide.html' });
    for (const path of ['/route', '/none.js']) {
      const { headers, text } = await get(port, path, { accept: 'text/markdown, text/html' });
      expect(text).toMatch(/^<p>/);
      expect([headers.vary, headers.link, headers['content-location']]).toEqual([
        'Accept, Sec-Fetch-Mode',
        undefined,
        undefined,
      ]);
    }
  });

  it('pages with a policy, and those with a nonce, have variants too', async () => {
    for (const nonce of [false, true]) {
      const port = await start({ pages: { csp: { nonce } } });
      const page = await get(port, '/guide');
      expect(page.headers).toMatchObject({ vary: 'Accept', link: expect.stringContaining('guide.md') });
      expect(page.headers['content-security-policy']).toBeDefined();
      const { text, headers } = await get(port, '/guide', { accept: 'text/markdown' });
      expect([text, headers['content-security-policy']]).toEqual([MARKDOWN, undefined]);
    }
  });

  it('files of a source have variants', async () => {
    const source = memoryFiles({ 'guide.html': '<p>guide', 'guide.md': 'guide' });
    const port = await listen(bare(staticFiles(source, { cleanUrls: true, variants: ['md'] })));
    expect((await get(port, '/guide', { accept: 'text/markdown' })).text).toBe('guide');
    expect((await get(port, '/guide')).headers.link).toContain('./guide.md');
  });

  it('every response is a whole file with its own headers while variants come and go', async () => {
    const folder = makeFolder(FILES);
    const port = await start({ cache: { revalidateAfter: 0 } }, folder);
    const answers: Promise<TestResponse>[] = [];
    for (let round = 0; round < 150; round++) {
      if (round % 2 === 0) rmSync(join(folder, 'www/guide.md'));
      else put(join(folder, 'www/guide.md'), `# ${round}`);
      answers.push(get(port, '/guide', { accept: 'text/markdown' }), get(port, '/guide'));
      if (round % 10 === 0) await Promise.all(answers);
    }
    for (const { status, text, headers } of await Promise.all(answers)) {
      expect(status).toBe(200);
      const isMarkdown = headers['content-type'] === 'text/markdown; charset=utf-8';
      // A file may be empty between its creation and its first bytes.
      expect(text).toMatch(isMarkdown ? /^(?:#|$)/ : /^<p>guide$/);
      expect(headers['content-location']).toBe(isMarkdown ? './guide.md' : undefined);
    }
  });

  it.each([['html'], ['.md']])('staticFiles refuses the variant %s', (name) => {
    expect(() => staticFiles(__dirname, { variants: [name as 'md'] })).toThrow('option "variants"');
  });

  it('staticFiles without variants does not look at Accept', async () => {
    const { headers } = await get(await start({ variants: [] }), '/guide', { accept: 'text/markdown' });
    expect([headers.vary, headers.link]).toEqual([undefined, undefined]);
  });
});
