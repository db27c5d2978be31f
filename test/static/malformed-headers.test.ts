import {
  appendFileSync,
  closeSync,
  ftruncateSync,
  openSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { staticFiles } from '../../middleware/static.ts';
import { bare, bytesRead, listen, makeFolder, raw, rawGet, receivedBytes } from './fixture.ts';

const TEN = '0123456789';
const LARGE = 3_000_000;
const source = 'let a = 1;\n'.repeat(100);
const root = makeFolder({
  'a.txt': TEN,
  'e.txt': '',
  'dir/index.html': 'index',
  'large.bin': Buffer.alloc(LARGE, 'x'),
  'a.js': source,
  'a.js.br': brotliCompressSync(source),
  'a.js.gz': gzipSync(source),
  'stale.js': source,
  'stale.js.br': brotliCompressSync('alert("planted")'),
});
utimesSync(`${root}/stale.js.br`, 1, 1);
let port: number;
let tag: string;

beforeAll(async () => {
  port = await listen(bare(staticFiles(root, { precompressed: true })));
  tag = /^etag: (.*)\r$/im.exec(await rawGet(port, '/a.txt'))?.[1] as string;
});

const statusOf = (response: string): number => Number(/^HTTP\/1\.1 (\d{3}) /.exec(response)?.[1]);
const bodyOf = (response: string): string => response.slice(response.indexOf('\r\n\r\n') + 4);
const ranges = (count: number, range: (index: number) => string): string =>
  `bytes=${Array.from({ length: count }, (_, index) => range(index)).join(',')}`;

describe('request targets that are not a path', () => {
  it.each([
    ['CONNECT', 'CONNECT evil.com:443 HTTP/1.1'],
    ['an authority', 'GET evil.com:80 HTTP/1.1'],
    ['an empty target', 'GET  HTTP/1.1'],
    ['a star', 'GET * HTTP/1.1'],
  ])('staticFiles sends no file for %s', async (_name, line) => {
    const response = await raw(port, `${line}\r\nHost: x\r\nConnection: close\r\n\r\n`);
    expect(response).toMatch(/^(HTTP\/1\.1 40[04] |$)/);
  });
});

describe('malformed ranges', () => {
  it.each([
    ['overlapping, 1200 times', ranges(1200, () => '0-'), 200, TEN],
    ['apart, 1200 times', ranges(1200, (index) => `${index * 2}-${index * 2}`), 200, TEN],
    ['overlapping, few', 'bytes=0-,0-,0-,3-5', 206, TEN],
    ['reversed', 'bytes=5-2', 200, TEN],
    ['beyond any number', 'bytes=0-99999999999999999999', 206, TEN],
    ['in scientific notation', 'bytes=1e1-2', 200, TEN],
    ['an empty suffix', 'bytes=-0', 416, undefined],
    ['a suffix longer than the file', 'bytes=-99', 206, TEN],
  ])('staticFiles handles ranges that are %s: %.40s, status %i', async (_name, range, status, body) => {
    const response = await rawGet(port, '/a.txt', `Range: ${range}\r\n`);
    expect(statusOf(response)).toBe(status);
    if (body !== undefined) expect(bodyOf(response)).toBe(body);
  });

  it.each([
    ['a date in the future', () => 'Fri, 01 Jan 2100 00:00:00 GMT'],
    ['a part of the tag', () => tag.slice(0, -3)],
    ['the tag in its weak form', () => `W/${tag}`],
    ['a list that has the tag', () => `"x", ${tag}`],
  ])('staticFiles ignores Range after If-Range with %s', async (_name, validator) => {
    const response = await rawGet(port, '/a.txt', `Range: bytes=0-1\r\nIf-Range: ${validator()}\r\n`);
    expect([statusOf(response), bodyOf(response)]).toEqual([200, TEN]);
  });
});

describe('malformed conditions', () => {
  it.each([
    ['15 kB of tags', () => '"x",'.repeat(3800), 200],
    ['15 kB of tags and the current one', () => `${'"x",'.repeat(3800)}${tag}`, 304],
    ['15 kB of commas', () => ','.repeat(15_000), 200],
    ['15 kB of quotes', () => '"'.repeat(15_001), 200],
    ['a comma inside a tag', () => `"${tag.slice(1, -1)},x"`, 200],
    ['no quotes', () => tag.slice(1, -1), 200],
    ['only W/', () => 'W/', 200],
    ['no characters', () => '', 200],
    ['an open quote', () => `"x, ${tag.slice(1)}`, 200],
  ])('staticFiles parses an If-None-Match list with %s', async (_name, list, status) => {
    expect(statusOf(await rawGet(port, '/a.txt', `If-None-Match: ${list()}\r\n`))).toBe(status);
  });

  it('staticFiles sends HEAD and 304 without a body and without reading the file', async () => {
    const head = (more = ''): Promise<string> =>
      raw(port, `HEAD /large.bin HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${more}\r\n`);
    const largeTag = /^etag: (.*)\r$/im.exec(await head())?.[1] as string;
    const before = bytesRead();
    const responses = [
      await head(),
      await head('Range: bytes=0-\r\n'),
      await rawGet(port, '/large.bin', `If-None-Match: ${largeTag}\r\n`),
    ];
    expect(responses.map(statusOf)).toEqual([200, 200, 304]);
    expect(responses.map(bodyOf)).toEqual(['', '', '']);
    expect(bytesRead() - before).toBeLessThan(LARGE / 2);
  });
});

describe('compressed copies', () => {
  it('staticFiles sends a .gz file as application/gzip without Content-Encoding', async () => {
    const response = await rawGet(port, '/a.js.gz', 'Accept-Encoding: gzip, br\r\n');
    expect(response).toMatch(/^content-type: application\/gzip\r$/im);
    expect(response).not.toMatch(/^content-encoding:/im);
  });

  it('staticFiles ignores a compressed copy that is older than its source', async () => {
    const response = await rawGet(port, '/stale.js', 'Accept-Encoding: br\r\n');
    expect(bodyOf(response)).toBe(source);
    expect(response).not.toMatch(/^content-encoding:/im);
  });
});

it.each([
  ['br;q=0', undefined],
  ['*;q=0, br', 'br'],
  ['*;q=0', 406],
  // Codings that are not listed are not acceptable (RFC 9110 §12.5.3).
  ['identity;q=0', 406],
  ['identity;q=0, br;q=0, *', 'gzip'],
  ['identity;q=0, br;q=0, gzip;q=0', 406],
  ['xbr', undefined],
  ['br2, gzip-9', undefined],
] as const)('staticFiles negotiates Accept-Encoding: %s, expected %s', async (accepted, expected) => {
  const response = await rawGet(port, '/a.js', `Accept-Encoding: ${accepted}\r\n`);
  expect(statusOf(response)).toBe(expected === 406 ? 406 : 200);
  const coding = /^content-encoding: (.*)\r$/im.exec(response)?.[1];
  expect(coding).toBe(expected === 406 ? undefined : expected);
});

it('staticFiles contains files in the new target after a linked root is switched', async () => {
  const folder = makeFolder({ 'one/a.txt': 'one', 'two/a.txt': 'two', 'secret.txt': 's' });
  symlinkSync('../secret.txt', `${folder}/two/link.txt`);
  symlinkSync('one', `${folder}/current`);
  const own = await listen(bare(staticFiles(`${folder}/current`)));
  expect(bodyOf(await rawGet(own, '/a.txt'))).toBe('one');
  symlinkSync('two', `${folder}/next`);
  renameSync(`${folder}/next`, `${folder}/current`);
  expect(bodyOf(await rawGet(own, '/a.txt'))).toBe('two');
  expect(statusOf(await rawGet(own, '/link.txt'))).toBe(404);
});

it('staticFiles sends an empty body for a /proc file, whose stat reports no bytes', async () => {
  const own = await listen(bare(staticFiles('/proc/self')));
  for (const target of ['/status', '/maps', '/environ']) {
    const response = await rawGet(own, target);
    expect([200, 404]).toContain(statusOf(response));
    if (statusOf(response) === 200) expect(bodyOf(response)).toBe('');
  }
});

describe('a file that changes while it is sent', () => {
  const size = 20_000_000;

  /** Counts the received bytes of a body; calls `change` when the first bytes have arrived. */
  async function receiveDuring(change: (path: string) => void): Promise<number> {
    const folder = makeFolder({ 'a.bin': Buffer.alloc(size, 'x') });
    const own = await listen(bare(staticFiles(folder)));
    const received = await receivedBytes(own, '/a.bin', () => change(`${folder}/a.bin`));
    expect(statusOf(await rawGet(own, '/none.bin'))).toBe(404);
    return received;
  }

  it('staticFiles never sends more than Content-Length when the file grows', async () => {
    expect(await receiveDuring((path) => appendFileSync(path, Buffer.alloc(size, 'y')))).toBeLessThanOrEqual(
      size,
    );
  });

  it('staticFiles destroys the connection when the file shrinks', async () => {
    const received = await receiveDuring((path) => {
      const fd = openSync(path, 'r+');
      ftruncateSync(fd, size / 2);
      closeSync(fd);
    });
    expect(received).toBeLessThan(size);
  });

  it('staticFiles finishes a response when the file is deleted or replaced', async () => {
    expect(await receiveDuring((path) => rmSync(path))).toBe(size);
    const replaced = await receiveDuring((path) => {
      writeFileSync(`${path}.new`, 'new');
      renameSync(`${path}.new`, path);
    });
    expect(replaced).toBe(size);
  });
});
