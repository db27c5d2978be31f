/** @tags once */
import { rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import express from 'express';
import { staticFiles } from '../../middleware/static.ts';
import type { StaticFilesOptions, VariantsOptions } from '../../types/static.ts';
import { bare, get, listen, makeFolder, put } from './fixture.ts';

const FOLDERS = {
  'en/index.html': 'home en',
  'de/index.html': 'home de',
  'pt-BR/index.html': 'home pt-BR',
  'en/guide.html': 'guide en',
  'de/guide.html': 'guide de',
  'de/only.html': 'only de',
  'en/docs/a/index.html': 'a en',
  'app.js': 'app',
};
// The default language has no folder, as in builds of VitePress and Docusaurus.
const ROOT = {
  'index.html': 'home en',
  'guide.html': 'guide en',
  'de/index.html': 'home de',
  'de/guide.html': 'guide de',
};
const LANGUAGES = { language: ['en', 'de', 'pt-BR'], cookie: 'lang' };

const serve = (
  files: Record<string, string> = FOLDERS,
  variants: VariantsOptions = LANGUAGES,
  options: StaticFilesOptions = { cleanUrls: true },
): Promise<number> => listen(bare(staticFiles(makeFolder(files), { ...options, variants })));

describe('the languages of the option variants', () => {
  it.each([
    ['de', 'home de'],
    ['DE-ch, en;q=0.9', 'home de'],
    ['de-CH-1996', 'home de'],
    ['de-a-foo', 'home de'],
    ['fr, de;q=0.5', 'home de'],
    ['en;q=0.5, de;q=0.6', 'home de'],
    ['pt-BR', 'home pt-BR'],
    ['pt', 'home en'],
    ['fr', 'home en'],
    ['*', 'home en'],
    ['de;q=0', 'home en'],
    ['', 'home en'],
    [`${'x,'.repeat(40)}de`, 'home en'],
    ['de;q=x, en', 'home en'],
  ])('with Accept-Language: %s the page is %s', async (accept, text) => {
    const port = await serve();
    const response = await get(port, '/', { 'accept-language': accept });
    expect([response.status, response.text]).toEqual([200, text]);
    const language = text.slice(5);
    expect(response.headers).toMatchObject({
      vary: 'Accept-Language, Cookie',
      'content-language': language,
      'content-location': `./${language}/`,
    });
  });

  it('a cookie decides before the header, and an unknown value of it does not', async () => {
    const port = await serve();
    const home = async (cookie: string): Promise<string> =>
      (await get(port, '/', { cookie, 'accept-language': 'en' })).text;
    expect(await home('a=b; lang=de')).toBe('home de');
    expect(await home('lang="pt-BR"')).toBe('home pt-BR');
    expect(await home('lang=de-AT')).toBe('home de');
    for (const wrong of ['lang=fr', 'lang=', 'slang=de', 'lang=..%2f..', 'lang=%'])
      expect(await home(wrong)).toBe('home en');
    const without = await serve(FOLDERS, { language: ['en', 'de'] });
    const { headers, text } = await get(without, '/', { cookie: 'lang=de' });
    expect([text, headers.vary]).toEqual(['home en', 'Accept-Language']);
  });

  it('pages without a language, and those that one language does not have, are answered', async () => {
    const port = await serve();
    const german = { 'accept-language': 'de' };
    expect((await get(port, '/guide', german)).text).toBe('guide de');
    expect((await get(port, '/guide', german)).headers['content-location']).toBe('./de/guide');
    expect((await get(port, '/only', { 'accept-language': 'en' })).text).toBe('only de');
    expect((await get(port, '/docs/a/', german)).text).toBe('a en');
    expect((await get(port, '/docs/a', german)).headers.location).toBe('./a/');
    expect((await get(port, '/missing', german)).status).toBe(404);
    expect((await get(port, '/app.js', german)).headers).not.toHaveProperty('vary');
  });

  it('pages in the folder of a language are not negotiated', async () => {
    const port = await serve();
    const { text, headers } = await get(port, '/de/guide', { 'accept-language': 'en' });
    expect(text).toBe('guide de');
    expect(headers).toMatchObject({ 'content-language': 'de' });
    expect(headers).not.toHaveProperty('vary');
    expect((await get(port, '/en/only', { 'accept-language': 'de' })).status).toBe(404);
  });

  it('a page outside of the folders is in the default language, which has no folder in some builds', async () => {
    const dir = makeFolder(ROOT);
    const port = await listen(
      bare(staticFiles(dir, { cleanUrls: true, variants: { language: ['en', 'de'] } })),
    );
    const page = (path: string, language: string) => get(port, path, { 'accept-language': language });
    expect((await page('/guide', 'de')).text).toBe('guide de');
    const english = await page('/guide', 'en, de;q=0.5');
    expect(english.text).toBe('guide en');
    expect(english.headers).toMatchObject({ vary: 'Accept-Language', 'content-language': 'en' });
    rmSync(join(dir, 'de/guide.html'));
    expect((await page('/guide', 'de')).text).toBe('guide en');
    put(join(dir, 'de/guide.html'), 'neu');
    expect((await page('/guide', 'de')).text).toBe('neu');
    rmSync(join(dir, 'de/guide.html'));
    symlinkSync('/etc/hostname', join(dir, 'de/guide.html'));
    expect((await page('/guide', 'de')).text).toBe('guide en');
  });

  it('conditions and formats hold for the page of a language', async () => {
    const port = await serve({ ...FOLDERS, 'de/guide.md': '# de' }, { ...LANGUAGES, formats: ['md'] });
    const german = { 'accept-language': 'de' };
    const { headers } = await get(port, '/guide', german);
    const condition = { 'if-none-match': String(headers.etag) };
    expect((await get(port, '/guide', { ...german, ...condition })).status).toBe(304);
    expect((await get(port, '/guide', { 'accept-language': 'en', ...condition })).text).toBe('guide en');
    const markdown = await get(port, '/guide', { ...german, accept: 'text/markdown' });
    expect([markdown.text, markdown.headers['content-location']]).toEqual(['# de', './de/guide.md']);
    expect((await get(port, '/guide', { ...german, range: 'bytes=0-1' })).text).toBe('gu');
  });

  it.each(['slash', 'no-slash'] as const)(
    'with cleanUrls: %s a page without a language has one URL too',
    async (cleanUrls) => {
      const slash = cleanUrls === 'slash' ? '/' : '';
      for (const files of [FOLDERS, ROOT]) {
        const app = express().use('/m', staticFiles(makeFolder(files), { cleanUrls, variants: LANGUAGES }));
        const port = await listen(app);
        const german = { 'accept-language': 'de' };
        expect((await get(port, `/m/guide${slash}`, german)).text).toBe('guide de');
        expect((await get(port, '/m/', german)).text).toBe('home de');
        for (const other of ['/m/guide.html', cleanUrls === 'slash' ? '/m/guide' : '/m/guide/']) {
          const { status, headers } = await get(port, other, german);
          expect([status, new URL(String(headers.location), `http://h${other}`).pathname]).toEqual([
            308,
            `/m/guide${slash}`,
          ]);
        }
      }
    },
  );

  it.each([{ notFound: '404.html' }, { notFound: 'nearest' }, { notFound: 'nearest', cleanUrls: 'slash' }])(
    'a page for 404 is in the language of the visitor with %j',
    async (options) => {
      const files = { ...ROOT, '404.html': 'lost', '404.md': '# lost', 'de/404.html': 'verloren' };
      Object.assign(files, { 'pt-BR/index.html': 'home' });
      const variants = { ...LANGUAGES, formats: ['md' as const] };
      const port = await serve(files, variants, options as StaticFilesOptions);
      for (const [language, text] of [
        ['de', 'verloren'],
        ['en', 'lost'],
      ] as const) {
        const headers = { accept: 'text/html, text/markdown', 'accept-language': language };
        const page = await get(port, '/missing', headers);
        expect([page.status, page.text]).toEqual([404, text]);
        expect(page.headers).toMatchObject({ 'content-language': language, 'cache-control': 'no-cache' });
        expect(page.headers.vary).toBe('Accept, Sec-Fetch-Mode, Accept-Language, Cookie');
        expect(page.headers).not.toHaveProperty('content-location');
        const other = await get(port, '/pt-BR/missing', headers);
        expect([other.text, other.headers.vary]).toEqual([text, page.headers.vary]);
      }
    },
  );

  it('a page with a nonce has its language too', async () => {
    const port = await serve(FOLDERS, LANGUAGES, { cleanUrls: true, pages: { csp: { nonce: true } } });
    const { text, headers } = await get(port, '/guide', { 'accept-language': 'de' });
    expect([text, headers['content-language'], headers['content-location']]).toEqual([
      'guide de',
      'de',
      './de/guide',
    ]);
  });

  it('routes of an application and pages for 404 follow after the languages', async () => {
    const port = await serve(FOLDERS, LANGUAGES, { fallback: 'nearest' });
    const headers = { accept: 'text/html', 'accept-language': 'de' };
    expect((await get(port, '/de/route', headers)).text).toBe('home de');
    expect((await get(port, '/route', headers)).status).toBe(404);
  });
});
