/** @tags node */
import { utimesSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { runInNewContext } from 'node:vm';
import { memoryFiles } from '../../middleware/sources.ts';
import { staticFiles } from '../../middleware/static.ts';
import { toLastModified } from '../../src/http/conditions.ts';
import type { StaticSource } from '../../types/sources.ts';
import type { StaticFilesOptions } from '../../types/static.ts';
import { bare, get, listen, makeFolder } from './fixture.ts';

const STAT = { size: 5, version: '1' };

/** A source whose functions return values that TypeScript would refuse. */
function sourceOf(stat: unknown, open: () => unknown = () => Buffer.from('hello')): StaticSource {
  return { stat: () => stat, open, list: () => [] } as StaticSource;
}

it.each<[string, () => unknown]>([
  ['a string', () => 'hello'],
  ['a promise of a string', async () => 'hello'],
  ['a stream of strings', () => Readable.from(['he', 'llo'])],
  [
    'a stream with an encoding',
    () => Readable.from([Buffer.from('hello')], { objectMode: false }).setEncoding('utf8'),
  ],
  ['an ArrayBuffer', () => new ArrayBuffer(5)],
  ['a list of numbers', () => [1, 2, 3, 4, 5]],
  ['nothing', () => undefined],
  ['null', () => null],
])(
  'staticFiles passes a TypeError to the error handlers if open of a source returns %s',
  async (_name, open) => {
    const port = await listen(bare(staticFiles(sourceOf(STAT, open))));
    const { status, text } = await get(port, '/a.txt');
    expect(status).toBe(500);
    expect(text).toMatch(/^TypeError: staticFiles: option "dir.open" returned .*; accepted: a Uint8Array/);
  },
);

it('staticFiles sends no byte of a large file that a source returns as text', async () => {
  const open = (): Readable => Readable.from(['h'.repeat(1 << 20)]);
  const port = await listen(bare(staticFiles(sourceOf({ size: 9 << 20, version: '1' }, open))));
  expect((await get(port, '/a.txt')).status).toBe(500);
});

it.each([
  null,
  true,
  'file',
  {},
  { size: -1, version: '1' },
  { size: '5', version: '1' },
  { size: 5, version: 1 },
  { size: 5, version: '1', mtime: '2026-01-01' },
  { size: 5, version: '1', mtime: 1_767_225_600_000 },
])('staticFiles passes a TypeError to the error handlers if stat of a source returns %j', async (stat) => {
  for (const found of [stat, Promise.resolve(stat)]) {
    const port = await listen(bare(staticFiles(sourceOf(found))));
    const { status, text } = await get(port, '/a.txt');
    expect(status).toBe(500);
    expect(text).toMatch(
      /^TypeError: staticFiles: option "dir.stat" returned .*; accepted: \{ size, version/,
    );
  }
});

it.each([
  ['an invalid date', Number.NaN],
  ['a year of five digits', Date.UTC(10_000, 0)],
  ['a year before 0', Date.UTC(-1, 0)],
])('staticFiles sends no Last-Modified for a file of a source with %s', async (_name, time) => {
  const files = memoryFiles({});
  files.set('a.txt', 'hello', { mtime: new Date(time) });
  const port = await listen(bare(staticFiles(files)));
  const { status, headers, text } = await get(port, '/a.txt');
  expect([status, text, headers['last-modified']]).toEqual([200, 'hello', undefined]);
});

it('staticFiles gives setHeaders the date 0 for a file of a source whose mtime is undefined or null', async () => {
  for (const mtime of [undefined, null]) {
    const setHeaders: StaticFilesOptions['setHeaders'] = (res, _path, stat) => {
      res.setHeader('X-Modified', stat.mtime.getTime());
    };
    const port = await listen(bare(staticFiles(sourceOf({ ...STAT, mtime }), { setHeaders })));
    const { status, headers } = await get(port, '/a.txt');
    expect([status, headers['x-modified'], headers['last-modified']]).toEqual([200, '0', undefined]);
  }
});

it('toLastModified rounds down to seconds and returns undefined for times that no HTTP date can express', () => {
  const times = [1999, -1, Date.UTC(10_000, 0), Date.parse('0000-01-01'), Number.NaN, 9e15];
  expect(times.map(toLastModified)).toEqual([
    1000,
    -1000,
    undefined,
    -62_167_219_200_000,
    undefined,
    undefined,
  ]);
});

it('staticFiles sends no Last-Modified in the future, for files on disk and of a source', async () => {
  const mtime = new Date(Date.now() + 3_600_000);
  const root = makeFolder({ 'a.txt': 'hello' });
  utimesSync(join(root, 'a.txt'), mtime, mtime);
  const files = memoryFiles({});
  files.set('a.txt', 'hello', { mtime });
  for (const source of [root, files]) {
    const port = await listen(bare(staticFiles(source, { etag: false })));
    const { headers } = await get(port, '/a.txt');
    const modified = headers['last-modified'] as string;
    // Node keeps the text of Date for a second, and longer while it is busy.
    expect(Date.parse(modified)).toBeLessThanOrEqual(Date.now());
    expect((await get(port, '/a.txt', { 'If-Modified-Since': modified })).status).toBe(304);
  }
});

it('staticFiles ignores the rejection of a stat when another path of the source has changed', async () => {
  let version = 0;
  const unhandled: unknown[] = [];
  const onUnhandled = (error: unknown): void => void unhandled.push(error);
  const source: StaticSource = {
    stat(path) {
      if (path === '/a.html') return { size: 5, version: `${version}` };
      // A source that caches some results returns promises for the others only.
      return version === 1 ? Promise.reject(new Error('no connection')) : undefined;
    },
    open: () => Buffer.from('hello'),
    list: () => [],
  };
  process.on('unhandledRejection', onUnhandled);
  try {
    const port = await listen(bare(staticFiles(source, { extensions: 'html' })));
    expect((await get(port, '/a')).status).toBe(200);
    version = 1;
    expect(await get(port, '/a')).toMatchObject({ status: 500, text: 'Error: no connection' });
    version = 2;
    expect((await get(port, '/a')).status).toBe(200);
    expect(unhandled).toEqual([]);
  } finally {
    process.off('unhandledRejection', onUnhandled);
  }
});

it('staticFiles reads a file once if stat of a source returns promises of another realm', async () => {
  const OtherPromise = runInNewContext('Promise') as PromiseConstructor;
  let opened = 0;
  const source: StaticSource = {
    stat: () => OtherPromise.resolve(STAT),
    open() {
      opened++;
      return Buffer.from('hello');
    },
    list: () => [],
  };
  const port = await listen(bare(staticFiles(source)));
  for (let i = 0; i < 3; i++) expect((await get(port, '/a.txt')).text).toBe('hello');
  expect(opened).toBe(1);
});
