import { staticFiles } from '../../middleware/static.ts';
import { bare, get, listen, makeFolder } from './fixture.ts';

// File names of real builds, with their sources, and names of other files that a pattern could take wrongly.
const BUILDS: Readonly<
  Record<string, { readonly hashed: readonly string[]; readonly other: readonly string[] }>
> = {
  // https://docs.astro.build/en/recipes/customizing-output-filenames
  astro: { hashed: ['_astro/index.DRf8L97S.js'], other: ['index.html', 'favicon.svg', 'about/index.html'] },
  // https://github.com/vercel/next.js/pull/47376 and https://github.com/ChrisAchinga/next-gh-pages
  next: {
    hashed: [
      '_next/static/chunks/pages/index-b21e2d2005e858d6.js',
      '_next/static/css/94fdbc56eafa2039.css',
      '_next/static/NpKtmHqVar2jxKQKQTYdU/_buildManifest.js',
    ],
    other: ['index.html', '404.html', 'images/logo.jpeg'],
  },
  // https://github.com/angular/angular-cli/commit/5898f72a97c29d38b9e8b8ca23255f9fbce501e5
  angular: {
    hashed: [
      'chunk-ACXUMF56.js',
      'main-3WP5KDHR.js',
      'polyfills-4UVFGIFL.js',
      'styles-5INURTSO.css',
      'about.component-2PJOS5PM.js',
      'de/main-3WP5KDHR.js',
    ],
    other: ['index.html', 'favicon.ico', 'logo-NEGATIVE.svg', 'ngsw-worker.js'],
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
    hashed: ['assets/index-DiwrgTda.css', 'assets/app-B_k3-x9Q.js', 'assets/app-B_k3-x9Q.js.map'],
    other: [
      'index.html',
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
    const port = await listen(bare(staticFiles(root, { cacheControl: tool, maxAge: 5000 })));
    for (const name of [...hashed, ...other]) {
      const { headers } = await get(port, `/${name}`);
      const age = hashed.includes(name) ? '31536000, immutable' : name.endsWith('.html') ? '0' : '5';
      expect([name, headers['cache-control']]).toEqual([name, `public, max-age=${age}`]);
    }
  },
);

it('staticFiles refuses a build tool together with immutable, and accepts it with keep', () => {
  expect(() => staticFiles(__dirname, { cacheControl: 'vite', immutable: true })).toThrow(
    'remove the option "immutable"',
  );
  const keep = { directory: makeFolder({}) };
  expect(() => staticFiles(makeFolder({}), { cacheControl: 'vite', keep })).not.toThrow();
});
