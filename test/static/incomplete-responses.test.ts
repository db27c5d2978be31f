/** @tags once slow */
import { once } from 'node:events';
import fs, { truncateSync } from 'node:fs';
import { connect, createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import compression from 'compression';
import type { StaticSource } from '../../middleware/sources.ts';
import { staticFiles } from '../../middleware/static.ts';
import type { Middleware } from '../../types/connect.ts';
import { until } from '../until.ts';
import { bare, get, listen, makeFolder } from './fixture.ts';

const size = 8 << 20;
const content = Buffer.from(Array.from({ length: size }, (_, index) => (index * index * 31) % 251));

/** Requests a file over HTTP/2; returns the code with which the stream was reset. */
async function resetCode(middleware: Middleware, onFirstBytes: () => void): Promise<number> {
  const server = createServer(bare(middleware) as never);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  try {
    const stream = session.request({ ':path': '/a.txt', 'accept-encoding': 'gzip' });
    stream.once('data', onFirstBytes);
    stream.on('data', () => undefined);
    stream.on('error', () => undefined);
    await new Promise<void>((resolve) => stream.once('close', resolve));
    return stream.rstCode;
  } finally {
    session.destroy();
    server.close();
  }
}

/** Runs `compression` before a middleware: then the response has no Content-Length. */
function compressed(serve: Middleware): Middleware {
  const compress = compression();
  return (req, res, next) => compress(req as never, res as never, () => serve(req, res, next));
}

const unchanged = (middleware: Middleware): Middleware => middleware;

const INTERNAL_ERROR = 2;

describe.each([
  ['with Content-Length', unchanged],
  ['without Content-Length', compressed],
])('an incomplete response over HTTP/2 %s', (_name, wrap) => {
  it('staticFiles resets the stream with an error if a file is truncated during its response', async () => {
    const root = makeFolder({ 'a.txt': content });
    const truncate = (): void => truncateSync(join(root, 'a.txt'), 10);
    expect(await resetCode(wrap(staticFiles(root, { cache: false })), truncate)).toBe(INTERNAL_ERROR);
  });

  it('staticFiles resets the stream with an error if a source fails during its response', async () => {
    const source: StaticSource = {
      stat: (path) => (path === '/a.txt' ? { size, version: '1' } : undefined),
      async *open() {
        yield content.subarray(0, size / 2);
        await new Promise((resolve) => setTimeout(resolve, 20));
        throw new Error('the connection to the store was lost');
      },
      list: () => ['/a.txt'],
    };
    const serve = staticFiles(source, { cache: false, etag: 'stat' });
    expect(await resetCode(wrap(serve), () => undefined)).toBe(INTERNAL_ERROR);
  });
});

it('staticFiles destroys the connection when fstat fails before the last bytes of a file', async () => {
  const root = makeFolder({ 'a.txt': content });
  const port = await listen(bare(staticFiles(root, { cache: false })));
  expect((await get(port, '/a.txt')).body.equals(content)).toBe(true);
  // The kernel has shut down the file system of the descriptors of this response.
  const { fstatSync } = fs;
  let failures = 0;
  jest.spyOn(fs, 'fstatSync').mockImplementation(((...given: Parameters<typeof fstatSync>) => {
    if (failures++ === 0) return fstatSync(...given);
    throw Object.assign(new Error('EIO: i/o error, fstat'), { code: 'EIO' });
  }) as typeof fstatSync);
  await expect(get(port, '/a.txt')).rejects.toThrow('aborted');
  jest.restoreAllMocks();
  await until(() => failures >= 2);
  expect((await get(port, '/a.txt')).body.equals(content)).toBe(true);
});
