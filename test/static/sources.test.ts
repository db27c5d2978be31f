/** @tags node-lines */
import { rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import { createServer } from '../../middleware/server.ts';
import { memoryFiles } from '../../middleware/sources.ts';
import { staticFiles } from '../../middleware/static.ts';
import type { StaticSource } from '../../types/sources.ts';
import { descriptorsIn } from '../descriptors.ts';
import { requestHttp2, serving } from '../exchange.ts';
import { until } from '../until.ts';
import { bare, get, listen, makeFolder, put, rawGet } from './fixture.ts';
import { SOURCES, streamsOf } from './source-makers.ts';

const js = 'let a = 1;\n'.repeat(300);
const large = Buffer.from(Array.from({ length: 700_000 }, (_, index) => (index * 7) % 251));
const site = makeFolder({
  'index.html': '<link rel=stylesheet href=/a.css>home',
  'about.html': 'about',
  'docs/index.html': 'docs',
  'docs/deep/a.txt': 'deep',
  'app.js': js,
  'copied.js': js,
  'copied.js.br': brotliCompressSync(js),
  'stale.js': js,
  'stale.js.br': brotliCompressSync('other'),
  'large.bin': large,
  'empty.txt': '',
  'ü ☃.txt': 'unicode',
  '.env': 'secret',
  '.well-known/x.txt': 'well known',
  '404.html': 'not found',
});

describe.each(SOURCES)('staticFiles with %s', (_name, make) => {
  const source = make(site);

  it.each([
    ['/', 200, '<link rel=stylesheet href=/a.css>home'],
    ['/docs/', 200, 'docs'],
    ['/docs/deep/a.txt', 200, 'deep'],
    ['/about', 200, 'about'],
    ['/%C3%BC%20%E2%98%83.txt', 200, 'unicode'],
    ['/empty.txt', 200, ''],
    ['/.well-known/x.txt', 200, 'well known'],
    ['/.env', 404, 'passed on'],
    ['/none', 404, 'passed on'],
    ['/docs/deep/', 404, 'passed on'],
    ['/app.js/', 404, 'passed on'],
    ['/app.js/x', 404, 'passed on'],
    ['/docs%2findex.html', 404, 'passed on'],
    ['/__proto__', 404, 'passed on'],
  ])('staticFiles responds to %s with %i', async (path, status, text) => {
    const port = await listen(bare(staticFiles(source, { html: true, extensions: 'html' })));
    const response = await get(port, path);
    expect([response.status, response.text]).toEqual([status, text]);
  });

  it('staticFiles redirects directories, and refuses paths above the root', async () => {
    const port = await listen(bare(staticFiles(source, { html: true })));
    expect((await get(port, '/docs')).headers.location).toBe('./docs/');
    for (const path of ['/../x', '/docs/../app.js', '//app.js']) {
      expect(await rawGet(port, path)).toMatch(/^HTTP\/1\.1 404 /);
    }
  });

  it.each([{}, { cache: false as const }, { cache: { maxBytes: '1mb' } }])(
    'staticFiles sends whole files and ranges with %j',
    async (options) => {
      const port = await listen(bare(staticFiles(source, options)));
      const whole = await get(port, '/large.bin');
      expect(whole.body.equals(large)).toBe(true);
      expect(whole.headers).toMatchObject({ 'content-length': '700000', 'accept-ranges': 'bytes' });
      const range = await get(port, '/large.bin', { Range: 'bytes=300000-300099' });
      expect([range.status, range.body.equals(large.subarray(300_000, 300_100))]).toEqual([206, true]);
      const parts = await get(port, '/large.bin', { Range: 'bytes=0-9,600000-600009' });
      expect(parts.body.includes(large.subarray(600_000, 600_010))).toBe(true);
      const head = await get(port, '/large.bin', {}, 'HEAD');
      expect([head.status, head.body.length, head.headers.etag]).toEqual([200, 0, whole.headers.etag]);
      const again = await get(port, '/large.bin', { 'If-None-Match': whole.headers.etag as string });
      expect(again.status).toBe(304);
    },
  );

  it('staticFiles sends the same ETag as for a directory', async () => {
    const tags: unknown[] = [];
    for (const files of [site, source]) {
      const port = await listen(bare(staticFiles(files)));
      tags.push((await get(port, '/large.bin')).headers.etag, (await get(port, '/app.js')).headers.etag);
    }
    expect(tags.slice(2)).toEqual(tags.slice(0, 2));
  });

  it('staticFiles sends compressed copies, and compresses other files', async () => {
    const options = { precompressed: true, compress: true };
    const port = await listen(bare(staticFiles(source, options)));
    const copied = await get(port, '/copied.js', { 'Accept-Encoding': 'br' });
    expect(copied.body.equals(brotliCompressSync(js))).toBe(true);
    expect((await get(port, '/stale.js', { 'Accept-Encoding': 'br' })).headers['content-encoding']).not.toBe(
      'zstd',
    );
    for (;;) {
      const { headers } = await get(port, '/app.js', { 'Accept-Encoding': 'gzip' });
      if (headers['content-encoding'] === 'gzip') break;
    }
  });

  it('staticFiles sends the fallback and notFound pages, and calls setHeaders', async () => {
    const sizes: number[] = [];
    const setHeaders = (
      _res: ServerResponse,
      _path: string,
      stat: { size: number; isFile(): boolean },
    ): void => {
      sizes.push(stat.isFile() ? stat.size : -1);
    };
    const port = await listen(
      bare(staticFiles(source, { fallback: 'about.html', notFound: '404.html', setHeaders })),
    );
    const navigate = { 'Sec-Fetch-Mode': 'navigate' };
    expect(await get(port, '/route', navigate)).toMatchObject({ status: 200, text: 'about' });
    expect(await get(port, '/none.png', navigate)).toMatchObject({ status: 404, text: 'not found' });
    expect(sizes).toEqual([5, 9]);
  });

  it('staticFiles shares one load among simultaneous requests', async () => {
    const port = await listen(bare(staticFiles(source)));
    const responses = await Promise.all(Array.from({ length: 50 }, () => get(port, '/app.js')));
    expect(new Set(responses.map(({ text }) => text))).toEqual(new Set([js]));
  });

  it('staticFiles releases a body that the client does not read to its end', async () => {
    const port = await listen(bare(staticFiles(source, { cache: false })));
    const opened = (): number => descriptorsIn(join(dirname(site), 'espalier-static-'));
    // Earlier tests of the process may have left some.
    const before = opened();
    for (let i = 0; i < 20; i++) {
      const socket = connect(port, '127.0.0.1');
      socket.write('GET /large.bin HTTP/1.1\r\nHost: x\r\n\r\n');
      await new Promise((done) => socket.once('data', done));
      socket.destroy();
    }
    expect((await get(port, '/large.bin')).body.equals(large)).toBe(true);
    // On Node 26 a handle that is left to the garbage collector ends the process.
    await until(() => opened() <= before);
  });
});

describe('memoryFiles', () => {
  it('staticFiles sends files in memory that are added, replaced and deleted', async () => {
    const files = memoryFiles({ 'a.txt': 'one' });
    const port = await listen(bare(staticFiles(files, { html: true })));
    const first = await get(port, '/a.txt');
    expect(first.text).toBe('one');
    files.set('/a.txt', 'two');
    expect((await get(port, '/a.txt', { 'If-None-Match': first.headers.etag as string })).text).toBe('two');
    files.set('dir/index.html', Buffer.from('page'));
    expect((await get(port, '/dir')).status).toBe(301);
    expect((await get(port, '/dir/')).text).toBe('page');
    expect(files.delete('dir/index.html')).toBe(true);
    expect(files.delete('dir/index.html')).toBe(false);
    expect((await get(port, '/dir')).text).toBe('passed on');
    expect((await get(port, '/dir/')).text).toBe('passed on');
    expect([...(await files.list())]).toEqual(['/a.txt']);
  });
});

describe('sources of the user', () => {
  it('staticFiles passes an exception of a synchronous stat to the error handlers, also for a cached file', async () => {
    let isBroken = false;
    const source: StaticSource = {
      stat() {
        if (isBroken) throw new Error('archive is damaged');
        return { size: 1, version: '1' };
      },
      open: () => Buffer.from('x'),
      list: () => [],
    };
    const port = await listen(bare(staticFiles(source)));
    expect((await get(port, '/a.txt')).text).toBe('x');
    isBroken = true;
    expect(await get(port, '/a.txt')).toMatchObject({ status: 500, text: 'Error: archive is damaged' });
    isBroken = false;
    expect((await get(port, '/a.txt')).text).toBe('x');
  });

  it('staticFiles detects a file of an asynchronous source that changes', async () => {
    const folder = makeFolder({ 'a.txt': 'one' });
    const port = await listen(bare(staticFiles(streamsOf(folder))));
    expect((await get(port, '/a.txt')).text).toBe('one');
    put(join(folder, 'a.txt'), 'second');
    expect((await get(port, '/a.txt')).text).toBe('second');
    rmSync(join(folder, 'a.txt'));
    expect((await get(port, '/a.txt')).status).toBe(404);
  });

  it.each([
    ['fewer bytes', 50],
    ['more bytes', 500],
  ])(
    'staticFiles sends no complete response from a source that sends %s than it has declared',
    async (_what, length) => {
      const source: StaticSource = {
        stat: () => ({ size: 100, version: '1' }),
        open: () => Buffer.alloc(length),
        list: () => [],
      };
      for (const options of [{}, { cache: false as const, etag: false as const }]) {
        const port = await listen(bare(staticFiles(source, options)));
        const result = await get(port, '/a.txt').then(
          ({ status }) => status,
          () => 'destroyed',
        );
        expect([503, 'destroyed']).toContain(result);
      }
    },
  );

  it('staticFiles adds no listeners to a response for each retry of a source that has no bytes', async () => {
    let response: ServerResponse | undefined;
    const counts: (number | undefined)[] = [];
    const source: StaticSource = {
      stat: () => ({ size: 100, version: '1' }),
      open() {
        counts.push(response?.listenerCount('close'));
        return Buffer.alloc(0);
      },
      list: () => [],
    };
    const serve = bare(staticFiles(source, { cache: false, etag: 'stat' }));
    const app = (req: IncomingMessage, res: ServerResponse): void => {
      response = res;
      serve(req, res);
    };
    await serving(createServer(app, { http2: true }), async (port) => {
      expect((await requestHttp2(port, { path: '/a.txt' })).status).toBe(503);
    });
    expect(new Set(counts)).toEqual(new Set([counts[0]]));
  });

  it('staticFiles destroys the connection when a file of a source changes while middleware collects its body', async () => {
    const files = memoryFiles({ 'a.bin': Buffer.alloc(3_000_000, 'a') });
    const serve = bare(staticFiles(files, { cache: false }));
    let isChanged = false;
    const port = await listen((req, res) => {
      const { end } = res;
      const chunks: Buffer[] = [];
      res.write = ((chunk: Buffer) => {
        if (chunks.push(chunk) === 2 && !isChanged) files.set('a.bin', Buffer.alloc(3_000_000, 'b'));
        isChanged ||= chunks.length === 2;
        return true;
      }) as never;
      res.end = (() => end.call(res, Buffer.concat(chunks), 'utf8')) as never;
      serve(req, res);
    });
    await expect(get(port, '/a.bin')).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect((await get(port, '/a.bin')).body.equals(Buffer.alloc(3_000_000, 'b'))).toBe(true);
  });

  it('staticFiles destroys the connection if the source fails after the headers', async () => {
    const source: StaticSource = {
      stat: () => ({ size: 1_000_000, version: '1' }),
      async *open() {
        yield Buffer.alloc(500_000);
        throw new Error('disk failure');
      },
      list: () => [],
    };
    const port = await listen(bare(staticFiles(source, { etag: 'stat', cache: false })));
    await expect(get(port, '/a.txt')).rejects.toThrow();
  });

  it.each<[string, Partial<StaticSource>]>([
    ['stat', { stat: () => Promise.reject(new Error('no connection')) }],
    ['open', { open: () => Promise.reject(new Error('no connection')) }],
    ['a size', { stat: () => ({ size: -1, version: '1' }) }],
    ['a version', { stat: () => Object({ size: 1 }) }],
  ])('staticFiles passes an error of %s to the error handlers', async (_name, broken) => {
    const source: StaticSource = {
      stat: () => ({ size: 1, version: '1' }),
      open: () => Buffer.alloc(1),
      list: () => [],
      ...broken,
    };
    const port = await listen(bare(staticFiles(source)));
    const { status, text } = await get(port, '/a.txt');
    expect(status).toBe(500);
    expect(text).toMatch(/no connection|option "dir\.stat" returned/);
  });

  it('staticFiles serves a source with revalidateAfter without calling stat for each request', async () => {
    let calls = 0;
    const source: StaticSource = {
      stat: () => ({ size: 1, version: String(++calls > 0) }),
      open: () => Buffer.from('x'),
      list: () => [],
    };
    const port = await listen(bare(staticFiles(source, { cache: { revalidateAfter: 60_000 } })));
    for (let i = 0; i < 5; i++) expect((await get(port, '/a.txt')).text).toBe('x');
    expect(calls).toBeLessThanOrEqual(2);
  });
});

it('staticFiles with memoryFiles sends another ETag for other bytes of a large file in another process', async () => {
  const tags = new Set<string | undefined>();
  for (const byte of [1, 2]) {
    const files = memoryFiles({ 'a.bin': Buffer.alloc(9 << 20, byte) });
    const port = await listen(bare(staticFiles(files)));
    tags.add((await get(port, '/a.bin', {}, 'HEAD')).headers.etag);
  }
  expect(tags.size).toBe(2);
});
