/** @tags node-lines */
import { readFileSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import * as zlib from 'node:zlib';
import { brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib';
import { staticFiles } from '../../middleware/static.ts';
import { MEMORY } from '../../src/static/compress.ts';
import type { StaticFilesOptions } from '../../types/static.ts';
import { atEnd } from '../kit.ts';
import { bare, get, listen, makeFolder, put, type TestResponse } from './fixture.ts';

const js = 'export const result = 42;\n'.repeat(400);
const root = makeFolder({
  'app.js': js,
  'data.json': JSON.stringify(Array.from({ length: 300 }, (_, id) => ({ id, name: `name ${id}` }))),
  'icon.svg': `<svg>${'<g/>'.repeat(600)}</svg>`,
  'large.txt': 'a line of text that repeats\n'.repeat(20_000),
  'small.js': 'let a = 1;\n',
  'photo.png': Buffer.alloc(4000),
  'font.woff2': Buffer.alloc(4000),
  'noise.txt': Buffer.from(Array.from({ length: 4000 }, (_, i) => 32 + ((i * i * 7919) % 95) + 0)),
  'with-copy.js': js,
  'with-copy.js.gz': gzipSync(js, { level: 1 }),
  'index.html': `<!doctype html>${'<p>home</p>'.repeat(200)}`,
  '404.html': `<!doctype html>${'<p>not found</p>'.repeat(200)}`,
});
// Random characters do not become much smaller.
writeFileSync(join(root, 'noise.txt'), Buffer.from(crypto.getRandomValues(new Uint8Array(4000))));

const decode: Record<string, (bytes: Buffer) => Buffer> = {
  br: brotliDecompressSync,
  gzip: gunzipSync,
  zstd: (bytes) => Object(zlib).zstdDecompressSync(bytes),
};

function serve(options: StaticFilesOptions = {}, folder = root): Promise<number> {
  return listen(bare(staticFiles(folder, { compress: true, ...options })));
}

type Headers = Record<string, string>;

/** Repeats a request until its response has a coding. */
async function untilCoded(
  port: number,
  path: string,
  accepted: string,
  more: Headers = {},
): Promise<TestResponse> {
  for (;;) {
    const response = await get(port, path, { 'Accept-Encoding': accepted, ...more });
    if (response.headers['content-encoding'] !== undefined) return response;
    await new Promise((done) => setTimeout(done, 5));
  }
}

/** Waits until all queued work is done: a file that is queued last is ready. */
async function untilIdle(port: number, folder: string): Promise<void> {
  const name = `last-${Math.random()}.txt`;
  put(join(folder, name), name.repeat(200));
  await untilCoded(port, `/${name}`, 'gzip');
}

describe('the compress option', () => {
  it.each(['br', 'gzip', ...('zstdCompressSync' in zlib ? ['zstd'] : [])])(
    'staticFiles sends the file itself first, and %s when it is ready',
    async (coding) => {
      const port = await serve();
      const first = await get(port, '/app.js', { 'Accept-Encoding': coding });
      expect(first.headers).not.toHaveProperty('content-encoding');
      expect(first.text).toBe(js);
      expect(first.headers.vary).toBe('Accept-Encoding');
      const coded = await untilCoded(port, '/app.js', coding);
      expect(coded.headers).toMatchObject({
        'content-encoding': coding,
        'content-length': String(coded.body.length),
        'content-type': 'text/javascript; charset=utf-8',
        'cache-control': 'public, max-age=0',
        vary: 'Accept-Encoding',
      });
      expect(coded.headers).not.toHaveProperty('accept-ranges');
      expect(coded.body.length).toBeLessThan(js.length / 10);
      expect(decode[coding]?.(coded.body).toString()).toBe(js);
      const head = await get(port, '/app.js', { 'Accept-Encoding': coding }, 'HEAD');
      expect({ ...head.headers, date: '' }).toEqual({ ...coded.headers, date: '' });
    },
  );

  it('staticFiles gives each coding a strong ETag, which gives 304', async () => {
    const port = await serve();
    const tags = [(await get(port, '/app.js')).headers.etag as string];
    for (const coding of ['br', 'gzip'])
      tags.push((await untilCoded(port, '/app.js', coding)).headers.etag as string);
    expect(new Set(tags).size).toBe(3);
    for (const tag of tags) expect(tag).toMatch(/^"/);
    for (const [index, accepted] of ['identity', 'br', 'gzip'].entries()) {
      const headers = { 'Accept-Encoding': accepted, 'If-None-Match': tags[index] as string };
      const response = await get(port, '/app.js', headers);
      expect([response.status, response.headers.etag]).toEqual([304, tags[index]]);
      const match = await get(port, '/app.js', {
        'Accept-Encoding': accepted,
        'If-Match': tags[index] as string,
      });
      expect(match.status).toBe(200);
    }
    const other = await get(port, '/app.js', {
      'Accept-Encoding': 'gzip',
      'If-None-Match': tags[1] as string,
    });
    expect([other.status, other.headers['content-encoding']]).toEqual([200, 'gzip']);
  });

  it('staticFiles sends 304 for the ETag of a coding that another process has compressed', async () => {
    const etag = (await untilCoded(await serve(), '/app.js', 'br')).headers.etag as string;
    const port = await serve();
    const headers = { 'Accept-Encoding': 'br', 'If-None-Match': `"other", ${etag}` };
    const response = await get(port, '/app.js', headers);
    expect([response.status, response.headers.etag, response.headers.vary]).toEqual([
      304,
      etag,
      'Accept-Encoding',
    ]);
    const failed = await get(port, '/app.js', { ...headers, 'If-Match': '"other"' });
    expect(failed.status).toBe(412);
  });

  it('staticFiles sends 304 to a client that has the file itself', async () => {
    const port = await serve();
    const etag = (await get(port, '/app.js')).headers.etag as string;
    await untilCoded(port, '/app.js', 'br');
    const response = await get(port, '/app.js', { 'Accept-Encoding': 'br', 'If-None-Match': etag });
    expect([response.status, response.headers.etag]).toEqual([304, etag]);
    const modified = (await get(port, '/app.js')).headers['last-modified'] as string;
    expect(
      (await get(port, '/app.js', { 'Accept-Encoding': 'br', 'If-Modified-Since': modified })).status,
    ).toBe(304);
  });

  it('staticFiles sends ranges of the file itself', async () => {
    const port = await serve();
    const { headers } = await untilCoded(port, '/app.js', 'br');
    for (const more of [{}, { 'If-Range': (await get(port, '/app.js')).headers.etag as string }]) {
      const range = await get(port, '/app.js', { 'Accept-Encoding': 'br', Range: 'bytes=7-11', ...more });
      expect([range.status, range.text]).toEqual([206, js.slice(7, 12)]);
      expect(range.headers).not.toHaveProperty('content-encoding');
      expect(range.headers.vary).toBe('Accept-Encoding');
    }
    const changed = { 'Accept-Encoding': 'br', Range: 'bytes=7-11', 'If-Range': headers.etag as string };
    expect(await get(port, '/app.js', changed)).toMatchObject({ status: 200, text: js });
    const refused = { 'Accept-Encoding': 'br, identity;q=0', Range: 'bytes=7-11' };
    expect((await get(port, '/app.js', refused)).headers['content-encoding']).toBe('br');
  });

  it.each([
    ['gzip, deflate, br', 'br'],
    ['gzip;q=1, br;q=0.5', 'gzip'],
    ['*', 'br'],
    ['br;q=0, zstd;q=0, *', 'gzip'],
  ])('staticFiles selects the coding for Accept-Encoding %s: %s', async (accepted, coding) => {
    const port = await serve();
    expect((await untilCoded(port, '/data.json', accepted)).headers['content-encoding']).toBe(coding);
  });

  it.each(['deflate', 'br;q=0', 'identity', 'identity, br;q=0.5', 'xbr'])(
    'staticFiles sends the file itself for Accept-Encoding %s',
    async (accepted) => {
      const port = await serve();
      for (const coding of ['br', 'gzip']) await untilCoded(port, '/data.json', coding);
      const { headers } = await get(port, '/data.json', { 'Accept-Encoding': accepted });
      expect(headers).not.toHaveProperty('content-encoding');
      expect(headers.vary).toBe('Accept-Encoding');
    },
  );

  it('staticFiles sends 406 when the client accepts neither the file itself nor a coding that is ready', async () => {
    const port = await serve();
    const headers = { 'Accept-Encoding': 'gzip, identity;q=0' };
    const refused = await get(port, '/icon.svg', headers);
    expect([refused.status, refused.headers.vary]).toEqual([406, 'Accept-Encoding']);
    expect((await untilCoded(port, '/icon.svg', headers['Accept-Encoding'])).status).toBe(200);
    expect((await get(port, '/icon.svg', { 'Accept-Encoding': '*;q=0' })).status).toBe(406);
  });

  it('staticFiles sends another coding while the preferred one is not ready', async () => {
    const port = await serve();
    await untilCoded(port, '/large.txt', 'gzip');
    const { headers } = await get(port, '/large.txt', { 'Accept-Encoding': 'gzip, br' });
    expect(headers['content-encoding']).toBe('gzip');
  });

  it.each([
    ['a small file', '/small.js'],
    ['an image', '/photo.png'],
    ['a compressed font', '/font.woff2'],
  ])('staticFiles does not compress %s and sends no Vary', async (_what, path) => {
    const port = await serve();
    for (let i = 0; i < 2; i++) {
      const { headers } = await get(port, path, { 'Accept-Encoding': 'br' });
      expect(headers).not.toHaveProperty('content-encoding');
      expect(headers).not.toHaveProperty('vary');
      await untilIdle(port, root);
    }
  });

  it('staticFiles sends a file itself that does not become smaller', async () => {
    const port = await serve();
    for (let i = 0; i < 2; i++) {
      const response = await get(port, '/noise.txt', { 'Accept-Encoding': 'gzip' });
      expect(response.headers).not.toHaveProperty('content-encoding');
      expect(response.body.length).toBe(4000);
      await untilIdle(port, root);
    }
  });

  it('staticFiles prefers compressed copies on disk', async () => {
    const port = await serve({ precompressed: true });
    const { body, headers } = await get(port, '/with-copy.js', { 'Accept-Encoding': 'br, gzip' });
    expect(headers['content-encoding']).toBe('gzip');
    expect(body.equals(gzipSync(js, { level: 1 }))).toBe(true);
  });

  it('staticFiles compresses the new content of a file that changes', async () => {
    const folder = makeFolder({ 'a.css': 'a { color: red }\n'.repeat(100) });
    const port = await serve({}, folder);
    const first = await untilCoded(port, '/a.css', 'br');
    put(join(folder, 'a.css'), 'a { color: blue }\n'.repeat(100));
    const changed = await get(port, '/a.css', { 'Accept-Encoding': 'br' });
    expect(changed.text).toContain('blue');
    const second = await untilCoded(port, '/a.css', 'br');
    expect(brotliDecompressSync(second.body).toString()).toContain('blue');
    expect(second.headers.etag).not.toBe(first.headers.etag);
    put(join(folder, 'a.css'), 'a { color: red }\n'.repeat(100));
    const again = await get(port, '/a.css', { 'Accept-Encoding': 'br' });
    expect(again.headers.etag).toBe(first.headers.etag);
    expect(again.headers['content-encoding']).toBe('br');
  });

  it('staticFiles compresses equal content once for all paths', async () => {
    const folder = makeFolder({ 'a.txt': js, 'b.txt': js });
    const port = await serve({}, folder);
    await untilCoded(port, '/a.txt', 'br');
    const { headers } = await get(port, '/b.txt', { 'Accept-Encoding': 'br' });
    expect(headers['content-encoding']).toBe('br');
  });

  it.each<[string, StaticFilesOptions, RegExp | undefined]>([
    ["etag: 'stat'", { etag: 'stat' }, /^(W\/)?"[^"]+-br/],
    ['etag: false', { etag: false }, undefined],
    ['cache: false', { cache: false }, /^"[^"]+-br/],
  ])('staticFiles compresses with %s', async (_name, options, etag) => {
    const port = await serve(options);
    const { headers, body } = await untilCoded(port, '/large.txt', 'br');
    if (etag === undefined) expect(headers).not.toHaveProperty('etag');
    else expect(headers.etag).toMatch(etag);
    expect(brotliDecompressSync(body).length).toBe(560_000);
  });

  it('staticFiles sends the notFound page compressed with status 404', async () => {
    const port = await serve({ notFound: '404.html', fallback: 'index.html' });
    const page = await untilCoded(port, '/none.png', 'gzip', { 'Sec-Fetch-Mode': 'navigate' });
    expect([page.status, gunzipSync(page.body).toString()]).toEqual([
      404,
      readFileSync(`${root}/404.html`, 'utf8'),
    ]);
    const route = await untilCoded(port, '/route', 'gzip', { 'Sec-Fetch-Mode': 'navigate' });
    expect([route.status, route.headers.vary]).toEqual([200, 'Accept, Sec-Fetch-Mode, Accept-Encoding']);
  });

  it('staticFiles evaluates conditions with an ETag that setHeaders sets', async () => {
    const port = await serve({ setHeaders: (res) => void res.setHeader('ETag', '"mine"') });
    await untilCoded(port, '/app.js', 'br');
    const own = await get(port, '/app.js', { 'Accept-Encoding': 'br', 'If-None-Match': '"mine"' });
    expect(own.status).toBe(304);
    const tag = (await untilCoded(await serve(), '/app.js', 'br')).headers.etag as string;
    const ours = await get(port, '/app.js', { 'Accept-Encoding': 'br', 'If-None-Match': tag });
    expect([ours.status, ours.headers['content-encoding']]).toEqual([200, 'br']);
  });

  it('staticFiles weakens an ETag that setHeaders sets for a compressed body, from a copy too, and keeps a weak one', async () => {
    const folder = makeFolder({
      'app.js': readFileSync(`${root}/app.js`),
      'copy.js': randomText(3000, 1),
      'copy.js.gz': gzipSync(randomText(3000, 1)),
    });
    for (const tag of ['"mine"', 'W/"mine"']) {
      const setHeaders = (res: ServerResponse) => void res.setHeader('ETag', tag);
      const port = await serve({ setHeaders, precompressed: true }, folder);
      for (const [path, coding] of [
        ['/app.js', 'br'],
        ['/copy.js', 'gzip'],
      ] as const) {
        expect((await untilCoded(port, path, coding)).headers.etag).toBe('W/"mine"');
        expect((await get(port, path)).headers.etag).toBe(tag);
        const accept = { 'Accept-Encoding': coding };
        const known = await get(port, path, { ...accept, 'If-None-Match': '"mine"' });
        expect([known.status, known.headers.etag]).toEqual([304, 'W/"mine"']);
        // A part of the file itself must not be joined with one of its coding.
        const rest = await get(port, path, { ...accept, Range: 'bytes=10-', 'If-Range': '"mine"' });
        expect(rest.headers['content-encoding'] === coding && rest.status === 206).toBe(false);
      }
    }
  });

  it('staticFiles keeps a limited number of bytes of compressed bodies, and does not evict those in use', async () => {
    const folder = makeFolder(
      Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`${i}.txt`, randomText(6000, i)])),
    );
    const { maxBytes } = MEMORY;
    atEnd(() => Object.assign(MEMORY, { maxBytes }));
    MEMORY.maxBytes = 12_000;
    const port = await serve({}, folder);
    const first = await untilCoded(port, '/0.txt', 'br');
    for (let i = 1; i < 8; i++) await get(port, `/${i}.txt`, { 'Accept-Encoding': 'br' });
    await new Promise((done) => setTimeout(done, 300));
    const codings: unknown[] = [];
    for (let i = 0; i < 8; i++) {
      const { headers } = await get(port, `/${i}.txt`, { 'Accept-Encoding': 'br' });
      codings.push(headers['content-encoding']);
    }
    expect(codings[0]).toBe('br');
    const stored = codings.filter((coding) => coding === 'br').length;
    expect(stored * first.body.length).toBeLessThanOrEqual(12_000);
    expect(stored).toBeLessThan(8);
  });
});

/** Letters in an order that depends on the seed: text that compresses to about half. */
function randomText(length: number, seed: number): string {
  let state = seed + 1;
  return Array.from({ length }, () => {
    state = (state * 48_271) % 2_147_483_647;
    return String.fromCharCode(97 + (state % 20));
  }).join('');
}
