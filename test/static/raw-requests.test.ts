import {
  appendFileSync,
  closeSync,
  ftruncateSync,
  openSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { staticFiles } from '../../middleware/static.ts';
import { bare, bytesRead, listen, makeFolder, raw, rawGet, receivedBytes } from './fixture.ts';

const TEN = '0123456789';
const LARGE = 3_000_000;
const root = makeFolder({
  'a.txt': TEN,
  'dir/index.html': 'index',
  'large.bin': Buffer.alloc(LARGE, 'x'),
});
let port: number;

beforeAll(async () => {
  port = await listen(bare(staticFiles(root)));
});

const statusOf = (response: string): number => Number(/^HTTP\/1\.1 (\d{3}) /.exec(response)?.[1]);
const bodyOf = (response: string): string => response.slice(response.indexOf('\r\n\r\n') + 4);
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

describe('responses without a body', () => {
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
