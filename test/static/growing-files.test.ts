/** @tags node-lines slow */
import { Hash } from 'node:crypto';
import {
  appendFileSync,
  chmodSync,
  closeSync,
  openSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeSync,
} from 'node:fs';
import { staticFiles } from '../../middleware/static.ts';
import { loadFile } from '../../src/static/load.ts';
import { resolveStaticOptions } from '../../src/static/options.ts';
import { RootDirectory } from '../../src/static/root.ts';
import type { StaticFilesOptions } from '../../types/static.ts';
import { bare, get, listen, makeFolder, receivedBytes, requestOften } from './fixture.ts';

const line = (index: number): string => `${String(index).padStart(9, '0')} a line of a log file\n`;
const lines = (count: number): string => Array.from({ length: count }, (_, index) => line(index)).join('');

/** Appends a line every so many milliseconds until `work` has finished. */
async function whileAppending<Result>(
  path: string,
  interval: number,
  work: () => Promise<Result>,
): Promise<Result> {
  let index = statSync(path).size / line(0).length;
  const timer = setInterval(() => appendFileSync(path, line(index++)), interval);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

/** Half the time of a request, in milliseconds: on a busy machine a line would arrive between any two steps of a request. */
async function paceOf(port: number): Promise<number> {
  const count = 4;
  const startedAt = performance.now();
  for (let i = 0; i < count; i++) await get(port, '/a.log', {}, 'HEAD');
  return Math.max(1, (performance.now() - startedAt) / count / 2);
}

describe.each([
  ['4 KiB', 100],
  ['600 KiB', 18_000],
  ['3 MiB', 95_000],
  ['12 MiB', 380_000],
])('a log file of %s', (_size, count) => {
  it.each<[string, StaticFilesOptions]>([
    ['the default options', {}],
    ["etag: 'stat'", { etag: 'stat' }],
    ['etag: false', { etag: false }],
  ])('staticFiles sends a complete prefix of a file that grows, with %s', async (_name, options) => {
    const content = lines(count + 100_000);
    const root = makeFolder({ 'a.log': lines(count) });
    const port = await listen(bare(staticFiles(root, options)));
    await whileAppending(`${root}/a.log`, await paceOf(port), async () => {
      for (let i = 0; i < 6; i++) {
        const response = await get(port, '/a.log');
        expect(response.status).toBe(200);
        expect(response.body.length).toBe(Number(response.headers['content-length']));
        expect(content.startsWith(response.text)).toBe(true);
        const range = await get(port, '/a.log', { Range: 'bytes=10-3009' });
        expect([range.status, range.text]).toEqual([206, content.slice(10, 3010)]);
      }
    });
  });
});

describe('a file that changes while a slow client downloads it', () => {
  const size = 9_000_000;

  /** Downloads a file; after the first bytes calls `change` and waits until it can have an effect. */
  async function downloadDuring(
    options: StaticFilesOptions & { isCached?: boolean },
    change: (path: string) => void,
  ): Promise<number> {
    const { isCached = false, ...given } = options;
    const root = makeFolder({ 'a.bin': Buffer.alloc(size, 'x') });
    utimesSync(`${root}/a.bin`, 1e9, 1e9);
    const port = await listen(bare(staticFiles(root, given)));
    while (isCached && (await get(port, '/a.bin', {}, 'HEAD')).headers.etag === undefined);
    return receivedBytes(port, '/a.bin', () => change(`${root}/a.bin`));
  }

  const overwrite = (path: string, content: string, position: number): void => {
    const fd = openSync(path, 'r+');
    writeSync(fd, content, position);
    closeSync(fd);
  };
  const restoreTimes = (path: string): void => utimesSync(path, 1e9, 1e9);

  it.each<[string, StaticFilesOptions]>([
    ['the default options', {}],
    ['an ETag', { isCached: true } as StaticFilesOptions],
    ["etag: 'stat'", { etag: 'stat' }],
    ['etag: false', { etag: false }],
  ])(
    'staticFiles completes the response after an append, and after a deletion, with %s',
    async (_name, options) => {
      expect(await downloadDuring(options, (path) => appendFileSync(path, 'more'))).toBe(size);
      expect(await downloadDuring(options, (path) => rmSync(path))).toBe(size);
    },
  );

  it.each<[string, (path: string) => void]>([
    ['an overwritten end', (path) => overwrite(path, 'y', size - 1)],
    ['an overwritten beginning', (path) => overwrite(path, 'y', 0)],
    ['a truncation', (path) => truncateSync(path, size - 1)],
    ['chmod', (path) => chmodSync(path, 0o600)],
    ['touch', (path) => utimesSync(path, 2e9, 2e9)],
    [
      'an overwritten end and restored times',
      (path) => {
        overwrite(path, 'y', size - 1);
        restoreTimes(path);
      },
    ],
  ])('staticFiles destroys the connection after %s', async (_name, change) => {
    expect(await downloadDuring({}, change)).toBeLessThan(size);
    expect(await downloadDuring({ isCached: true }, change)).toBeLessThan(size);
  });

  it('staticFiles destroys the connection after an overwritten beginning without an ETag', async () => {
    const change = (path: string): void => overwrite(path, 'y', 0);
    for (const etag of [undefined, 'stat', false] as const) {
      expect(await downloadDuring({ etag }, change)).toBeLessThan(size);
    }
  });
});

it('staticFiles hashes a large file in slices, on disk and in memory', async () => {
  const size = 8 << 20;
  const root = makeFolder({ 'a.bin': Buffer.alloc(size) });
  const update = jest.spyOn(Hash.prototype, 'update');
  const files = staticFiles(root);
  await requestOften(files, '/a.bin');
  const { headers } = await get(await listen(bare(files)), '/a.bin', {}, 'HEAD');
  const lengths = update.mock.calls.map(([bytes]) => bytes.length);
  update.mockRestore();
  expect(headers.etag).toMatch(/^"800000-/);
  expect(lengths.reduce((sum, length) => sum + length, 0)).toBeGreaterThanOrEqual(2 * size);
  expect(Math.max(...lengths)).toBeLessThanOrEqual(1 << 20);
});

it('a popular file that is written while it is read is streamed instead of read as a whole', async () => {
  const root = makeFolder({ 'a.log': lines(100_000) });
  const settings = resolveStaticOptions({});
  const { update } = Hash.prototype;
  const spy = jest.spyOn(Hash.prototype, 'update').mockImplementation(function (this: Hash, bytes) {
    appendFileSync(`${root}/a.log`, line(0));
    return Reflect.apply(update, this, [bytes]);
  });
  const loaded = await loadFile(new RootDirectory(root), '/a.log', settings, { isPopular: true });
  spy.mockRestore();
  expect(loaded).toMatchObject({ kind: 'file', uncompressed: { body: undefined } });
});

it('staticFiles keeps headers of earlier middleware when it starts a response again', async () => {
  const root = makeFolder({ 'a.bin': Buffer.alloc(700_000, 'a') });
  const files = bare(staticFiles(root));
  const port = await listen((req, res) => {
    Object(res).setHeader('X-Earlier', 'yes');
    Object(res).setHeader('Vary', 'Origin');
    files(req, res);
  });
  let turn = 0;
  const timer = setInterval(() => {
    const fd = openSync(`${root}/a.bin`, 'r+');
    writeSync(fd, Buffer.alloc(700_000, 97 + (turn++ % 26)));
    closeSync(fd);
  }, 1);
  try {
    for (let i = 0; i < 30; i++) {
      const response = await get(port, '/a.bin').catch(() => undefined);
      if (response === undefined) continue;
      expect([200, 503]).toContain(response.status);
      expect(response.headers).toMatchObject({ 'x-earlier': 'yes', vary: 'Origin' });
      if (response.status === 200)
        expect(response.body.equals(Buffer.alloc(700_000, response.body[0]))).toBe(true);
    }
  } finally {
    clearInterval(timer);
  }
});
