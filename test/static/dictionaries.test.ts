/** @tags node */
import { createHash } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import zlib, { brotliDecompressSync } from 'node:zlib';
import { staticFiles } from '../../middleware/static.ts';
import { availableCodings, Dictionaries, patternOf } from '../../src/static/dictionaries.ts';
import { RootDirectory } from '../../src/static/root.ts';
import type { CompressOptions, StaticFilesOptions } from '../../types/static.ts';
import { until as untilTrue } from '../until.ts';
import { bare, get, listen, makeFolder, put, type TestResponse } from './fixture.ts';

/** A bundle of 100 kB; versions differ in a few lines. */
function bundle(version: number): string {
  let state = 7;
  const lines: string[] = [];
  for (let line = 0; line < 2000; line++) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    lines.push(`export function f${state.toString(36)}(a) { return a + ${state}; }`);
  }
  for (const line of [10, 500, 1200]) lines[line] = `console.log('version ${version}, line ${line}');`;
  return lines.join('\n');
}

const [first, second, third] = [1, 2, 3].map(bundle) as [string, string, string];
const sha256 = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('base64');
const IMMUTABLE: StaticFilesOptions = { immutable: /^\/assets\// };

function site(): string {
  return makeFolder({
    'assets/app-11111111.js': first,
    'assets/app-22222222.js': second,
    'assets/other-11111111.js': third,
    'assets/plain.js': second,
    'assets/.app-33333333.js': third,
    'pages/app-22222222.js': second,
  });
}

function serve(
  folder: string,
  compress: CompressOptions = {},
  more: StaticFilesOptions = {},
): Promise<number> {
  const options = { ...IMMUTABLE, compress: { cpuShare: 1, dictionaries: true, ...compress }, ...more };
  return listen(bare(staticFiles(folder, options)));
}

type Headers = Record<string, string>;

/** The headers of a browser that has a dictionary. */
function announce(
  dictionary: string,
  id = 'app-11111111.js',
  accepted = 'gzip, br, zstd, dcb, dcz',
): Headers {
  return {
    'Accept-Encoding': accepted,
    'Available-Dictionary': `:${sha256(dictionary)}:`,
    'Dictionary-ID': `"${id}"`,
    'Sec-Fetch-Site': 'same-origin',
  };
}

/** Repeats a request until its response has one of the codings. */
async function until(coding: string, port: number, path: string, headers: Headers): Promise<TestResponse> {
  for (;;) {
    const response = await get(port, path, headers);
    if (response.headers['content-encoding'] === coding) return response;
    await new Promise((done) => setTimeout(done, 5));
  }
}

/** Waits until all queued work is done, and returns the coding of a request afterwards. */
async function codingAfterWork(
  port: number,
  folder: string,
  path: string,
  headers: Headers,
): Promise<unknown> {
  await get(port, path, headers);
  for (let round = 0; round < 2; round++) {
    const name = `last-${Math.random()}.txt`;
    put(join(folder, name), name.repeat(200));
    await until('gzip', port, `/${name}`, { 'Accept-Encoding': 'gzip' });
    await get(port, path, headers);
  }
  return (await get(port, path, headers)).headers['content-encoding'];
}

const MAGIC: Record<string, string> = { dcb: 'ff444342', dcz: '5e2a4d1820000000' };
const decode: Record<string, (bytes: Buffer, dictionary: Buffer) => Buffer> = {
  dcb: (bytes, dictionary) => brotliDecompressSync(bytes, Object({ dictionary })),
  dcz: (bytes, dictionary) => Object(zlib).zstdDecompressSync(bytes, { dictionary }),
};

function decoded(coding: string, body: Buffer, dictionary: string): string {
  const magic = Buffer.from(MAGIC[coding] as string, 'hex');
  expect(body.subarray(0, magic.length)).toEqual(magic);
  expect(body.subarray(magic.length, magic.length + 32).toString('base64')).toBe(sha256(dictionary));
  return String(decode[coding]?.(body.subarray(magic.length + 32), Buffer.from(dictionary)));
}

describe('names of dictionaries', () => {
  it.each([
    ['app-3f2a91bc.js', 'app-*.js'],
    ['index-Bx7-_a2Q.js', 'index-*.js'],
    ['vendor-react-Bx7-_a2Q.css', 'vendor-react-*.css'],
    ['main.1a2b3c4d.chunk.js', 'main.*.chunk.js'],
    ['main.0123456789abcdef0123.js', 'main.*.js'],
    ['page-0123456789abcdef.js.map', undefined],
    ['3f2a91bc.js', undefined],
    ['app.js', undefined],
    ['a*b-3f2a91bc.js', undefined],
    ['a"b-3f2a91bc.js', undefined],
    ['.app-3f2a91bc.js', undefined],
    [`${'a'.repeat(300)}-3f2a91bc.js`, undefined],
  ])('the pattern of %s is %s', (name, pattern) => {
    expect(patternOf(name)).toBe(pattern);
  });
});

it('dictionaries that do not exist are not work for the queue, and do not replace known ones', async () => {
  const root = new RootDirectory(makeFolder({ 'app-11111111.js': first }));
  const queued = new Set<string>();
  const files = new Dictionaries([root], 1 << 20, [], (key, task) => {
    queued.add(key);
    void task();
  });
  const find = (): unknown => files.find('/app-11111111.js', sha256(first));
  await untilTrue(() => find() !== undefined);
  for (let number = 0; number < 3000; number++) {
    files.find(`/app-${String(number).padStart(8, '0')}.js`, sha256(first));
    // One name is checked at a time.
    if (number % 2 === 0) await stat(root.path);
  }
  expect(find()).toBeDefined();
  expect([...queued]).toEqual(['dictionary /app-11111111.js']);
});

if (availableCodings().length > 0) describe('the compress.dictionaries option', supported);
else describe('the compress.dictionaries option without support of Node', unsupported);

function supported(): void {
  it.each(availableCodings())('staticFiles sends a new version as a difference in %s', async (coding) => {
    const port = await serve(site());
    const plain = await get(port, '/assets/app-11111111.js');
    expect(plain.headers['use-as-dictionary']).toBe('match="app-*.js", id="app-11111111.js"');
    expect(plain.headers.vary).toBe('Accept-Encoding, Available-Dictionary');
    const headers = announce(first, 'app-11111111.js', `br, ${coding}`);
    const response = await until(coding, port, '/assets/app-22222222.js', headers);
    expect(response.headers).toMatchObject({
      vary: 'Accept-Encoding, Available-Dictionary',
      'use-as-dictionary': 'match="app-*.js", id="app-22222222.js"',
      'content-length': String(response.body.length),
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
    });
    expect(response.headers).not.toHaveProperty('accept-ranges');
    expect(response.body.length).toBeLessThan(1000);
    expect(decoded(coding, response.body, first)).toBe(second);
    const head = await get(port, '/assets/app-22222222.js', headers, 'HEAD');
    expect({ ...head.headers, date: '' }).toEqual({ ...response.headers, date: '' });
  });

  it('staticFiles gives each coding with a dictionary a strong ETag, which gives 304', async () => {
    const port = await serve(site());
    const path = '/assets/app-22222222.js';
    const [coding] = availableCodings() as readonly [string];
    const { etag } = (await until(coding, port, path, announce(first))).headers;
    expect(etag).toMatch(/^"[^"]+-dc[bz][^"]*"$/);
    for (const headers of [announce(first), announce(second, 'app-22222222.js')]) {
      for (const known of [`${etag}`, `"other", W/${etag}`]) {
        const response = await get(port, path, { ...headers, 'If-None-Match': known });
        expect([response.status, response.headers.etag]).toEqual([304, etag]);
      }
    }
    // A shared cache may have received the ETag from another client.
    for (const accepted of ['br', 'identity', '*']) {
      const response = await get(port, path, { 'Accept-Encoding': accepted, 'If-None-Match': `${etag}` });
      expect([response.status, String(response.headers['content-encoding'])]).toEqual([
        200,
        expect.not.stringMatching(/^dc/),
      ]);
    }
    // A client may have the same content in another coding.
    const identity = (await get(port, path)).headers.etag as string;
    expect((await get(port, path, { ...announce(first), 'If-None-Match': identity })).status).toBe(304);
    expect((await get(port, path, { ...announce(first), 'If-None-Match': '"other"' })).status).toBe(200);
    const changed = await get(port, path, { ...announce(first), 'If-Match': '"other"' });
    expect(changed.status).toBe(412);
  });

  it('staticFiles sends the file for a malformed If-None-Match that contains an ETag of a difference', async () => {
    const port = await serve(site());
    const path = '/assets/app-22222222.js';
    const identity = (await get(port, path)).headers.etag as string;
    const known = identity.replace(/"$/, `-dcb-${sha256(first).slice(0, 12)}"`);
    const accepted = announce(first, 'app-11111111.js', 'dcb');
    expect((await get(port, path, { ...accepted, 'If-None-Match': known })).status).toBe(304);
    const response = await get(port, path, { ...accepted, 'If-None-Match': `"x,${known}` });
    expect([response.status, response.headers['content-encoding'], response.text]).toEqual([
      200,
      undefined,
      second,
    ]);
  });

  it('staticFiles sends the file for the ETag of a difference when the client has no or another dictionary', async () => {
    const port = await serve(site());
    const path = '/assets/app-22222222.js';
    const [coding] = availableCodings() as readonly [string];
    const known = (await until(coding, port, path, announce(first))).headers.etag as string;
    const { 'Accept-Encoding': _, ...another } = announce(third, 'app-33333333.js');
    for (const dictionary of [{}, { 'Available-Dictionary': ':short:' }, another]) {
      const headers = { 'Accept-Encoding': `${coding}, identity`, 'If-None-Match': known, ...dictionary };
      const response = await get(port, path, headers);
      expect([response.status, response.text]).toEqual([200, second]);
    }
  });

  it.each<[string, Headers]>([
    ['no dictionary is announced', { 'Accept-Encoding': 'br, dcb, dcz' }],
    ['the hash is not that of the file', announce(third)],
    ['no file has the identifier', announce(first, 'app-99999999.js')],
    ['the identifier has another pattern', announce(third, 'other-11111111.js')],
    ['the identifier leads to another directory', announce(second, '../pages/app-22222222.js')],
    ['the identifier is a dotfile', announce(third, '.app-33333333.js')],
    ['the identifier is missing', { ...announce(first), 'Dictionary-ID': '' }],
    ['the client names no coding with a dictionary', announce(first, 'app-11111111.js', 'br, *')],
    ['the client refuses the codings', announce(first, 'app-11111111.js', 'dcb;q=0, dcz;q=0')],
    ['the hash is malformed', { ...announce(first), 'Available-Dictionary': sha256(first) }],
    ['the page is of another origin', { ...announce(first), 'Sec-Fetch-Site': 'cross-site' }],
    ['the page is of another origin of the site', { ...announce(first), 'Sec-Fetch-Site': 'same-site' }],
  ])('staticFiles sends no difference when %s', async (_, headers) => {
    const folder = site();
    const port = await serve(folder, { codings: ['gzip'] });
    expect(String(await codingAfterWork(port, folder, '/assets/app-22222222.js', headers))).not.toMatch(
      /^dc/,
    );
  });

  it('staticFiles sends ranges of the file itself to a client with a dictionary', async () => {
    const port = await serve(site());
    const path = '/assets/app-22222222.js';
    await until(availableCodings()[0] as string, port, path, announce(first));
    const range = await get(port, path, { ...announce(first), Range: 'bytes=7-11' });
    expect([range.status, range.text]).toEqual([206, second.slice(7, 12)]);
    expect(range.headers).not.toHaveProperty('content-encoding');
  });

  it.each<[string, string, StaticFilesOptions]>([
    ['is not immutable', '/pages/app-22222222.js', {}],
    ['has no hash in its name', '/assets/plain.js', {}],
    ['is private', '/assets/app-11111111.js', { cacheControl: 'private, max-age=60, immutable' }],
  ])('staticFiles offers no dictionary when the file %s', async (_, path, more) => {
    const { headers } = await get(await serve(site(), {}, more), path);
    expect(headers).not.toHaveProperty('use-as-dictionary');
    expect(headers.vary).toBe('Accept-Encoding');
  });

  it.each(['private, max-age=31536000, immutable', 'no-store', 'no-cache'])(
    'staticFiles announces and sends no differences of a file that other code has made %j',
    async (value) => {
      const folder = site();
      const setHeaders = (res: ServerResponse): void => void res.setHeader('Cache-Control', value);
      const path = '/assets/app-22222222.js';
      const open = await serve(folder);
      await until(availableCodings()[0] as string, open, path, announce(first));
      const port = await serve(folder, {}, { setHeaders });
      const { headers } = await get(port, path, announce(first));
      expect(headers).not.toHaveProperty('use-as-dictionary');
      expect(await codingAfterWork(port, folder, path, announce(first))).not.toMatch(/^dc/);
    },
  );

  it('staticFiles finds earlier versions in directories of previous builds', async () => {
    const previous = makeFolder({ 'assets/app-11111111.js': first });
    const folder = makeFolder({ 'assets/app-22222222.js': second });
    const missing = join(tmpdir(), 'espalier-no-such-build');
    const port = await serve(folder, { dictionaries: [missing, previous] });
    const response = await until(
      availableCodings()[0] as string,
      port,
      '/assets/app-22222222.js',
      announce(first),
    );
    expect(decoded(String(response.headers['content-encoding']), response.body, first)).toBe(second);
  });

  it('staticFiles sends no difference to a dictionary whose bytes have changed', async () => {
    const folder = site();
    const port = await serve(folder, { codings: ['gzip'] });
    const path = '/assets/app-22222222.js';
    await get(port, path, announce(first));
    await codingAfterWork(port, folder, '/assets/plain.js', {});
    writeFileSync(join(folder, 'assets/app-11111111.js'), third);
    expect(String(await codingAfterWork(port, folder, path, announce(first)))).not.toMatch(/^dc/);
    rmSync(join(folder, 'assets/app-11111111.js'));
    expect(String(await codingAfterWork(port, folder, path, announce(first)))).not.toMatch(/^dc/);
  });

  it('staticFiles sends differences for files that have compressed copies', async () => {
    const folder = site();
    put(join(folder, 'assets/app-22222222.js.gz'), zlib.gzipSync(second));
    const port = await serve(folder, {}, { precompressed: true });
    const path = '/assets/app-22222222.js';
    const response = await until(availableCodings()[0] as string, port, path, announce(first));
    expect(decoded(String(response.headers['content-encoding']), response.body, first)).toBe(second);
    const copy = await get(port, path, { 'Accept-Encoding': 'gzip, br' });
    expect(copy.headers['content-encoding']).toBe('gzip');
    expect(copy.headers.vary).toBe('Accept-Encoding, Available-Dictionary');
  });
}

function unsupported(): void {
  it('staticFiles logs once that this version of Node cannot compress with dictionaries', async () => {
    const warn = jest.spyOn(console, 'warn').mockImplementation(() => undefined);
    const ports = [await serve(site()), await serve(site())];
    const messages = warn.mock.calls.map(([message]) => message);
    warn.mockRestore();
    expect(messages).toEqual([
      expect.stringContaining(`has no effect with Node ${process.version}: it needs Node 22.19`),
    ]);
    const { headers } = await get(ports[0] as number, '/assets/app-11111111.js', announce(second));
    expect(headers).not.toHaveProperty('use-as-dictionary');
    expect(headers.vary).toBe('Accept-Encoding');
  });
}
