/** @tags once */
import { createHash } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import express from 'express';
import helmet from 'helmet';
import { memoryFiles } from '../../middleware/sources.ts';
import { staticFiles } from '../../middleware/static.ts';
import type { StaticFilesOptions } from '../../types/static.ts';
import { until } from '../until.ts';
import { bare, get, listen, makeFolder, put } from './fixture.ts';

const sha256 = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const sha384 = (text: string) => `sha384-${createHash('sha384').update(text).digest('base64')}`;

const PAGE = `<!doctype html>
<html><head><meta charset=utf-8><title>t</title>
<script>console.log("<\\/script>");</script>
<style>p { color: red }</style>
<script type="module" src="/assets/main.js"></script>
<link rel=stylesheet href='/assets/main.css'>
</head><body><p>\u00e9 &amp; <b>unclosed</body></html>
`;

async function site(
  options: StaticFilesOptions,
  files: Record<string, string> = { 'www/index.html': PAGE },
): Promise<{ port: number; root: string }> {
  const root = join(makeFolder(files), 'www');
  return { root, port: await listen(bare(staticFiles(root, { html: true, ...options }))) };
}

describe('pages.config', () => {
  it('staticFiles adds the configuration as a data block before the first script and leaves all other bytes as they are', async () => {
    const { port } = await site({ pages: { config: () => ({ api: '</script><!--\u2028', n: 1 }) } });
    const { text, headers } = await get(port, '/');
    const block =
      '<script type="application/json" id="app-config">{"api":"\\u003c/script>\\u003c!--\\u2028","n":1}</script>';
    expect(text).toBe(PAGE.replace('<script>console', `${block}<script>console`));
    expect(headers['last-modified']).toBeUndefined();
    expect(headers.etag).toMatch(/^"/);
  });

  it('staticFiles fills an element with the id app-config that the page has', async () => {
    const html =
      '<title>x</title><script type="application/json" id="app-config">{"dev":1}</script><script src=a.js></script>';
    const { port } = await site({ pages: { config: () => 7 } }, { 'www/index.html': html });
    expect((await get(port, '/')).text).toBe(html.replace('{"dev":1}', '7'));
  });

  it('staticFiles sends a new page with a new ETag when the value of the configuration changes', async () => {
    let value = 1;
    const { port } = await site({ pages: { config: () => ({ value }) } });
    const first = await get(port, '/');
    const again = await get(port, '/', { 'if-none-match': first.headers.etag as string });
    expect(again.status).toBe(304);
    value = 2;
    const changed = await get(port, '/', { 'if-none-match': first.headers.etag as string });
    expect(changed.status).toBe(200);
    expect(changed.text).toContain('{"value":2}');
    expect(changed.headers.etag).not.toBe(first.headers.etag);
    value = 1;
    expect((await get(port, '/')).headers.etag).toBe(first.headers.etag);
  });

  it('staticFiles sends HEAD, ranges and If-Range of the page with its additions', async () => {
    const { port } = await site({ pages: { config: () => 'c' } });
    const whole = await get(port, '/');
    const head = await get(port, '/', {}, 'HEAD');
    expect(head.headers['content-length']).toBe(String(whole.body.length));
    const part = await get(port, '/', { range: 'bytes=-20', 'if-range': whole.headers.etag as string });
    expect(part.status).toBe(206);
    expect(part.body.equals(whole.body.subarray(-20))).toBe(true);
  });

  it('staticFiles compresses the page with its additions and ignores the copies of the file', async () => {
    const html = PAGE + 'x'.repeat(4000);
    const { port } = await site(
      { pages: { config: () => 'c' }, compress: true, precompressed: true },
      { 'www/index.html': html, 'www/index.html.gz': 'stale' },
    );
    const plain = await get(port, '/');
    expect(plain.headers.vary).toContain('Accept-Encoding');
    let coded = await get(port, '/', { 'accept-encoding': 'gzip' });
    for (let i = 0; i < 50 && coded.headers['content-encoding'] === undefined; i++) {
      await new Promise((done) => setTimeout(done, 50));
      coded = await get(port, '/', { 'accept-encoding': 'gzip' });
    }
    expect(coded.headers['content-encoding']).toBe('gzip');
    expect(gunzipSync(coded.body).equals(plain.body)).toBe(true);
    expect(coded.headers.etag).not.toBe(plain.headers.etag);
  });

  it('staticFiles passes an error of the configuration to next and recovers from it', async () => {
    let fails = false;
    const { port } = await site({
      pages: {
        config: () => {
          if (fails) throw new Error('no settings');
          return 1;
        },
      },
    });
    expect((await get(port, '/')).status).toBe(200);
    fails = true;
    expect(await get(port, '/')).toMatchObject({ status: 500, text: 'Error: no settings' });
    fails = false;
    expect((await get(port, '/')).status).toBe(200);
  });

  it.each([undefined, () => 1, Promise.resolve(1)])(
    'staticFiles passes an error to next when the configuration is %p',
    async (value) => {
      const { port } = await site({ pages: { config: () => value } });
      const { status, text } = await get(port, '/');
      expect(status).toBe(500);
      expect(text).toContain('pages.config');
    },
  );

  it('staticFiles sends the page from a cache without memory, with fallback, and from a source', async () => {
    const options = { pages: { config: () => 'c' }, cache: false as const, fallback: 'index.html' };
    const { port } = await site(options);
    const expected = (await get(port, '/')).text;
    for (const path of ['/', '/index.html', '/some/route'])
      expect((await get(port, path, { accept: 'text/html' })).text).toBe(expected);
    const source = await listen(
      bare(staticFiles(memoryFiles({ 'index.html': PAGE }), { html: true, ...options })),
    );
    expect((await get(source, '/')).text).toBe(expected);
  });

  it('staticFiles sends one version of a page while file and configuration change', async () => {
    let n = 0;
    const { port, root } = await site({ pages: { config: () => n } });
    const versions = new Set<string>();
    const writer = setInterval(() => {
      n++;
      writeFileSync(join(root, 'index.html'), `${PAGE}<!--${n}-->`);
    }, 3);
    for (let i = 0; i < 200; i++) {
      const { status, text, headers, body } = await get(port, '/');
      // A file that changes during each attempt to read it.
      if (status === 503) continue;
      expect(status).toBe(200);
      expect(headers['content-length']).toBe(String(body.length));
      const same = `${headers.etag} ${createHash('sha1').update(text).digest('hex')}`;
      versions.add(same);
    }
    clearInterval(writer);
    expect(versions.size).toBeGreaterThan(1);
    const tags = [...versions].map((each) => each.split(' ')[0]);
    expect(new Set(tags).size).toBe(tags.length);
  });
});

describe('pages.csp', () => {
  const scripts = sha256('console.log("<\\/script>");');
  const styles = sha256('p { color: red }');

  it('staticFiles sends a policy with the hashes of the inline code of the page, also with 304 and HEAD', async () => {
    const { port } = await site({ pages: { csp: "default-src 'self'" } });
    const policy = `default-src 'self'; script-src 'self' ${scripts}; style-src 'self' ${styles}`;
    const { headers } = await get(port, '/');
    expect(headers['content-security-policy']).toBe(policy);
    const known = await get(port, '/', { 'if-none-match': headers.etag as string });
    expect(known).toMatchObject({ status: 304, headers: { 'content-security-policy': policy } });
    expect((await get(port, '/', {}, 'HEAD')).headers['content-security-policy']).toBe(policy);
  });

  it('staticFiles hashes text as browsers read it: with LF, decoded, and only what is code', async () => {
    const html =
      '<script>a\r\nb\rc\0</script><script type=text/template>x</script><script type="application/json">{}</script>' +
      '<svg><script>1 &lt; 2</script></svg><style>\u00e9</style><script type=importmap>{}</script>' +
      '<!-- <script>no</script> --><textarea><script>no</script></textarea>';
    const { port } = await site(
      { pages: { csp: "script-src 'none'; style-src 'none'" } },
      { 'www/index.html': html },
    );
    const list = ['a\nb\nc\uFFFD', '1 < 2', '{}'].map(sha256).join(' ');
    expect((await get(port, '/')).headers['content-security-policy']).toBe(
      `script-src ${list}; style-src ${sha256('\u00e9')}`,
    );
  });

  it('staticFiles leaves an import map with other line ends as it is', async () => {
    const html = '<script type="importmap">{\r\n}</script>\r\n';
    const { port } = await site({ pages: { csp: true } }, { 'www/index.html': html });
    const { text, headers } = await get(port, '/');
    expect(text).toBe(html);
    expect(headers['content-security-policy']).toContain(sha256('{\n}'));
  });

  it("staticFiles adds no hash beside 'unsafe-inline', which it would turn off", async () => {
    const { port } = await site({ pages: { csp: "script-src 'self'; style-src 'unsafe-inline'" } });
    expect((await get(port, '/')).headers['content-security-policy']).toBe(
      `script-src 'self' ${scripts}; style-src 'unsafe-inline'`,
    );
  });

  it('staticFiles sends a policy that only reports', async () => {
    const { port } = await site({ pages: { csp: { reportOnly: true } } });
    const { headers } = await get(port, '/');
    expect(headers['content-security-policy']).toBeUndefined();
    expect(headers['content-security-policy-report-only']).toContain(scripts);
  });

  it('staticFiles extends the policy of helmet in place, and sends its own without helmet', async () => {
    const { root } = await site({});
    const files = staticFiles(root, { html: true, pages: { csp: true } });
    const app = express()
      .use('/plain', files)
      .use(helmet())
      .use('/helmet', files)
      .use((_req, res) => void res.end());
    const port = await listen(app);
    const mine = await get(port, '/plain/');
    expect(mine.headers['content-security-policy']).toMatch(/^default-src 'self'; base-uri/);
    expect(mine.headers['content-security-policy']).toContain(`script-src 'self' ${scripts}`);
    const theirs = await get(port, '/helmet/');
    const plain = (await get(port, '/other')).headers['content-security-policy'] as string;
    const expected = plain
      .split(';')
      .map((each) => (each.startsWith('script-src ') ? `${each} ${scripts}` : each))
      .join('; ');
    expect(theirs.headers['content-security-policy']).toBe(expected);
    expect(theirs.headers.etag).toBe(mine.headers.etag);
    expect((await get(port, '/helmet/')).headers['content-security-policy']).toBe(expected);
  });

  it('staticFiles sends the policy with the page for 404 responses', async () => {
    const { port } = await site({ notFound: 'index.html', pages: { csp: true } });
    const { status, headers } = await get(port, '/none', { accept: 'text/html' });
    expect(status).toBe(404);
    expect(headers['content-security-policy']).toContain(scripts);
  });

  it('staticFiles changes the ETag with the policy, because a 304 does not replace it in browsers', async () => {
    const { root, port } = await site({ pages: { csp: "default-src 'self'" } });
    const other = await listen(bare(staticFiles(root, { html: true, pages: { csp: "default-src 'none'" } })));
    expect((await get(port, '/')).headers.etag).not.toBe((await get(other, '/')).headers.etag);
  });

  it('staticFiles sends a new nonce with each response, which no cache stores', async () => {
    const { port } = await site({ pages: { csp: { nonce: true } } });
    const first = await get(port, '/');
    const second = await get(port, '/');
    const [, nonce] = /<script nonce="([^"]+)">/.exec(first.text) ?? [];
    expect(first.headers['content-security-policy']).toContain(`script-src 'self' 'nonce-${nonce}'`);
    expect(first.text.match(/nonce="/g)).toHaveLength(4);
    expect(first.headers).toMatchObject({ 'cache-control': 'no-store' });
    expect(first.headers.etag).toBeUndefined();
    expect(second.text).not.toContain(nonce);
    const head = await get(port, '/', { 'if-none-match': '*' }, 'HEAD');
    expect(head).toMatchObject({ status: 200, headers: { 'content-length': String(first.body.length) } });
  });

  it('staticFiles replaces a nonce that the file has: browsers ignore it in a tag with two', async () => {
    const html = '<meta nonce=old><script a="b"nonce="old" src=a.js></script><style nonce>p{}</style>';
    const { port } = await site({ pages: { csp: { nonce: () => 'abc' } } }, { 'www/index.html': html });
    expect((await get(port, '/')).text.replaceAll('  ', ' ')).toBe(
      '<meta nonce="abc"><script a="b" nonce="abc" src=a.js></script><style nonce="abc">p{}</style>',
    );
  });

  it('staticFiles passes an error to next when the nonce is a promise', async () => {
    const nonce = (async () => {
      throw new Error('late');
    }) as unknown as () => string;
    const { port } = await site({ pages: { csp: { nonce } } });
    expect(await get(port, '/')).toMatchObject({ status: 500, text: expect.stringContaining('nonce') });
  });

  it('staticFiles sends no lifetime and no validator that other code has set with a nonce', async () => {
    const names = ['cdn-cache-control', 'surrogate-control', 'expires', 'etag', 'last-modified'];
    const setHeaders: StaticFilesOptions['setHeaders'] = (res) => {
      for (const name of ['cache-control', ...names]) res.setHeader(name, 'max-age=60');
    };
    const { port } = await site({ setHeaders, pages: { csp: { nonce: true } } });
    const { headers } = await get(port, '/');
    expect(headers['cache-control']).toBe('no-store');
    for (const name of names) expect(headers).not.toHaveProperty(name);
  });

  it('staticFiles uses the nonce of helmet', async () => {
    const { root } = await site({});
    const app = express()
      .use((_req, res, next) => {
        res.locals.nonce = 'abc';
        next();
      })
      .use(helmet({ contentSecurityPolicy: { directives: { scriptSrc: ["'nonce-abc'"] } } }))
      .use(staticFiles(root, { html: true, pages: { csp: { nonce: () => 'abc' } } }));
    const { text, headers } = await get(await listen(app), '/');
    expect(text).toContain('<script nonce="abc">');
    expect(headers['content-security-policy']).toContain("script-src 'nonce-abc';");
  });

  it('staticFiles reports at start what no policy can allow, without a request', async () => {
    const warnings: string[] = [];
    const emit = jest
      .spyOn(process, 'emitWarning')
      .mockImplementation((text) => void warnings.push(String(text)));
    await site(
      { pages: { csp: true } },
      {
        'www/deep/page.html':
          '<title>x</title>\n<p onclick="go()" style="color:red"><a href="javascript:go()">x</a>',
      },
    );
    while (warnings.length < 3) await new Promise((done) => setTimeout(done, 10));
    emit.mockRestore();
    expect(warnings.join('\n')).toMatch(/\/deep\/page\.html: .*onclick.* in line 2/);
    expect(warnings.join('\n')).toMatch(/\/deep\/page\.html: .*style.* in line 2/);
  });

  it('staticFiles reports what many pages have once, with the folder of the site and the number of pages', async () => {
    const warnings: string[] = [];
    const emit = jest
      .spyOn(process, 'emitWarning')
      .mockImplementation((text) => void warnings.push(String(text)));
    const page = '<p style="color:red">\n<p style="color:blue">';
    const files = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`www/${i}/index.html`, page]));
    const { root, port } = await site({ pages: { csp: true } }, files);
    await until(() => warnings.length > 0);
    put(join(root, '3/index.html'), `${page}<p style="color:green">`);
    await get(port, '/3/');
    put(join(root, '4/index.html'), '<p onclick="go()">');
    await get(port, '/4/');
    await until(() => warnings.length > 1);
    emit.mockRestore();
    expect(warnings).toHaveLength(2);
    expect(warnings[0]).toContain(`the Content-Security-Policy of ${root}/ refuses`);
    expect(warnings[0]).toMatch(/index\.html: .* style in line 1; .*\(30 pages have this problem\)/);
    expect(warnings[1]).toMatch(/\/4\/index\.html: .* onclick in line 1/);
  });
});

describe('pages.integrity', () => {
  const main = "import('./lazy.js')";
  const files = {
    'www/index.html': PAGE,
    'www/assets/main.js': main,
    'www/assets/lazy.js': 'lazy',
    'www/assets/main.css': 'p{}',
  };

  it('staticFiles adds the integrity of own scripts and styles, of the modules beside them, and Integrity-Policy', async () => {
    const { port } = await site({ pages: { integrity: true } }, files);
    const { text, headers } = await get(port, '/');
    expect(headers['integrity-policy']).toBe('blocked-destinations=(script)');
    expect(text).toContain(
      `<script integrity="${sha384(main)}" crossorigin type="module" src="/assets/main.js">`,
    );
    expect(text).toContain(
      `<link integrity="${sha384('p{}')}" crossorigin rel=stylesheet href='/assets/main.css'>`,
    );
    const map = /<script type="importmap">(.*?)<\/script>/.exec(text)?.[1] ?? '';
    expect(JSON.parse(map)).toEqual({
      integrity: { '/assets/main.js': sha384(main), '/assets/lazy.js': sha384('lazy') },
    });
  });

  it('staticFiles computes the integrity again when a script changes, appears or disappears', async () => {
    const { port, root } = await site({ pages: { integrity: true } }, files);
    await get(port, '/');
    put(join(root, 'assets/main.js'), 'other');
    expect((await get(port, '/')).text).toContain(sha384('other'));
    put(join(root, 'assets/new.js'), 'new');
    expect((await get(port, '/')).text).toContain(`"/assets/new.js":"${sha384('new')}"`);
    rmSync(join(root, 'assets/main.js'));
    expect((await get(port, '/')).text).not.toContain(sha384('other'));
  });

  it('staticFiles finds own scripts below the path of the mount', async () => {
    const root = join(
      makeFolder({ ...files, 'www/index.html': PAGE.replaceAll('/assets/', '/app/assets/') }),
      'www',
    );
    const app = express().use('/app', staticFiles(root, { html: true, pages: { integrity: true } }));
    expect((await get(await listen(app), '/app/')).text).toContain(`integrity="${sha384(main)}"`);
  });

  it('staticFiles adds the modules to the import map of the page, and its hash to the policy', async () => {
    const html = `<script type="importmap">{"imports":{"x":"/x.js"}}</script><script type="module" src="/assets/main.js"></script>`;
    const { port } = await site(
      { pages: { integrity: true, csp: "script-src 'strict-dynamic'" } },
      { ...files, 'www/index.html': html },
    );
    const { text, headers } = await get(port, '/');
    const map = /<script type="importmap">(.*?)<\/script>/.exec(text)?.[1] ?? '';
    expect(JSON.parse(map)).toMatchObject({
      imports: { x: '/x.js' },
      integrity: { '/assets/lazy.js': sha384('lazy') },
    });
    expect(headers['content-security-policy']).toContain(sha256(map));
    expect(headers['content-security-policy']).toContain(`'${sha384(main)}'`);
  });
});

describe('pages.integrity of pages that were not made by a bundler', () => {
  const integrityOf = async (html: string, files: Record<string, string>, path = '/') => {
    const { port } = await site({ pages: { integrity: true } }, { 'www/index.html': html, ...files });
    return (await get(port, path)).text;
  };

  it('staticFiles resolves URLs with the base of the page', async () => {
    const html = '<base href="/assets/"><script src="a.js"></script><script type=module src="m.js"></script>';
    const files = { 'www/a.js': 'wrong', 'www/assets/a.js': 'right', 'www/assets/m.js': 'module' };
    const text = await integrityOf(html, files);
    expect(text).toContain(`<script integrity="${sha384('right')}" crossorigin src="a.js">`);
    expect(text).toContain(`"./m.js":"${sha384('module')}"`);
    expect(await integrityOf(html.replace('"/assets/"', 'http://cdn.invalid/'), files)).not.toContain(
      'integrity',
    );
  });

  it('staticFiles finds the scripts beside a page whose folder has the signs of a URL', async () => {
    const files = { 'www/c#?/index.html': '<script src=a.js></script>', 'www/c#?/a.js': 'right' };
    expect(await integrityOf('', { ...files, 'www/a.js': 'wrong' }, '/c%23%3F/')).toContain(sha384('right'));
  });

  it('staticFiles lists modules by URLs that an import map may have, and those that the map of the page names', async () => {
    const html =
      '<script type=importmap>{"imports":{"x":"/lib/x.js"},"scopes":{"/":{"y":"./more/y.js","z":null}}}</script>' +
      '<script type=module src=app/main.js></script>';
    const files = { 'www/app/main.js': 'main', 'www/lib/x.js': 'x', 'www/more/y.js': 'y' };
    const map = /<script type=importmap>(.*?)<\/script>/.exec(await integrityOf(html, files))?.[1] ?? '';
    expect(JSON.parse(map).integrity).toEqual({
      './app/main.js': sha384('main'),
      '/lib/x.js': sha384('x'),
      './more/y.js': sha384('y'),
    });
  });

  it("staticFiles allows scripts with an integrity of their own under 'strict-dynamic'", async () => {
    const html = `<script src=http://cdn.invalid/a.js integrity="sha256-YQ== ${sha384('a')}?x"></script>`;
    const pages = { integrity: true, csp: "script-src 'strict-dynamic'" };
    const { port } = await site({ pages }, { 'www/index.html': html });
    expect((await get(port, '/')).headers['content-security-policy']).toBe(
      `script-src 'strict-dynamic' 'sha256-YQ==' '${sha384('a')}'`,
    );
  });

  it('staticFiles reports a module of another origin that an import map names without its integrity', async () => {
    const warned = jest.spyOn(process, 'emitWarning').mockImplementation();
    const map = {
      imports: {
        a: 'http://cdn.invalid/a.js',
        b: 'http://cdn.invalid/b.js',
        c: './c.js',
        d: 'http://cdn.invalid/',
      },
      integrity: { 'http://cdn.invalid/b.js': sha384('b') },
    };
    await integrityOf(`<script type=importmap>${JSON.stringify(map)}</script>`, {});
    expect(warned.mock.calls.map(([message]) => String(message))).toEqual([
      'staticFiles: /index.html: Integrity-Policy refuses the script http://cdn.invalid/a.js of another origin; add its integrity to the page',
    ]);
    warned.mockRestore();
  });

  it('staticFiles reports a script that is not among the files', async () => {
    const warnings: string[] = [];
    const emit = jest
      .spyOn(process, 'emitWarning')
      .mockImplementation((text) => void warnings.push(String(text)));
    await integrityOf('<script src=/other/server.js></script>', {});
    emit.mockRestore();
    expect(warnings.join()).toMatch(/index\.html: .*refuses the script \/other\/server\.js/);
  });

  it.each([['/APP/'], ['http://other.invalid/app/'], ['/app/route']])(
    'staticFiles finds own scripts when the first request is for %s',
    async (first) => {
      const files = { 'www/index.html': '<script src=/app/a.js></script>', 'www/a.js': 'a' };
      const handler = staticFiles(join(makeFolder(files), 'www'), { html: true, pages: { integrity: true } });
      const app = express().use('/app', (req, res, next) => {
        if (req.url === '/route') req.url = '/index.html';
        handler(req, res, next);
      });
      const port = await listen(app);
      await get(port, first);
      expect((await get(port, '/app/')).text).toContain(sha384('a'));
    },
  );
});

describe('pages', () => {
  it.each([
    [{ pages: { config: 5 } }, 'pages.config'],
    [{ pages: { csp: 'default-src; \n' } }, 'pages.csp'],
    [{ pages: { csp: "default-src 'self', x" } }, 'pages.csp'],
    [{ pages: { csp: { nonce: 1 } } }, 'pages.csp.nonce'],
    [{ pages: { csp: "script-src 'strict-dynamic'" } }, 'pages.csp'],
    [{ pages: { integrety: true } }, 'did you mean "pages.integrity"'],
    [{ pages: true }, 'pages'],
  ])('staticFiles refuses %j', (options, message) => {
    expect(() => staticFiles('.', options as StaticFilesOptions)).toThrow(message);
  });

  it('staticFiles names the package that is missing when it is created, and needs none without the option', () => {
    jest.isolateModules(() => {
      jest.doMock('parse5-html-rewriting-stream', () => {
        throw Object.assign(new Error('Cannot find module'), { code: 'MODULE_NOT_FOUND' });
      });
      const { staticFiles: create } = require('../../middleware/static.ts');
      expect(() => create('.', { pages: { integrity: true } })).toThrow(
        'npm install parse5-html-rewriting-stream',
      );
      expect(create('.')).toBeInstanceOf(Function);
    });
  });
});
