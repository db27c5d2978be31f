/** @tags node */
import { once } from 'node:events';
import { request } from 'node:http';
import { connect, createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { staticFiles } from '../../middleware/static.ts';
import type { StaticSource } from '../../types/sources.ts';
import { until } from '../until.ts';
import { bare, get, listen } from './fixture.ts';

/** A source with one file, which `open` reads. */
function sourceOf(size: number, open: StaticSource['open']): StaticSource {
  return {
    stat: (path) => (path === '/a.txt' ? { size, version: '1' } : undefined),
    open,
    list: () => ['/a.txt'],
  };
}

const size = 20 << 20;
const streamed = { cache: false, etag: 'stat' } as const;

/** A stream that sends some bytes and then stays open. */
function stalledStream(first: Buffer | undefined): Readable {
  const stream = new Readable({ read: () => undefined });
  if (first !== undefined) stream.push(first);
  return stream;
}

describe('a source that stalls', () => {
  it.each([
    ['before the first bytes', undefined],
    ['after the first bytes', Buffer.alloc(1000)],
  ])('staticFiles destroys its stream when the client disconnects %s', async (_name, first) => {
    const opened: Readable[] = [];
    const source = sourceOf(size, () => {
      opened.push(stalledStream(first));
      return opened[0] as Readable;
    });
    const port = await listen(bare(staticFiles(source, streamed)));
    const req = request({ port, path: '/a.txt' }).on('error', () => undefined);
    req.end();
    await (first === undefined ? until(() => opened.length > 0) : once(req, 'response'));
    expect(opened[0]?.destroyed).toBe(false);
    req.destroy();
    await until(() => opened[0]?.destroyed === true);
  });

  it('staticFiles destroys a stream that is opened after the client has disconnected', async () => {
    const stream = stalledStream(undefined);
    let open: (stream: Readable) => void = () => undefined;
    let isOpening = false;
    let isClosed = false;
    const serve = staticFiles(
      sourceOf(size, () => {
        isOpening = true;
        return new Promise((resolve) => {
          open = resolve;
        });
      }),
      streamed,
    );
    const port = await listen((req, res) => {
      res.once('close', () => {
        isClosed = true;
      });
      serve(req, res, () => undefined);
    });
    const req = request({ port, path: '/a.txt' }).on('error', () => undefined);
    req.end();
    await until(() => isOpening);
    req.destroy();
    await until(() => isClosed);
    open(stream);
    await until(() => stream.destroyed);
  });

  it('staticFiles reads a file again for requests that arrive 30 seconds after a read that never ends', async () => {
    let opened = 0;
    const source = sourceOf(5, () => (opened++ === 0 ? new Promise(() => undefined) : Buffer.from('hello')));
    const port = await listen(bare(staticFiles(source)));
    const stalled = request({ port, path: '/a.txt' }).on('error', () => undefined);
    stalled.end();
    await until(() => opened === 1);
    const now = performance.now.bind(performance);
    const clock = jest.spyOn(performance, 'now').mockImplementation(() => now() + 31_000);
    expect((await get(port, '/a.txt')).text).toBe('hello');
    clock.mockRestore();
    expect((await get(port, '/a.txt')).text).toBe('hello');
    expect(opened).toBe(2);
    stalled.destroy();
  });
});

it('staticFiles sends 503 for a large file whose source sends more bytes than it has, and stops reading', async () => {
  let chunks = 0;
  const source = sourceOf(1 << 20, async function* () {
    for (let i = 0; i < 1000; i++) {
      chunks++;
      yield Buffer.alloc(60_000);
    }
  });
  const port = await listen(bare(staticFiles(source)));
  expect((await get(port, '/a.txt')).status).toBe(503);
  // The file is read several times, because it may have been replaced.
  expect(chunks).toBeLessThan(1000);
});

it('staticFiles splits large chunks of a source, so that slow downloads do not fill an HTTP/2 session', async () => {
  const chunk = Buffer.alloc(size);
  const serve = staticFiles(
    sourceOf(size, () => Readable.from([chunk])),
    streamed,
  );
  const server = createServer(bare(serve) as never);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  try {
    for (let i = 0; i < 4; i++) {
      const download = session.request({ ':path': '/a.txt' });
      download.on('error', () => undefined);
      await once(download, 'response');
    }
    const [headers] = await once(session.request({ ':path': '/other.txt' }), 'response');
    expect(headers[':status']).toBe(404);
  } finally {
    session.destroy();
    server.close();
  }
});
