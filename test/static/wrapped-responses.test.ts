/** @tags node-lines */
import { writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync, inflateSync } from 'node:zlib';
import compression from 'compression';
import session from 'express-session';
import { memoryFiles } from '../../middleware/sources.ts';
import { staticFiles } from '../../middleware/static.ts';
import { eachExpress } from '../express.ts';
import { bare, get, listen, makeFolder } from './fixture.ts';

// Several read buffers, which hold 512 KiB.
const large = 'a line of text that repeats\n'.repeat(100_000);
const files = { 'large.txt': large, 'large.bin': Buffer.alloc(3_000_000, 'bytes '), 'small.txt': 'small' };
const root = makeFolder(files);

const decoders = new Map<unknown, (bytes: Buffer) => Buffer>([
  ['gzip', gunzipSync],
  ['br', brotliDecompressSync],
  ['deflate', inflateSync],
  [undefined, (bytes) => bytes],
]);

eachExpress((express) => {
  describe.each([
    ['a directory', root],
    ['a source', memoryFiles(files)],
  ])('staticFiles with %s after compression', (_name, source) => {
    it.each(['gzip', 'br', 'deflate', 'identity'])(
      'staticFiles sends whole files to a client that accepts %s',
      async (coding) => {
        const app = express().use(compression(), staticFiles(source));
        const port = await listen(app);
        for (const [name, content] of Object.entries(files)) {
          const { status, headers, body } = await get(port, `/${name}`, { 'Accept-Encoding': coding });
          const decode = decoders.get(headers['content-encoding']);
          expect([name, status, decode?.(body).equals(Buffer.from(content))]).toEqual([name, 200, true]);
        }
      },
    );
  });

  it('staticFiles sends a large file in full after compression and express-session', async () => {
    const options = { secret: 'x', resave: true, saveUninitialized: true };
    const app = express().use(session(options), compression(), staticFiles(root));
    const { body } = await get(await listen(app), '/large.txt', { 'Accept-Encoding': 'gzip' });
    expect(gunzipSync(body).toString()).toBe(large);
  });
});

it('staticFiles listens once for the drain of a large file that compression wraps', async () => {
  let listeners = 0;
  const source = makeFolder({ 'huge.txt': large.repeat(4) });
  const compress = compression();
  const serve = staticFiles(source);
  const port = await listen((req, res) =>
    compress(req as never, res as never, () => {
      const { on } = res;
      res.on = ((name: string, listener: () => void) => {
        if (name === 'drain') listeners++;
        return on.call(res, name, listener);
      }) as never;
      serve(req, res, () => undefined);
    }),
  );
  const { body } = await get(port, '/huge.txt', { 'Accept-Encoding': 'gzip' });
  expect(gunzipSync(body).length).toBe(large.length * 4);
  expect(listeners).toBe(1);
});

it.each<[string, (res: ServerResponse) => void]>([
  [
    'returns nothing',
    (res) => {
      const { write } = res;
      res.write = ((...given: Parameters<typeof write>) => void write.apply(res, given)) as never;
    },
  ],
  [
    'drops the callback',
    (res) => {
      const { write } = res;
      res.write = ((chunk: Buffer) => write.call(res, chunk, 'utf8')) as never;
    },
  ],
  [
    'collects the body and writes it at the end',
    (res) => {
      const { end } = res;
      const chunks: Buffer[] = [];
      res.write = ((chunk: Buffer) => chunks.push(chunk) > 0) as never;
      res.end = ((chunk: Buffer) => end.call(res, Buffer.concat([...chunks, chunk]), 'utf8')) as never;
    },
  ],
])(
  'staticFiles sends a large file in full when middleware replaces write with a function that %s',
  async (_name, wrap) => {
    const serve = bare(staticFiles(root));
    const port = await listen((req, res) => {
      wrap(res);
      serve(req, res);
    });
    expect((await get(port, '/large.bin')).body.equals(files['large.bin'])).toBe(true);
    const range = await get(port, '/large.bin', { Range: 'bytes=100-2000099' });
    expect([range.status, range.body.equals(files['large.bin'].subarray(100, 2_000_100))]).toEqual([
      206,
      true,
    ]);
    const parts = await get(port, '/large.bin', { Range: 'bytes=0-999999,2000000-2999999' });
    expect([parts.status, parts.body.length]).toEqual([206, Number(parts.headers['content-length'])]);
  },
);

it('staticFiles sends no range that compression would compress', async () => {
  const port = await listen((req, res) =>
    compression({ threshold: 0 })(req as never, res as never, () => bare(staticFiles(root))(req, res)),
  );
  const range = { Range: 'bytes=0-9999' };
  for (const accepted of ['gzip', '*;q=0.5']) {
    const compressed = await get(port, '/large.bin', { ...range, 'Accept-Encoding': accepted });
    const decode = decoders.get(compressed.headers['content-encoding']);
    expect([compressed.status, decode?.(compressed.body).length]).toEqual([200, 3_000_000]);
  }
  // The second value is that of browsers.
  for (const accepted of ['identity', 'identity;q=1, *;q=0']) {
    const part = await get(port, '/large.bin', { ...range, 'Accept-Encoding': accepted });
    expect([part.status, part.body.length]).toEqual([206, 10_000]);
  }
});

it('staticFiles destroys the connection when a file is overwritten while middleware collects its body', async () => {
  const folder = makeFolder({ 'a.bin': Buffer.alloc(3_000_000, 'a') });
  const serve = bare(staticFiles(folder, { cache: false }));
  let isOverwritten = false;
  const port = await listen((req, res) => {
    const { end } = res;
    const chunks: Buffer[] = [];
    res.write = ((chunk: Buffer) => {
      if (chunks.push(chunk) === 2 && !isOverwritten) {
        writeFileSync(join(folder, 'a.bin'), Buffer.alloc(3_000_000, 'b'));
        isOverwritten = true;
      }
      return true;
    }) as never;
    res.end = ((chunk: Buffer) => end.call(res, Buffer.concat([...chunks, chunk]), 'utf8')) as never;
    serve(req, res);
  });
  await expect(get(port, '/a.bin')).rejects.toMatchObject({ code: 'ECONNRESET' });
  expect((await get(port, '/a.bin')).body.equals(Buffer.alloc(3_000_000, 'b'))).toBe(true);
});
