/** @tags once */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { staticFiles } from '../../middleware/static.ts';
import { until } from '../until.ts';
import { bare, get, listen, makeFolder } from './fixture.ts';

// File names of real builds, with their sources, and names of other files that a pattern could take wrongly.
const BUILDS: Readonly<
  Record<string, { readonly hashed: readonly string[]; readonly other: readonly string[] }>
> = {
  // Astro 6.0.5
  astro: {
    hashed: [
      '_astro/index.astro_astro_type_script_index_0_lang.D4fBFYed.js',
      '_astro/other.Drfzn0LG.js',
      '_astro/index@_@astro.DozdD_h2.css',
      '_astro/dot.B-OjCZyu.png',
    ],
    other: ['index.html', 'favicon.svg', 'about/index.html'],
  },
  // Next.js 16.4.6 with output: 'export', and 13.2 with webpack
  next: {
    hashed: [
      '_next/static/chunks/0cz1d0mv5g_q7.js',
      '_next/static/chunks/3qfy96eoyh-ek.js',
      '_next/static/chunks/turbopack-2u1d16houkiyo.js',
      '_next/static/chunks/0tqxmwmasweug.css',
      '_next/static/media/dot.3tz5lrpv9hshr.png',
      '_next/static/SeY9PL-6HSkJy5Z44YYQn/_buildManifest.js',
      '_next/static/chunks/pages/index-b21e2d2005e858d6.js',
      '_next/static/css/94fdbc56eafa2039.css',
    ],
    other: ['index.html', '404.html', 'index.txt', '__next._tree.txt', 'images/logo.jpeg'],
  },
  // Angular 22.2.7, with a folder of one language and a worker beside it; esbuild, and Rolldown for lazy chunks
  angular: {
    hashed: [
      'chunk-ATKYG45J.js',
      'chunk-RAKR6YCZ.js',
      'main-65UHG6ZU.js',
      'styles-5INURTSO.css',
      'media/dot-O3ZCGUIL.png',
      'about.component-2PJOS5PM.js',
      'de/main-3WP5KDHR.js',
      'chunk-Bmh9G0HW.js',
      'chunk-D_x-3fQ1.js',
      'chunk-Bmh9G0HW.js.map',
      'de/chunk-CKy92lLp.js',
    ],
    other: [
      'index.html',
      'favicon.ico',
      'logo-NEGATIVE.svg',
      'ngsw-worker.js',
      'styles-overview.css',
      'scripts-20240115.js',
      'lib-jQuery37.js',
      `x/chunk-${'A1-'.repeat(60)}!`,
    ],
  },
  // https://huggingface.co/spaces/AZLABS/Drive/blob/main/build/asset-manifest.json
  webpack: {
    hashed: [
      'static/js/main.4c186c3c.chunk.js',
      'static/js/runtime-main.e9567ca5.js',
      'static/css/2.daab17c2.chunk.css.map',
      'static/js/2.2fe3e611.chunk.js.LICENSE.txt',
      '9aaa072f8c4bafbb0741.png',
    ],
    other: ['index.html', 'main.js', 'photo-20240115.jpg', 'a.defaced.js', 'page.9aaa072f8c4bafbb.html'],
  },
  // test/neighbours builds with Vite.
  vite: {
    hashed: [
      'assets/app.hp6cPv_R.js',
      'assets/guide_other.md.D5RU--s-.lean.js',
      'assets/style.BLT9-50J.css',
      'assets/index-DiwrgTda.css',
      'assets/app-B_k3-x9Q.js',
      'assets/app-B_k3-x9Q.js.map',
    ],
    other: [
      'index.html',
      'assets/pdf.worker.min.js',
      'assets/report.20261129.pdf',
      'assets/logo.svg',
      'assets/company-overview.png',
      'assets/hero-img-dark.png',
      'assets/photo-20240115.jpg',
      'assets/logo-Negative.svg',
      'assets/og-image-1200x630.png',
      'assets/lib-jquery-3.7.1.js',
      'assets/team-Photo-01.jpg',
      'assets/hero-banner01.png',
      'assets/report-2026-1-1.pdf',
      // A pattern with many ways to read it would take years.
      `assets/x-Photo-01.${'A1-'.repeat(60)}!`,
      'app-B_k3-x9Q.js',
    ],
  },
};

it.each(Object.keys(BUILDS))(
  'cacheControl: "%s" makes hashed files immutable and no others',
  async (tool) => {
    const { hashed = [], other = [] } = BUILDS[tool] ?? {};
    const root = makeFolder(Object.fromEntries([...hashed, ...other].map((name) => [name, name])));
    const port = await listen(bare(staticFiles(root, { cacheControl: [tool, '5s'] })));
    for (const name of [...hashed, ...other]) {
      const { headers } = await get(port, `/${name}`);
      const age = hashed.includes(name) ? '31536000, immutable' : name.endsWith('.html') ? '0' : '5';
      expect([name, headers['cache-control']]).toEqual([name, `public, max-age=${age}`]);
    }
  },
);

it('with keep, a lazy chunk of Angular outlives its build', async () => {
  const root = makeFolder({ 'main-65UHG6ZU.js': 'main', 'chunk-Bmh9G0HW.js': 'lazy' });
  const keep = { directory: makeFolder({}) };
  const port = await listen(bare(staticFiles(root, { cacheControl: 'angular', keep })));
  const { headers } = await get(port, '/chunk-Bmh9G0HW.js');
  await until(() => readdirSync(keep.directory).includes('chunk-Bmh9G0HW.js'));
  rmSync(join(root, 'chunk-Bmh9G0HW.js'));
  const later = await get(port, '/chunk-Bmh9G0HW.js');
  expect([later.text, later.headers.etag]).toEqual(['lazy', headers.etag]);
  expect(await get(port, '/chunk-D_x-3fQ1.js')).toMatchObject({
    status: 404,
    headers: { 'cache-control': 'no-store' },
  });
});

it('staticFiles accepts a build tool with keep', () => {
  const keep = { directory: makeFolder({}) };
  expect(() => staticFiles(makeFolder({}), { cacheControl: 'vite', keep })).not.toThrow();
});
