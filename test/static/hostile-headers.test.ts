import {
  appendFileSync,
  closeSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:net';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { staticFiles } from '../../middleware/static.ts';
import { bare, listen, makeFolder, raw, rawGet } from './fixture.ts';

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

const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1]);
const bodyOf = (answer: string): string => answer.slice(answer.indexOf('\r\n\r\n') + 4);
const ranges = (count: number, range: (index: number) => string): string =>
  `bytes=${Array.from({ length: count }, (_, index) => range(index)).join(',')}`;

describe('19 targets that are no path', () => {
  it.each([
    ['CONNECT', 'CONNECT evil.com:443 HTTP/1.1'],
    ['an authority', 'GET evil.com:80 HTTP/1.1'],
    ['nothing', 'GET  HTTP/1.1'],
    ['a star', 'GET * HTTP/1.1'],
  ])('%s gets no file', async (_name, line) => {
    const answer = await raw(port, `${line}\r\nHost: x\r\nConnection: close\r\n\r\n`);
    expect(answer).toMatch(/^(HTTP\/1\.1 40[04] |$)/);
  });
});

describe('45-48 ranges', () => {
  it.each([
    ['45 overlapping, 1200 times', ranges(1200, () => '0-'), 200, TEN],
    ['45 apart, 1200 times', ranges(1200, (index) => `${index * 2}-${index * 2}`), 200, TEN],
    ['45 overlapping, few', 'bytes=0-,0-,0-,3-5', 206, TEN],
    ['46 reversed', 'bytes=5-2', 200, TEN],
    ['46 beyond any number', 'bytes=0-99999999999999999999', 206, TEN],
    ['46 in scientific notation', 'bytes=1e1-2', 200, TEN],
    ['46 an empty suffix', 'bytes=-0', 416, undefined],
    ['46 a suffix longer than the file', 'bytes=-99', 206, TEN],
  ])('%s', async (_name, range, status, body) => {
    const answer = await rawGet(port, '/a.txt', `Range: ${range}\r\n`);
    expect(statusOf(answer)).toBe(status);
    if (body !== undefined) expect(bodyOf(answer)).toBe(body);
  });

  it('47 of an empty file cannot be satisfied', async () => {
    const answer = await rawGet(port, '/e.txt', 'Range: bytes=0-\r\n');
    expect(statusOf(answer)).toBe(416);
    expect(answer).toMatch(/^content-range: bytes \*\/0\r$/im);
  });

  it.each([
    ['a date to come', () => 'Fri, 01 Jan 2100 00:00:00 GMT'],
    ['a part of the tag', () => tag.slice(0, -3)],
    ['the tag in its weak form', () => `W/${tag}`],
    ['a list that has the tag', () => `"x", ${tag}`],
  ])('48 after If-Range with %s mean nothing', async (_name, validator) => {
    const answer = await rawGet(port, '/a.txt', `Range: bytes=0-1\r\nIf-Range: ${validator()}\r\n`);
    expect([statusOf(answer), bodyOf(answer)]).toEqual([200, TEN]);
  });
});

describe('49-51 conditions', () => {
  it.each([
    ['49 15 kB of tags', () => '"x",'.repeat(3800), 200],
    ['49 15 kB of tags and then ours', () => `${'"x",'.repeat(3800)}${tag}`, 304],
    ['49 15 kB of commas', () => ','.repeat(15_000), 200],
    ['49 15 kB of quotes', () => '"'.repeat(15_001), 200],
    ['50 a comma inside a tag', () => `"${tag.slice(1, -1)},x"`, 200],
    ['50 no quotes', () => tag.slice(1, -1), 200],
    ['50 weakness alone', () => 'W/', 200],
    ['50 nothing', () => '', 200],
    ['50 an open quote', () => `"x, ${tag.slice(1)}`, 200],
  ])('%s', async (_name, list, status) => {
    expect(statusOf(await rawGet(port, '/a.txt', `If-None-Match: ${list()}\r\n`))).toBe(status);
  });

  it('51 HEAD and 304 have no body and read no file', async () => {
    const head = (more = ''): Promise<string> =>
      raw(port, `HEAD /large.bin HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${more}\r\n`);
    const largeTag = /^etag: (.*)\r$/im.exec(await head())?.[1] as string;
    const before = bytesRead();
    const answers = [
      await head(),
      await head('Range: bytes=0-\r\n'),
      await rawGet(port, '/large.bin', `If-None-Match: ${largeTag}\r\n`),
    ];
    expect(answers.map(statusOf)).toEqual([200, 200, 304]);
    expect(answers.map(bodyOf)).toEqual(['', '', '']);
    expect(bytesRead() - before).toBeLessThan(LARGE / 2);
  });
});

/** Bytes that this process has read, from files and sockets alike. */
function bytesRead(): number {
  return Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1]);
}

describe('58 siblings', () => {
  it('are typed as what they are, and not decoded by browsers', async () => {
    const answer = await rawGet(port, '/a.js.gz', 'Accept-Encoding: gzip, br\r\n');
    expect(answer).toMatch(/^content-type: application\/gzip\r$/im);
    expect(answer).not.toMatch(/^content-encoding:/im);
  });

  it('older than their source are not taken for it', async () => {
    const answer = await rawGet(port, '/stale.js', 'Accept-Encoding: br\r\n');
    expect(bodyOf(answer)).toBe(source);
    expect(answer).not.toMatch(/^content-encoding:/im);
  });
});

it.each([
  ['br;q=0', undefined],
  ['*;q=0, br', 'br'],
  ['*;q=0', 406],
  // What is not listed is not accepted (RFC 9110 §12.5.3).
  ['identity;q=0', 406],
  ['identity;q=0, br;q=0, *', 'gzip'],
  ['identity;q=0, br;q=0, gzip;q=0', 406],
  ['xbr', undefined],
  ['br2, gzip-9', undefined],
] as const)('59 Accept-Encoding: %s', async (accepted, expected) => {
  const answer = await rawGet(port, '/a.js', `Accept-Encoding: ${accepted}\r\n`);
  expect(statusOf(answer)).toBe(expected === 406 ? 406 : 200);
  const coding = /^content-encoding: (.*)\r$/im.exec(answer)?.[1];
  expect(coding).toBe(expected === 406 ? undefined : expected);
});

it('30 a root that is switched to another directory is that one, and contains', async () => {
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

it('34 a file of a virtual file system is what its size says, never more', async () => {
  const own = await listen(bare(staticFiles('/proc/self')));
  for (const target of ['/status', '/maps', '/environ']) {
    const answer = await rawGet(own, target);
    expect([200, 404]).toContain(statusOf(answer));
    if (statusOf(answer) === 200) expect(bodyOf(answer)).toBe('');
  }
});

describe('55 a file that changes while it is sent', () => {
  const size = 20_000_000;

  /** The bytes of a body that is read from the first on, `change` once some of it has arrived. */
  async function receiveDuring(change: (path: string) => void): Promise<number> {
    const folder = makeFolder({ 'a.bin': Buffer.alloc(size, 'x') });
    const own = await listen(bare(staticFiles(folder)));
    const received = await new Promise<number>((resolve) => {
      let bytes = 0;
      let head: number | undefined;
      const socket = connect(own, '127.0.0.1');
      socket.write('GET /a.bin HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
      socket.once('data', () => change(`${folder}/a.bin`));
      socket.on('data', (chunk) => {
        head ??= chunk.indexOf('\r\n\r\n') + 4;
        bytes += chunk.length;
      });
      // A FIN or a reset: cut off is cut off.
      socket.on('error', () => {});
      socket.on('close', () => resolve(bytes - (head ?? 0)));
    });
    expect(statusOf(await rawGet(own, '/none.bin'))).toBe(404);
    return received;
  }

  it('grown: never more than was promised', async () => {
    expect(await receiveDuring((path) => appendFileSync(path, Buffer.alloc(size, 'y')))).toBeLessThanOrEqual(
      size,
    );
  });

  it('shrunk: the connection ends', async () => {
    const received = await receiveDuring((path) => {
      const fd = openSync(path, 'r+');
      ftruncateSync(fd, size / 2);
      closeSync(fd);
    });
    expect(received).toBeLessThan(size);
  });

  it('deleted, or replaced: what was begun is finished', async () => {
    expect(await receiveDuring((path) => rmSync(path))).toBe(size);
    const replaced = await receiveDuring((path) => {
      writeFileSync(`${path}.new`, 'new');
      renameSync(`${path}.new`, path);
    });
    expect(replaced).toBe(size);
  });
});
