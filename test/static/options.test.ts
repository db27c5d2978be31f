/** @tags once */
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { mkdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import * as zlib from 'node:zlib';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import express, { type ErrorRequestHandler } from 'express';
import { createServer } from '../../middleware/server.ts';
import { memoryFiles } from '../../middleware/sources.ts';
import { staticFiles } from '../../middleware/static.ts';
import { eachExpress } from '../express.ts';
import { bare, get, listen, makeFolder, put } from './fixture.ts';

const NAVIGATE = { 'Sec-Fetch-Mode': 'navigate' };
const HTML = { Accept: 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8' };

describe('html, index, extensions and fallback', () => {
  const root = makeFolder({
    'index.html': 'home',
    'about.html': 'about',
    'docs/index.htm': 'docs',
    'both.html': 'page of both',
    'both/index.html': 'index of both',
    'empty/x.txt': 'x',
    'assets/app.js': 'js',
  });

  it('staticFiles tries the names of the index option in order', async () => {
    const port = await listen(bare(staticFiles(root, { html: true, index: ['index.html', 'index.htm'] })));
    expect((await get(port, '/')).text).toBe('home');
    expect((await get(port, '/docs/')).text).toBe('docs');
    expect((await get(port, '/empty/')).status).toBe(404);
    put(`${root}/docs/index.html`, 'another index');
    expect((await get(port, '/docs/')).text).toBe('another index');
    rmSync(`${root}/docs/index.html`);
    expect((await get(port, '/docs/')).text).toBe('docs');
  });

  it('staticFiles tries the extensions for a path that has none and matches no file', async () => {
    const port = await listen(bare(staticFiles(root, { html: true, extensions: ['htm', 'html'] })));
    expect((await get(port, '/about')).text).toBe('about');
    expect((await get(port, '/both')).headers.location).toBe('./both/');
    expect((await get(port, '/about.txt')).status).toBe(404);
    put(`${root}/about`, 'the file itself');
    expect((await get(port, '/about')).text).toBe('the file itself');
    rmSync(`${root}/about`);
  });

  describe('fallback', () => {
    let port: number;
    beforeAll(async () => {
      port = await listen(bare(staticFiles(root, { fallback: 'index.html', cacheControl: /app/ })));
    });

    it.each([
      ['/orders/17', NAVIGATE],
      ['/orders/17', HTML],
      // A script that fetches pages, such as Turbo or htmx.
      ['/orders/17', { 'Sec-Fetch-Mode': 'cors', Accept: 'text/html' }],
      ['/users/jane.doe', NAVIGATE],
      ['/users/jane@example.com', NAVIGATE],
      ['/users/jane@example.com', HTML],
      ['/sites/example.org', NAVIGATE],
      ['/sites/example.ai', NAVIGATE],
      ['/sites/about.me', NAVIGATE],
      ['/scripts/deploy.sh', NAVIGATE],
      ['/releases/v1.2', NAVIGATE],
      ['/old/page.html', HTML],
      ['/app', NAVIGATE],
    ])('staticFiles sends the fallback page for %s with %o', async (path, headers) => {
      const response = await get(port, path, headers);
      expect(response.status).toBe(200);
      expect(response.text).toBe('home');
      expect(response.headers.vary).toBe('Accept, Sec-Fetch-Mode');
      expect(response.headers['cache-control']).toBe('public, max-age=0');
      const again = await get(port, path, { ...headers, 'If-None-Match': response.headers.etag as string });
      expect(again.status).toBe(304);
    });

    it.each([
      ['/missing.js', NAVIGATE],
      ['/missing.png', HTML],
      ['/missing.PNG', NAVIGATE],
      ['/missing.pdf', NAVIGATE],
      ['/sitemap.xml', HTML],
      ['/wp-login.php', HTML],
      ['/orders/17', { 'Sec-Fetch-Mode': 'cors', Accept: '*/*' }],
      ['/orders/17', { 'Sec-Fetch-Mode': 'no-cors', Accept: 'image/avif,image/webp,*/*;q=0.8' }],
      ['/orders/17', { Accept: '*/*' }],
      ['/orders/17', { Accept: 'text/html;q=0, */*' }],
      ['/orders/17', { Accept: 'application/json' }],
      ['/orders/17', {}],
      ['/.env', NAVIGATE],
      ['/a%2fb', NAVIGATE],
    ] as [string, Record<string, string>][])(
      'staticFiles sends no fallback page for %s with %o',
      async (path, headers) => {
        expect((await get(port, path, headers)).status).toBe(404);
      },
    );

    it('staticFiles adds Vary to a 404 where a navigation would get the fallback page', async () => {
      expect((await get(port, '/orders/17')).headers.vary).toBe('Accept, Sec-Fetch-Mode');
      expect((await get(port, '/missing.js')).headers).not.toHaveProperty('vary');
    });

    it('staticFiles sends the fallback file under its own name without Vary', async () => {
      expect((await get(port, '/index.html')).headers).not.toHaveProperty('vary');
    });

    it.each(['.out/index.html', './.out/index.html', 'x//y.html'])(
      'staticFiles refuses the URL of the fallback %s also after it was sent as a fallback',
      async (fallback) => {
        const folder = makeFolder({ '.out/index.html': 'page', 'x/y.html': 'page' });
        const server = await listen(bare(staticFiles(folder, { fallback })));
        const url = `/${fallback.replace(/^\.\//, '')}`;
        expect((await get(server, url)).status).toBe(404);
        expect((await get(server, '/route', NAVIGATE)).text).toBe('page');
        expect((await get(server, url)).status).toBe(404);
      },
    );

    it('staticFiles sends 404 when the fallback file was deleted', async () => {
      const folder = makeFolder({ 'app.html': 'app' });
      const missing = await listen(bare(staticFiles(folder, { fallback: '/app.html' })));
      rmSync(join(folder, 'app.html'));
      expect((await get(missing, '/x', NAVIGATE)).status).toBe(404);
    });
  });
});

describe('after a middleware that replaces res.write, as compression does', () => {
  const root = makeFolder({ 'a.txt': '0123456789', 'a.mp4': '0123456789' });

  it.each([
    ['/a.txt', 200, '0123456789'],
    ['/a.mp4', 206, '01'],
  ])('staticFiles responds to a range of %s with %i', async (path, status, text) => {
    const files = staticFiles(root);
    const port = await listen((req, res: ServerResponse) => {
      res.write = res.write.bind(res) as typeof res.write;
      files(req, res, () => undefined);
    });
    expect(await get(port, path, { Range: 'bytes=0-1' })).toMatchObject({ status, text });
  });

  it('staticFiles sends ranges on HTTP/2 responses of createServer, which have their own write', async () => {
    const server = createServer(express().use(staticFiles(root)), { http2: true });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const stream = session.request({ ':path': '/a.txt', range: 'bytes=0-1' });
    const [headers] = await once(stream.resume(), 'response');
    expect(headers[':status']).toBe(206);
    session.close();
    server.close();
  });
});

describe('precompressed', () => {
  const js = 'let a = 1;\n'.repeat(100);
  const br = brotliCompressSync(js);
  const gz = gzipSync(js);
  // Node before 22.15 cannot decompress zstd, so that any bytes are accepted.
  const zst = Object(zlib).zstdCompressSync?.(js) ?? Buffer.from('not really zstandard');
  const root = makeFolder({
    'app.js': js,
    'app.js.br': br,
    'app.js.gz': gz,
    'app.js.zst': zst,
    'plain.txt': 'plain',
    'stale.js': js,
    'stale.js.br': brotliCompressSync('let a = 2;'),
    'folder.js': js,
    'folder.js.br/x': 'x',
    'orphan.js.br': br,
  });
  const past = new Date(Date.now() - 100_000);
  utimesSync(`${root}/stale.js.br`, past, past);
  let port: number;
  beforeAll(async () => {
    port = await listen(bare(staticFiles(root, { precompressed: true })));
  });
  const request = (path: string, acceptEncoding?: string, more = {}) =>
    get(port, path, {
      ...(acceptEncoding === undefined ? {} : { 'Accept-Encoding': acceptEncoding }),
      ...more,
    });

  it.each([
    ['gzip, deflate, br, zstd', 'br'],
    ['gzip, zstd', 'zstd'],
    ['gzip', 'gzip'],
    ['x-gzip', 'gzip'],
    ['GZIP;q=0.5, br;q=0.4', 'gzip'],
    ['br;q=0, gzip', 'gzip'],
    ['br;q=0.5, identity', undefined],
    ['*', 'br'],
    ['*;q=0.1, br;q=0', 'zstd'],
    ['*;q=0, br', 'br'],
    ['identity;q=0, br;q=0, zstd;q=0, *', 'gzip'],
    ['xbr, gzipped', undefined],
    ['deflate', undefined],
    ['br;q=high', undefined],
    ['', undefined],
    [undefined, undefined],
  ])('staticFiles selects the coding for Accept-Encoding %j: %s', async (accepted, coding) => {
    const response = await request('/app.js', accepted);
    expect(response.status).toBe(200);
    expect(response.headers['content-encoding']).toBe(coding);
    expect(response.headers['content-type']).toBe('text/javascript; charset=utf-8');
    expect(response.headers.vary).toBe('Accept-Encoding');
    const expected = { br, gzip: gz, zstd: zst }[coding as 'br'] ?? Buffer.from(js);
    expect(response.body.equals(expected)).toBe(true);
  });

  it('staticFiles sends an ETag per coding, which gives 304 for that coding only', async () => {
    const codings = ['br', 'zstd', 'gzip', 'identity'];
    const tags: string[] = [];
    for (const coding of codings) tags.push((await request('/app.js', coding)).headers.etag as string);
    expect(new Set(tags).size).toBe(4);
    for (const [index, coding] of codings.entries()) {
      const own = await request('/app.js', coding, { 'If-None-Match': tags[index] });
      expect(own.status).toBe(304);
      expect(own.headers.vary).toBe('Accept-Encoding');
      const other = await request('/app.js', coding, { 'If-None-Match': tags[(index + 1) % 4] });
      expect(other.status).toBe(200);
    }
  });

  it('staticFiles sends ranges of a compressed representation', async () => {
    const response = await request('/app.js', 'gzip', { Range: 'bytes=2-5' });
    expect(response.status).toBe(206);
    expect(response.headers['content-encoding']).toBe('gzip');
    expect(response.body.equals(gz.subarray(2, 6))).toBe(true);
  });

  it('staticFiles sends 406 rather than a coding that the client refuses', async () => {
    expect((await request('/app.js', 'identity;q=0, br;q=0, zstd;q=0, gzip;q=0')).status).toBe(406);
    expect((await request('/app.js', '*;q=0')).status).toBe(406);
    // A coding that is not listed is not acceptable without a star (RFC 9110 §12.5.3).
    expect((await request('/app.js', 'identity;q=0')).status).toBe(406);
    expect((await request('/app.js', 'gzip, *;q=0')).headers['content-encoding']).toBe('gzip');
  });

  it.each(['/plain.txt', '/stale.js', '/folder.js'])(
    'staticFiles sends no Vary for %s, which has no usable compressed copy',
    async (path) => {
      const response = await request(path, 'br, gzip');
      expect(response.status).toBe(200);
      expect(response.headers).not.toHaveProperty('vary');
      expect(response.headers).not.toHaveProperty('content-encoding');
    },
  );

  it('staticFiles sends a compressed copy under its own name as application/gzip, and none without its source', async () => {
    expect((await request('/app.js.gz')).headers).toMatchObject({ 'content-type': 'application/gzip' });
    expect((await request('/app.js.gz')).headers).not.toHaveProperty('content-encoding');
    expect((await request('/orphan.js', 'br')).status).toBe(404);
  });

  it('staticFiles detects a compressed copy that is created or deleted', async () => {
    put(`${root}/new.txt`, 'source');
    expect((await request('/new.txt', 'gzip')).headers).not.toHaveProperty('content-encoding');
    writeFileSync(`${root}/new.txt.gz`, gzipSync('source'));
    expect((await request('/new.txt', 'gzip')).headers['content-encoding']).toBe('gzip');
    rmSync(`${root}/new.txt.gz`);
    expect((await request('/new.txt', 'gzip')).text).toBe('source');
  });

  it('staticFiles uses only the codings that precompressed lists', async () => {
    const some = await listen(bare(staticFiles(root, { precompressed: ['gzip'] })));
    expect((await get(some, '/app.js', { 'Accept-Encoding': 'br, gzip' })).headers['content-encoding']).toBe(
      'gzip',
    );
  });

  it('staticFiles ignores a compressed copy that is a link out of the root', async () => {
    const outside = makeOutside();
    put(`${root}/linked.txt`, 'source');
    symlinkSync(outside, `${root}/linked.txt.gz`);
    expect((await request('/linked.txt', 'gzip')).text).toBe('source');
  });
  const outsideFolder = makeFolder({ 'x.gz': 'outside' });
  const makeOutside = (): string => `${outsideFolder}/x.gz`;
});

describe('the root', () => {
  it('staticFiles follows a root that is a symbolic link when its target is switched', async () => {
    const folder = makeFolder({ 'one/a.txt': 'one', 'two/a.txt': 'two' });
    symlinkSync('one', `${folder}/current`);
    const port = await listen(bare(staticFiles(`${folder}/current`)));
    expect((await get(port, '/a.txt')).text).toBe('one');
    symlinkSync('two', `${folder}/next`);
    renameSync(`${folder}/next`, `${folder}/current`);
    expect((await get(port, '/a.txt')).text).toBe('two');
  });

  it('staticFiles sends 404 while the root is missing and serves it again afterwards', async () => {
    const folder = makeFolder({ 'www/a.txt': 'here' });
    const port = await listen(bare(staticFiles(`${folder}/www`)));
    renameSync(`${folder}/www`, `${folder}/moved`);
    expect((await get(port, '/a.txt')).status).toBe(404);
    mkdirSync(`${folder}/www`);
    put(`${folder}/www/a.txt`, 'again');
    expect((await get(port, '/a.txt')).text).toBe('again');
  });
});

describe("missing: 'allow'", () => {
  it('staticFiles serves a directory that appears, disappears and returns, and says once that it waits', async () => {
    const warn = jest.spyOn(console, 'warn').mockImplementation();
    const folder = makeFolder({});
    const dir = join(folder, 'dist/browser');
    const app = express().use(
      staticFiles(dir, { missing: 'allow', fallback: 'index.html', notFound: '404.html', listing: true }),
    );
    const port = await listen(app as never);
    const statuses = async () =>
      Promise.all(
        ['/', '/route', '/assets/app.js', '/none.js'].map(
          async (path) => (await get(port, path, HTML)).status,
        ),
      );
    for (let build = 0; build < 3; build++) {
      expect(await statuses()).toEqual([404, 404, 404, 404]);
      put(join(dir, 'assets/app.js'), `build ${build}`);
      put(join(dir, 'index.html'), 'page');
      expect(await statuses()).toEqual([200, 200, 200, 404]);
      expect((await get(port, '/assets/app.js')).text).toBe(`build ${build}`);
      rmSync(join(folder, 'dist'), { recursive: true });
    }
    writeFileSync(join(folder, 'dist'), 'a file');
    expect(await statuses()).toEqual([404, 404, 404, 404]);
    expect(warn.mock.calls).toEqual([
      [`espalier: staticFiles: ${dir} does not exist. Requests get a 404 until it does (option "missing")`],
    ]);
    warn.mockRestore();
  });

  it('staticFiles says nothing about a directory that exists, and starts without its pages', async () => {
    const warn = jest.spyOn(console, 'warn').mockImplementation();
    const port = await listen(
      bare(staticFiles(makeFolder({}), { missing: 'allow', fallback: 'index.html' })),
    );
    expect((await get(port, '/route', HTML)).status).toBe(404);
    expect(warn).not.toHaveBeenCalled();
    warn.mockRestore();
  });

  it('staticFiles sends what keep has while the directory of the build is missing', async () => {
    const warn = jest.spyOn(console, 'warn').mockImplementation();
    const folder = makeFolder({ 'kept/assets/a-1.js': 'kept' });
    const options = { cacheControl: /^\/assets\//, keep: { directory: join(folder, 'kept') } };
    const port = await listen(bare(staticFiles(join(folder, 'dist'), { missing: 'allow', ...options })));
    expect((await get(port, '/assets/a-1.js')).text).toBe('kept');
    warn.mockRestore();
  });
});

describe('a wrong kind of path', () => {
  const root = makeFolder({ 'todo.txt': '', 'pages/index.html': '' });

  it.each<[string, () => unknown, RegExp]>([
    [
      'a file',
      () => staticFiles(join(root, 'todo.txt')),
      /todo\.txt is a file\. Pass the directory that contains it$/,
    ],
    [
      'a file that may be missing',
      () => staticFiles(join(root, 'todo.txt'), { missing: 'allow' }),
      /todo\.txt is a file\. Pass the directory/,
    ],
    ['a device', () => staticFiles('/dev/null'), /\/dev\/null is not a directory/],
    [
      'a missing directory',
      () => staticFiles('none'),
      /none does not exist\. Create the directory before the call, or set missing: 'allow' if it appears later; relative/,
    ],
    [
      'a source that may be missing',
      () => staticFiles(memoryFiles({}), { missing: 'allow' }),
      /"missing" is set, but the files come/,
    ],
    [
      'another value',
      () => staticFiles(root, { missing: true as never }),
      /option "missing" is true; accepted: 'throw' or 'allow'/,
    ],
  ])('staticFiles names the problem of %s', (_what, create, message) => {
    expect(create).toThrow(message);
  });

  it('staticFiles says that a directory or a page below a file does not exist', () => {
    const folder = makeFolder({ 'a.txt': 'a' });
    expect(() => staticFiles(`${folder}/a.txt/www`)).toThrow(/www does not exist\. Create the directory/);
    expect(() => staticFiles(folder, { fallback: 'a.txt/index.html' })).toThrow(
      /"fallback" is "a\.txt\/index\.html", which is not a file/,
    );
  });
});

describe('a Content-Encoding that other code has set', () => {
  it('staticFiles sends the bytes of the file, which are in this coding, and compresses them no second time', async () => {
    const svg = `<svg xmlns="http://www.w3.org/2000/svg">${'<g/>'.repeat(2000)}</svg>`;
    const root = makeFolder({
      'a.svgz': gzipSync(svg, { level: 0 }),
      'a.svgz.br': brotliCompressSync(gzipSync(svg, { level: 0 })),
    });
    const setHeaders = (res: ServerResponse): void => void res.setHeader('Content-Encoding', 'gzip');
    for (const options of [{ compress: true }, { precompressed: true }]) {
      const port = await listen(bare(staticFiles(root, { ...options, setHeaders })));
      for (let i = 0; i < 20; i++) {
        const { headers, body } = await get(port, '/a.svgz', { 'Accept-Encoding': 'gzip, br' });
        expect(headers['content-encoding']).toBe('gzip');
        expect(String(zlib.gunzipSync(body))).toBe(svg);
      }
    }
  });
});

it('staticFiles sends the file when an async setHeaders rejects, and warns instead of ending the process', async () => {
  const warned = jest.spyOn(process, 'emitWarning').mockReturnValue(undefined);
  const unhandled = jest.fn();
  process.on('unhandledRejection', unhandled);
  const setHeaders = async (res: ServerResponse): Promise<void> => {
    res.setHeader('x-early', '1');
    await Promise.reject(new Error('from setHeaders'));
  };
  const root = makeFolder({ 'a.txt': 'content' });
  const response = await get(await listen(bare(staticFiles(root, { setHeaders }))), '/a.txt');
  expect(response.headers['x-early']).toBe('1');
  expect(response.text).toBe('content');
  await new Promise(setImmediate);
  expect(warned.mock.calls.map(([message]) => message)).toEqual([
    'staticFiles: the promise of the option "setHeaders" was rejected: Error: from setHeaders',
  ]);
  expect(unhandled).not.toHaveBeenCalled();
  process.off('unhandledRejection', unhandled);
  warned.mockRestore();
});

eachExpress((express) => {
  const root = makeFolder({
    'a.txt': '0123456789',
    'big.txt': 'x'.repeat(400_000),
    'a.js': 'js',
    'a.js.gz': gzipSync('js'),
  });

  it('staticFiles keeps headers that earlier middleware set, and adds to Vary', async () => {
    const app = express();
    app.use((_req, res, next) => {
      res.set({
        'Cache-Control': 'no-store',
        'Content-Type': 'text/x-mine; charset=utf-8',
        Vary: 'Origin',
        'X-Frame-Options': 'DENY',
      });
      res.append('Set-Cookie', ['a=1', 'b=2']);
      next();
    });
    app.use(staticFiles(root, { precompressed: ['gzip'] }));
    const port = await listen(app);
    for (const path of ['/a.js', '/big.txt']) {
      const { headers, status } = await get(port, path);
      expect(status).toBe(200);
      expect(headers).toMatchObject({
        'cache-control': 'no-store',
        'content-type': 'text/x-mine; charset=utf-8',
        'x-frame-options': 'DENY',
        'x-powered-by': 'Express',
        'set-cookie': ['a=1', 'b=2'],
        vary: path === '/a.js' ? 'Origin, Accept-Encoding' : 'Origin',
      });
    }
    const parts = await get(port, '/a.txt', { Range: 'bytes=0-1,5-6' });
    expect(parts.headers['content-type']).toMatch(/^multipart\/byteranges/);
  });

  it('staticFiles calls a replaced writeHead with the status only', async () => {
    const app = express();
    app.disable('x-powered-by');
    app.use((_req, res, next) => {
      const { writeHead } = res;
      // on-headers before 1.1.0 treats an array as a list of pairs.
      res.writeHead = function (this: typeof res, status: number, headers?: unknown) {
        if (Array.isArray(headers)) for (const pair of headers) this.setHeader(pair[0], pair[1]);
        this.setHeader('X-Time', '1');
        return writeHead.call(this, status);
      } as typeof res.writeHead;
      next();
    });
    app.use(staticFiles(root));
    const port = await listen(app);
    for (const path of ['/a.txt', '/big.txt']) {
      const response = await get(port, path);
      expect(response.status).toBe(200);
      expect(response.headers).toMatchObject({ 'x-time': '1', 'content-type': 'text/plain; charset=utf-8' });
    }
  });

  it('staticFiles does not reuse the buffers that a replaced write received', async () => {
    const written: Buffer[] = [];
    const app = express();
    app.use((_req, res, next) => {
      const write = res.write.bind(res);
      const end = res.end.bind(res);
      Object.assign(res, {
        write(chunk: Buffer, done: () => void) {
          written.push(chunk);
          return write(chunk, done);
        },
        end(chunk: Buffer, done: () => void) {
          written.push(chunk);
          return end(chunk, done);
        },
      });
      next();
    });
    const content = Buffer.from(Array.from({ length: 1_000_000 }, (_, index) => (index * 7) % 251));
    put(`${root}/varied.bin`, content);
    app.use(staticFiles(root));
    expect((await get(await listen(app), '/varied.bin')).body.equals(content)).toBe(true);
    expect(Buffer.concat(written).equals(content)).toBe(true);
  });

  it('staticFiles keeps the headers that setHeaders sets, and evaluates conditions with its ETag', async () => {
    const app = express();
    app.use(
      staticFiles(root, {
        setHeaders(res, path, stat) {
          res.setHeader('X-Size', String(stat.size));
          res.setHeader('X-Path', path);
          res.setHeader('Cache-Control', 'private');
          res.setHeader('ETag', '"mine"');
        },
      }),
    );
    const port = await listen(app);
    for (const [headers, status] of [
      [{}, 200],
      [{ 'If-None-Match': '"mine"' }, 304],
      [{ 'If-Match': '"other"' }, 412],
    ] as const) {
      const response = await get(port, '/a.txt', headers);
      expect(response.status).toBe(status);
      expect(response.headers).toMatchObject({ 'x-size': '10', 'x-path': `${root}/a.txt` });
      expect(response.headers['cache-control']).toBe(status === 412 ? undefined : 'private');
    }
  });

  it('staticFiles passes an exception of setHeaders to the error handlers', async () => {
    const app = express();
    app.use(
      staticFiles(root, {
        setHeaders() {
          throw new Error('from setHeaders');
        },
      }),
    );
    const report: ErrorRequestHandler = (error, _req, res, _next) => {
      res.status(500).end(String(error));
    };
    app.use(report);
    expect((await get(await listen(app), '/a.txt')).text).toBe('Error: from setHeaders');
  });

  it('staticFiles keeps the AsyncLocalStorage of each request when requests share a check', async () => {
    const storage = new AsyncLocalStorage<string>();
    const app = express();
    app.use((req, _res, next) => storage.run(req.url, next));
    app.use(staticFiles(root));
    app.use((_req, res) => {
      res.end(storage.getStore());
    });
    const port = await listen(app);
    const paths = Array.from({ length: 20 }, (_, index) => `/none?${index}`);
    const responses = await Promise.all(paths.map((path) => get(port, path)));
    expect(responses.map(({ text }) => text)).toEqual(paths);
  });

  it('staticFiles does nothing when other code has responded in the meantime', async () => {
    const app = express();
    app.use((_req, res, next) => {
      next();
      res.end('first');
    });
    const files = staticFiles(root);
    app.use(files);
    const port = await listen(app);
    expect((await get(port, '/a.txt')).text).toBe('first');
    expect((await get(port, '/big.txt')).text).toBe('first');
    expect((await get(port, '/none')).text).toBe('first');
    // Waits for the loads, which nobody waits for above: they must not outlive the test.
    const other = await listen(bare(files));
    for (const path of ['/a.txt', '/big.txt', '/none']) await get(other, path);
  });
});
