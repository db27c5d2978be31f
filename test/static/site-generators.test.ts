/** @tags once */
import { staticFiles } from '../../middleware/static.ts';
import { bare, get, listen, makeFolder } from './fixture.ts';

/** A build of a generator: its files, and the addresses of its pages and assets with the files that they lead to. */
interface Build {
  readonly generator: string;
  readonly files: readonly string[];
  readonly addresses: Readonly<Record<string, string>>;
  /** Addresses that lead to no file, or to a page by a redirect. */
  readonly redirects?: Readonly<Record<string, string>>;
}

const BUILDS: readonly Build[] = [
  {
    generator: 'VitePress with cleanUrls',
    files: [
      'index.html',
      'guide.html',
      'guide/getting-started.html',
      'guide/index.html',
      'v1.2.html',
      'de/index.html',
      'assets/app.BxK3_a2Q.js',
      'assets/chunks/theme.C-9dQw1z.js',
      'assets/guide_getting-started.md.Dq0aX8ye.lean.js',
      'hashmap.json',
      'vp-icons.css',
    ],
    addresses: {
      '/': 'index.html',
      '/guide': 'guide.html',
      '/guide/': 'guide/index.html',
      '/guide/getting-started': 'guide/getting-started.html',
      '/guide/getting-started.html': 'guide/getting-started.html',
      '/v1.2': 'v1.2.html',
      '/de/': 'de/index.html',
      '/assets/app.BxK3_a2Q.js': 'assets/app.BxK3_a2Q.js',
      '/assets/guide_getting-started.md.Dq0aX8ye.lean.js': 'assets/guide_getting-started.md.Dq0aX8ye.lean.js',
      '/hashmap.json': 'hashmap.json',
    },
    redirects: { '/de': '/de/' },
  },
  {
    generator: 'Astro with build.format "file"',
    files: [
      'index.html',
      'about.html',
      'blog.html',
      'blog/first-post.html',
      'blog/2.html',
      'releases/5.0.html',
      'rss.xml',
      '_astro/hoisted.BQ1-x7Zk.js',
      '_astro/about.CX2lD9_k.css',
    ],
    addresses: {
      '/': 'index.html',
      '/about': 'about.html',
      '/about.html': 'about.html',
      '/blog': 'blog.html',
      '/blog/first-post': 'blog/first-post.html',
      '/blog/2': 'blog/2.html',
      '/releases/5.0': 'releases/5.0.html',
      '/rss.xml': 'rss.xml',
      '/_astro/about.CX2lD9_k.css': '_astro/about.CX2lD9_k.css',
    },
  },
  {
    generator: 'Astro with build.format "directory"',
    files: ['index.html', 'about/index.html', 'blog/index.html', 'blog/first-post/index.html'],
    addresses: {
      '/about/': 'about/index.html',
      '/blog/': 'blog/index.html',
      '/blog/first-post/': 'blog/first-post/index.html',
    },
    redirects: { '/about': '/about/', '/blog/first-post?page=2': '/blog/first-post/?page=2' },
  },
  {
    generator: 'Next.js with output "export"',
    files: [
      'index.html',
      'index.txt',
      'about.html',
      'about.txt',
      'about/__next._tree.txt',
      'blog.html',
      'blog.txt',
      'blog/hello-world.html',
      'blog/hello-world.txt',
      '_next/static/chunks/main-app-0a1b2c3d4e5f6071.js',
      '_next/static/chunks/app/blog/[slug]/page-9f8e7d6c5b4a3021.js',
      '_next/static/chunks/app/(marketing)/@modal/page-1122334455667788.js',
      '_next/static/u6AwHnK3bTqQ-7rLQxW_Z/_buildManifest.js',
      '_next/static/media/inter.p.1a2b3c4d.woff2',
      'favicon.ico',
    ],
    addresses: {
      '/': 'index.html',
      '/index.txt': 'index.txt',
      '/about': 'about.html',
      '/about.txt?_rsc=1ab2c': 'about.txt',
      '/about/__next._tree.txt': 'about/__next._tree.txt',
      '/blog': 'blog.html',
      '/blog/hello-world': 'blog/hello-world.html',
      '/_next/static/chunks/app/blog/%5Bslug%5D/page-9f8e7d6c5b4a3021.js':
        '_next/static/chunks/app/blog/[slug]/page-9f8e7d6c5b4a3021.js',
      '/_next/static/chunks/app/(marketing)/%40modal/page-1122334455667788.js':
        '_next/static/chunks/app/(marketing)/@modal/page-1122334455667788.js',
      '/_next/static/u6AwHnK3bTqQ-7rLQxW_Z/_buildManifest.js':
        '_next/static/u6AwHnK3bTqQ-7rLQxW_Z/_buildManifest.js',
      '/_next/static/media/inter.p.1a2b3c4d.woff2': '_next/static/media/inter.p.1a2b3c4d.woff2',
      '/favicon.ico': 'favicon.ico',
    },
  },
  {
    generator: 'Next.js with output "export" and trailingSlash',
    files: [
      'index.html',
      'about/index.html',
      'about/index.txt',
      'blog/hello-world/index.html',
      '404/index.html',
    ],
    addresses: {
      '/about/': 'about/index.html',
      '/about/index.txt?_rsc=1ab2c': 'about/index.txt',
      '/blog/hello-world/': 'blog/hello-world/index.html',
    },
    redirects: { '/about': '/about/', '/blog/hello-world': '/blog/hello-world/' },
  },
  {
    generator: 'Docusaurus with trailingSlash: false',
    files: [
      'index.html',
      'docs.html',
      'docs/intro.html',
      'docs/1.2.html',
      'docs/1.2/intro.html',
      'docs/category/tutorial---basics.html',
      'blog.html',
      'blog/2021/08/26/welcome.html',
      'blog/tags/c++.html',
      'assets/js/main.0a1b2c3d.js',
      'assets/css/styles.9f8e7d6c.css',
      'sitemap.xml',
    ],
    addresses: {
      '/': 'index.html',
      '/docs': 'docs.html',
      '/docs/intro': 'docs/intro.html',
      '/docs/1.2': 'docs/1.2.html',
      '/docs/1.2/intro': 'docs/1.2/intro.html',
      '/docs/category/tutorial---basics': 'docs/category/tutorial---basics.html',
      '/blog/2021/08/26/welcome': 'blog/2021/08/26/welcome.html',
      '/blog/tags/c++': 'blog/tags/c++.html',
      '/assets/js/main.0a1b2c3d.js': 'assets/js/main.0a1b2c3d.js',
    },
  },
  {
    generator: 'Docusaurus with its default',
    files: ['index.html', 'docs/intro/index.html', 'docs/1.2/intro/index.html', 'blog/index.html'],
    addresses: { '/docs/intro/': 'docs/intro/index.html', '/blog/': 'blog/index.html' },
    redirects: { '/docs/intro': '/docs/intro/', '/docs/1.2/intro': '/docs/1.2/intro/' },
  },
];

describe.each(BUILDS)('a build of $generator', ({ generator, files, addresses, redirects = {} }) => {
  const root = makeFolder(
    Object.fromEntries([...files, '404.html'].map((name) => [name, `content of ${name}`])),
  );
  let port: number;
  beforeAll(async () => {
    port = await listen(bare(staticFiles(root, { cleanUrls: true, notFound: '404.html' })));
  });

  it(`staticFiles sends each page and asset of ${generator} for its address`, async () => {
    for (const [address, name] of Object.entries(addresses)) {
      const { status, text } = await get(port, address);
      expect([address, status, text]).toEqual([address, 200, `content of ${name}`]);
    }
  });

  it(`staticFiles redirects the addresses of directories of ${generator}, and sends its 404 page for others`, async () => {
    for (const [address, target] of Object.entries(redirects)) {
      const { status, headers } = await get(port, address);
      const location = new URL(String(headers.location), `http://localhost${address}`);
      expect([address, status, location.pathname + location.search]).toEqual([address, 301, target]);
    }
    for (const address of ['/absent', '/absent/', '/about/absent', '/assets/absent.js']) {
      const { status, text } = await get(port, address, { 'Sec-Fetch-Mode': 'navigate' });
      expect([address, status, text]).toEqual([address, 404, 'content of 404.html']);
    }
  });
});
