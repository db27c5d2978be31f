/** @tags once */
import { renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import express from 'express';
import { memoryFiles } from '../../middleware/sources.ts';
import { staticFiles } from '../../middleware/static.ts';
import type { StaticFilesOptions } from '../../types/static.ts';
import { bare, get, listen, makeFolder, put, raw, rawGet } from './fixture.ts';

const PAGE = { accept: 'text/html' };
const FILES = {
  'index.html': 'home',
  '404.html': 'lost',
  'de/404.html': 'verloren',
  'new.html': 'new',
  'blog/a.html': 'a',
  'data.json': '{}',
  'app.js': 'app',
};
const REDIRECTS = `
# comment
/old            /new.html
/old-302        /new.html        302   # said why
/news/*         /blog/:splat     301
/user/:id/posts/:post /blog/:post?user=:id 308
/store id=:id   /blog/:id        301
/store          /shop            307
/away/*         https://example.com/x/:splat 302
/caf%C3%A9      /grün            303
/query          /new.html?a=b#c  301
/app.js         /other.js        301
/forced.js      /x.js            301!
/de/*           /de/404.html     404
/api/data       /data.json       200
/self/          /self/           301
/trim           /trim/           301
`;

const serve = (rules: StaticFilesOptions['rules'], options: StaticFilesOptions = {}): Promise<number> =>
  listen(bare(staticFiles(makeFolder(FILES), { html: true, rules, ...options })));

async function target(port: number, path: string, mount = ''): Promise<[number, string]> {
  const { status, headers } = await get(port, mount + path);
  const url = new URL(String(headers.location), `http://site.example${mount}${path}`);
  return [status, url.href.replace('http://site.example', '')];
}

describe('redirects of the option rules', () => {
  it.each([
    ['/old', 301, '/new.html'],
    ['/old/', 301, '/new.html'],
    ['/old?q=1', 301, '/new.html?q=1'],
    ['/old-302', 302, '/new.html'],
    ['/news', 301, '/blog/'],
    ['/news/2026/a%20b%3F', 301, '/blog/2026/a%20b%3F'],
    ['/user/%40x/posts/a%26b?z=1', 308, '/blog/a%26b?user=%40x'],
    ['/store?id=7', 301, '/blog/7'],
    ['/store?id=a%2Fb', 301, '/blog/a%2Fb'],
    ['/store?id=%2F%2Fevil.example', 301, '/blog/%2F%2Fevil.example'],
    ['/store?x=7', 307, '/shop?x=7'],
    ['/away/a/b?c', 302, 'https://example.com/x/a/b?c'],
    ['/away', 302, 'https://example.com/x/'],
    ['/caf%C3%A9', 303, '/gr%C3%BCn'],
    ['/query?x', 301, '/new.html?a=b#c'],
    ['/forced.js', 301, '/x.js'],
    ['/trim', 301, '/trim/'],
  ])('%s redirects with %d to %s, also below a mount', async (path, status, to) => {
    const port = await serve({ redirects: REDIRECTS });
    expect(await target(port, path)).toEqual([status, to]);
    const files = staticFiles(makeFolder(FILES), { html: true, rules: { redirects: REDIRECTS } });
    const mounted = await listen(express().use('/docs/v1', files));
    const below = to.startsWith('/') ? `/docs/v1${to}` : to;
    expect(await target(mounted, path, '/docs/v1')).toEqual([status, below]);
  });

  it('a middleware at / redirects from one mount to another', async () => {
    const rules = { redirects: '/docs/start/*  /guide/:splat  301' };
    const app = express()
      .use(staticFiles(makeFolder(FILES), { html: true, rules }))
      .use('/docs', staticFiles(makeFolder({ '404.html': 'lost' }), { html: true, notFound: '404.html' }))
      .use('/guide', staticFiles(makeFolder({ 'a/index.html': 'a' }), true));
    const port = await listen(app);
    expect(await target(port, '/docs/start/a/?b')).toEqual([301, '/guide/a/?b']);
    expect((await get(port, '/guide/a/')).text).toBe('a');
    expect((await get(port, '/docs/other', PAGE)).text).toBe('lost');
  });

  it('a file wins over a rule without !, and a rule that leads to its own path is left out', async () => {
    const port = await serve({ redirects: `${REDIRECTS}\n/new.html /old 301!\n` });
    expect((await get(port, '/app.js')).text).toBe('app');
    expect((await get(port, '/self/')).status).toBe(404);
    expect((await get(port, '/trim/')).status).toBe(404);
    expect(await target(port, '/new.html')).toEqual([301, '/old']);
  });

  it('a rule with 200 sends a file, pages to navigations only, and one with 404 sends a page for 404', async () => {
    const port = await serve({ redirects: `${REDIRECTS}\n/* /index.html 200` });
    expect((await get(port, '/api/data')).text).toBe('{}');
    expect((await get(port, '/route/7', PAGE)).text).toBe('home');
    expect((await get(port, '/route/7.js', PAGE)).status).toBe(404);
    expect((await get(port, '/route/7', { accept: '*/*' })).status).toBe(404);
    const lost = await get(port, '/de/nichts', PAGE);
    expect([lost.status, lost.text, lost.headers['cache-control']]).toEqual([404, 'verloren', 'no-cache']);
  });

  it.each(['/blog', '/blog/'])(
    'a rule with 200 that leads to the folder %s sends its index page',
    async (to) => {
      const dir = makeFolder({ 'blog/index.html': 'blog' });
      const rules = { redirects: `/start ${to} 200` };
      const port = await listen(bare(staticFiles(dir, { html: true, rules })));
      expect((await get(port, '/start', PAGE)).text).toBe('blog');
    },
  );

  it('a rewrite has the ETag of its file, conditions and ranges', async () => {
    const port = await serve({ redirects: '/x/* /:splat 200!' });
    const { headers } = await get(port, '/data.json');
    expect((await get(port, '/x/data.json')).headers.etag).toBe(headers.etag);
    expect((await get(port, '/x/data.json', { 'if-none-match': String(headers.etag) })).status).toBe(304);
    expect((await get(port, '/x/data.json', { range: 'bytes=0-0' })).text).toBe('{');
  });

  it.each(['../secret.txt', '%2e%2e/secret.txt', '..%2fsecret.txt', '.env', '/etc/passwd'])(
    'a parameter of the query, %s, leads a rewrite neither out of the root nor to a dotfile',
    async (value) => {
      const folder = makeFolder({ 'www/.env': 'secret', 'secret.txt': 'secret', 'www/a.txt': 'a' });
      const rules = { redirects: '/get f=:f /:f 200!\n/go/:f /../:f 200' };
      const port = await listen(bare(staticFiles(join(folder, 'www'), { rules })));
      for (const path of [`/get?f=${value}`, `/go/${value}`, '/go/secret.txt'])
        expect((await get(port, path)).text).not.toContain('secret');
      expect((await get(port, '/get?f=a.txt')).text).toBe('a');
    },
  );
});

describe('headers of the option rules', () => {
  const HEADERS = `
/*
  X-Frame-Options: DENY
  X-Content-Type-Options: nosniff
  Link: </a>; rel=preload
# comment
/blog/*
  Link: </b>; rel=preload
  Cache-Control: public, max-age=60
  Vary: Origin
/data.json
  Content-Type: application/geo+json
/admin/*
  X-Robots-Tag: noindex
`;

  it('a file has the headers of all paths that match, joined in their order, also in a 304', async () => {
    const port = await serve({ headers: HEADERS });
    const { headers } = await get(port, '/blog/a.html');
    expect(headers).toMatchObject({
      'x-frame-options': 'DENY',
      'x-content-type-options': 'nosniff',
      link: '</a>; rel=preload, </b>; rel=preload',
      'cache-control': 'public, max-age=60',
      vary: 'Origin',
    });
    const unchanged = await get(port, '/blog/a.html', { 'if-none-match': String(headers.etag) });
    expect(unchanged.status).toBe(304);
    expect(unchanged.headers).toMatchObject({ 'x-frame-options': 'DENY', vary: 'Origin' });
    expect((await get(port, '/data.json')).headers['content-type']).toBe('application/geo+json');
  });

  it('pages for missing files have the headers of the requested path and of their own', async () => {
    const port = await serve({ headers: HEADERS }, { fallback: 'index.html', notFound: '404.html' });
    const { headers } = await get(port, '/admin/users', PAGE);
    expect(headers).toMatchObject({ 'x-robots-tag': 'noindex', 'x-frame-options': 'DENY' });
    const lost = await get(port, '/blog/x.js', PAGE);
    expect(lost.headers).toMatchObject({ 'cache-control': 'no-cache', 'x-frame-options': 'DENY' });
  });

  it.each([{}, { pages: { csp: { nonce: true } } }])(
    'the lifetime of a rule holds for no page for 404, and for no page with a nonce: %j',
    async (options) => {
      const names = ['cdn-cache-control', 'cloudflare-cdn-cache-control', 'surrogate-control', 'expires'];
      const headers = `/*\n  X-A: 1\n${names.map((name) => `  ${name}: max-age=300\n`).join('')}`;
      const port = await serve({ headers }, { notFound: '404.html', ...options });
      const lost = await get(port, '/missing', PAGE);
      expect([lost.status, lost.headers['x-a']]).toEqual([404, '1']);
      const home = await get(port, '/');
      expect([home.status, home.headers['x-a']]).toEqual([200, '1']);
      for (const name of names) {
        expect(lost.headers[name]).toBeUndefined();
        expect(home.headers[name]).toBe('pages' in options ? undefined : 'max-age=300');
      }
    },
  );

  it('a page in another language, and an image in another format, have the headers of the requested path', async () => {
    const files = {
      'private/a.html': 'a',
      'de/private/a.html': 'a de',
      'de/only.html': 'only',
      'a.jpg': 'a',
      'a.webp': 'b',
    };
    const headers =
      '/private/*\n  X-One: 1\n  Cache-Control: no-store\n/only\n  X-Two: 2\n/a.jpg\n  X-Three: 3';
    const variants = { language: ['en', 'de'], formats: ['webp' as const] };
    const options = { cleanUrls: true, variants, rules: { headers } };
    const port = await listen(bare(staticFiles(makeFolder(files), options)));
    const german = { 'accept-language': 'de' };
    const page = await get(port, '/private/a', german);
    expect([page.text, page.headers['x-one'], page.headers['cache-control']]).toEqual([
      'a de',
      '1',
      'no-store',
    ]);
    const again = await get(port, '/private/a', { ...german, 'if-none-match': String(page.headers.etag) });
    expect([again.status, again.headers['cache-control']]).toEqual([304, 'no-store']);
    expect((await get(port, '/only', german)).headers).toMatchObject({ 'x-two': '2' });
    expect((await get(port, '/de/private/a')).headers).not.toHaveProperty('x-one');
    const image = await get(port, '/a.jpg', { accept: 'image/webp' });
    expect([image.text, image.headers['x-three'], image.headers['content-type']]).toEqual([
      'b',
      '3',
      'image/webp',
    ]);
  });

  it('a rule for Link stays beside the link to a Markdown variant, and one for Content-Language is the only one', async () => {
    const headers = '/*\n  Link: </a>; rel=preload\n/b\n  Content-Language: fr';
    const variants = { formats: ['md' as const], language: ['en', 'de'] };
    const dir = makeFolder({ 'a.html': 'a', 'a.md': 'a', 'b.html': 'b', 'de/b.html': 'b de' });
    const port = await listen(bare(staticFiles(dir, { cleanUrls: true, variants, rules: { headers } })));
    const page = await get(port, '/a');
    expect(page.headers.link).toBe('</a>; rel=preload, <./a.md>; rel="alternate"; type="text/markdown"');
    expect(page.headers['content-language']).toBe('en');
    const answer = await rawGet(port, '/b');
    expect(answer.match(/content-language: .*/gi)).toEqual(['content-language: fr']);
  });

  it('headers that earlier middleware has set are kept', async () => {
    const files = staticFiles(makeFolder(FILES), { rules: { headers: HEADERS } });
    const port = await listen((req, res) => {
      res.setHeader('X-Frame-Options', 'SAMEORIGIN');
      bare(files)(req, res);
    });
    expect((await get(port, '/app.js')).headers['x-frame-options']).toBe('SAMEORIGIN');
  });

  it.each([{ csp: true }, { csp: { nonce: true } }])(
    'a policy of a rule is extended by the inline code of a page with %j',
    async (pages) => {
      const rules = { headers: "/*\n  Content-Security-Policy: script-src 'self'\n  X-A: b" };
      const folder = makeFolder({ 'index.html': '<script>let a</script>' });
      const port = await listen(bare(staticFiles(folder, { html: true, rules, pages })));
      const { headers } = await get(port, '/');
      expect(headers['content-security-policy']).toMatch(
        /^script-src 'self' (?:'(?:sha256|nonce)-[^']+' ?)+$/,
      );
      expect(headers['x-a']).toBe('b');
    },
  );
});

describe('rules in the option beside files', () => {
  const FILES_WITH_RULES = {
    'app.js': 'app',
    _redirects: '/a /file 302\n/b /file 302',
    _headers: '/*\n  X-A: file\n  X-B: file',
  };
  const RULES = {
    redirects: '/a /option 302\n/c /option 302\n/app.js /option 302!',
    headers: '/*\n  X-B: option',
  };

  it.each([RULES, { redirects: RULES.redirects }, { headers: RULES.headers }, {}])(
    'the files of the directory cannot be requested with the rules %j',
    async (rules) => {
      const dir = makeFolder(FILES_WITH_RULES);
      for (const files of [dir, memoryFiles(FILES_WITH_RULES)]) {
        const port = await listen(bare(staticFiles(files, { html: true, listing: true, rules })));
        for (const path of ['/_headers', '/_redirects', '/%5fheaders', '/_redirects/'])
          expect((await get(port, path)).status).toBe(404);
        expect((await get(port, '/')).text).not.toContain('_headers');
      }
    },
  );

  it('the lines of the files come first, and those of the option stay when a file changes', async () => {
    const dir = makeFolder(FILES_WITH_RULES);
    const port = await listen(bare(staticFiles(dir, { rules: RULES })));
    expect(await target(port, '/a')).toEqual([302, '/file']);
    expect(await target(port, '/b')).toEqual([302, '/file']);
    expect(await target(port, '/c')).toEqual([302, '/option']);
    expect(await target(port, '/app.js')).toEqual([302, '/option']);
    put(join(dir, '_redirects'), '/b /newer 302');
    put(join(dir, 'other.js'), 'other');
    expect(await target(port, '/a')).toEqual([302, '/option']);
    expect(await target(port, '/b')).toEqual([302, '/newer']);
    expect(await target(port, '/app.js')).toEqual([302, '/option']);
    expect((await get(port, '/other.js')).headers).toMatchObject({ 'x-a': 'file', 'x-b': 'file, option' });
    rmSync(join(dir, '_headers'));
    const { headers } = await get(port, '/other.js');
    expect([headers['x-a'], headers['x-b']]).toEqual([undefined, 'option']);
  });
});

describe('rules: true', () => {
  const site = (): string =>
    makeFolder({ ...FILES, _redirects: '/old /new.html', _headers: '/*\n  X-A: 1', 'sub/_headers': 'a' });

  it('the files of the directory are rules, and no request reads them', async () => {
    const port = await listen(bare(staticFiles(site(), { html: true, rules: true, listing: true })));
    expect(await target(port, '/old')).toEqual([301, '/new.html']);
    expect((await get(port, '/app.js')).headers['x-a']).toBe('1');
    for (const path of ['/_headers', '/_redirects', '/%5fheaders', '/_headers/'])
      expect((await get(port, path)).status).toBe(404);
    expect((await get(port, '/sub/_headers')).text).toBe('a');
  });

  it.each(['directory', 'source'])('the rules of a %s are replaced with the next request', async (kind) => {
    const dir = site();
    const source = memoryFiles({ '/app.js': 'app', '/_headers': '/*\n  X-A: 1' });
    const port = await listen(bare(staticFiles(kind === 'source' ? source : dir, { rules: true })));
    const replace = (text: string): void =>
      kind === 'source' ? source.set('/_headers', text) : put(join(dir, '_headers'), text);
    const header = async (): Promise<unknown> => (await get(port, '/app.js')).headers['x-a'];
    for (let n = 1; n < 30; n++) {
      expect(await header()).toBe(String(n));
      replace(`/*\n  X-A: ${n + 1}`);
    }
    if (kind === 'source') source.delete('/_headers');
    else rmSync(join(dir, '_headers'));
    expect(await header()).toBeUndefined();
  });

  it('a request gets the rules that are in force when it arrives, also after another one of the same turn', async () => {
    const source = memoryFiles({ '/app.js': 'app', '/_headers': '/*\n  X-A: 1' });
    const files = bare(staticFiles(source, { rules: true }));
    const port = await listen((req, res) => {
      if (req.url === '/app.js?2') source.set('/_headers', '/*\n  X-A: 2');
      files(req, res);
    });
    expect((await get(port, '/app.js')).headers['x-a']).toBe('1');
    const head = ' HTTP/1.1\r\nHost: x\r\n';
    const both = await raw(port, `GET /app.js?1${head}\r\nGET /app.js?2${head}Connection: close\r\n\r\n`);
    expect(both.match(/x-a: \d/gi)?.[1]).toBe('x-a: 2');
  });

  it('a mistake is a warning with its line, and the last good rules stay in force', async () => {
    const dir = site();
    const port = await listen(bare(staticFiles(dir, { rules: true })));
    expect((await get(port, '/app.js')).headers['x-a']).toBe('1');
    const warned = jest.spyOn(process, 'emitWarning').mockReturnValue(undefined);
    writeFileSync(join(dir, '_headers'), '/*\n  X-A: 2\n\n  no header\n');
    expect((await get(port, '/app.js')).headers['x-a']).toBe('1');
    expect(String(warned.mock.calls[0]?.[0])).toMatch(
      /_headers: line 4: "no header" is no header .*last good rules/,
    );
    writeFileSync(join(dir, '_headers'), '/*\n  X-A: 3\n');
    expect((await get(port, '/app.js')).headers['x-a']).toBe('3');
  });

  it('the files may begin with a byte order mark, and have the line ends of Windows', async () => {
    const files = {
      '/app.js': 'app',
      '/_headers': '\ufeff/*\r\n  X-A: 1\r\n',
      '/_redirects': '\ufeff/old /new 302\r\n',
    };
    const port = await listen(bare(staticFiles(memoryFiles(files), { rules: true })));
    expect((await get(port, '/app.js')).headers['x-a']).toBe('1');
    expect(await target(port, '/old')).toEqual([302, '/new']);
  });

  it('a deployment that switches a link brings its rules with its files', async () => {
    const folder = makeFolder({
      'a/x.js': 'a',
      'a/_headers': '/*\n  X-A: a',
      'b/x.js': 'b',
      'b/_headers': '/*\n  X-A: b',
    });
    const link = join(folder, 'current');
    symlinkSync('a', link);
    const port = await listen(bare(staticFiles(link, { rules: true })));
    for (const name of ['a', 'b', 'a', 'b']) {
      symlinkSync(name, `${link}.new`);
      renameSync(`${link}.new`, link);
      const { text, headers } = await get(port, '/x.js');
      expect([text, headers['x-a']]).toEqual([name, name]);
    }
  });
});
