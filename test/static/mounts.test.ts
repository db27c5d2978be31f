import { createHook } from 'node:async_hooks';
import fs, { promises, readFileSync, realpathSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { constants } from 'node:os';
import { staticFiles } from '../../middleware/static.ts';
import { CacheEntry } from '../../src/static/cache.ts';
import { CheckQueue } from '../../src/static/check.ts';
import { createFileHandler, type DirectoryFiles } from '../../src/static/handler.ts';
import { type LoadOptions, loadFile } from '../../src/static/load.ts';
import { resolveStaticOptions } from '../../src/static/options.ts';
import { RootDirectory } from '../../src/static/root.ts';
import { Mounts, ThreadShare } from '../../src/static/threads.ts';
import type { StaticFilesOptions } from '../../types/static.ts';
import { bare, get, listen, makeFolder } from './fixture.ts';

const lineOf = (point: string): string => `36 25 98:0 / ${point} rw,noatime master:1 - ext3 /dev/root rw\n`;

/** Mounts below /srv/www, with a table that a test changes. */
function createMounts(...points: string[]) {
  const table = { text: points.map(lineOf).join('') };
  let now = performance.now();
  const mounts = new Mounts(
    () => '/srv/www',
    () => table.text,
  );
  const refresh = (): void => {
    now += 60_000;
    mounts.refresh(now);
  };
  refresh();
  return { mounts, table, refresh };
}

describe('the mount table', () => {
  it.each([
    ['/nfs/a.txt', '/nfs'],
    ['/nfs', '/nfs'],
    ['/nfs/deep/a.txt', '/nfs/deep'],
    ['/nfs2/a.txt', undefined],
    ['/with space/é/a.txt', '/with space/é'],
    ['/a.txt', undefined],
    ['/srv/www/nfs', undefined],
  ])('the mount point of %s is %s', (path, point) => {
    const escaped = Buffer.from('/srv/www/with\\040space/é').toString('latin1');
    const { mounts } = createMounts(
      '/',
      '/srv',
      '/srv/www',
      '/srv/www/nfs',
      '/srv/www/nfs/deep',
      '/srv/wwwx',
      escaped,
    );
    expect(mounts.pointOf(path)).toBe(point);
  });

  it('the generation of Mounts increases when something is mounted or unmounted', () => {
    const { mounts, table, refresh } = createMounts('/', '/srv');
    const { generation } = mounts;
    refresh();
    expect(mounts.generation).toBe(generation);
    table.text += lineOf('/srv/www/new');
    refresh();
    expect(mounts.generation).toBe(generation + 1);
    expect(mounts.pointOf('/new/a')).toBe('/new');
  });

  it('the mount table is read at most every 100 ms', () => {
    let reads = 0;
    const mounts = new Mounts(
      () => '/srv',
      () => {
        reads++;
        return '';
      },
    );
    const now = performance.now();
    for (let i = 0; i < 1000; i++) mounts.refresh(now + i / 10);
    expect(reads).toBe(1);
  });

  it('the mount table of this system is read', () => {
    const point = readFileSync('/proc/self/mountinfo', 'utf8').split('\n')[0]?.split(' ')[4] as string;
    expect(realpathSync(point)).toBe(point);
    const mounts = new Mounts(() => '/');
    mounts.refresh(performance.now());
    expect(mounts.generation).toBe(1);
    expect(mounts.pointOf('/proc/self/stat')).toBe('/proc');
  });
});

describe('checks of mounted file systems', () => {
  const owner = { evict: (): void => {} };
  const entryOf = (path: string): CacheEntry => new CacheEntry(path, owner);

  /** Starts all checks that may start. */
  function started(queue: CheckQueue): string[] {
    const paths: string[] = [];
    for (let entry = queue.start(); entry !== undefined; entry = queue.start()) paths.push(entry.urlPath);
    return paths;
  }

  it('a mount that hangs leaves a thread to its parent directory and to other directories', () => {
    const { mounts } = createMounts('/srv/www/files/nfs');
    const queue = new CheckQueue(mounts, () => undefined, new ThreadShare(3));
    for (let i = 0; i < 100; i++) queue.add(entryOf(`/files/nfs/${i}/a.txt`));
    expect(started(queue)).toHaveLength(3);
    const others = ['/files/a.txt', '/files/other/a.txt', '/a.txt'];
    for (const path of others) queue.add(entryOf(path));
    expect(started(queue).sort()).toEqual(others.sort());
  });

  it('several mounts that hang leave a thread to the file system of the root', () => {
    const { mounts } = createMounts('/srv/www/x', '/srv/www/y', '/srv/www/z');
    const queue = new CheckQueue(mounts, () => undefined, new ThreadShare(3));
    for (let i = 0; i < 300; i++) queue.add(entryOf(`/${'xyz'[i % 3]}/${i}.txt`));
    expect(started(queue)).toHaveLength(3);
    queue.add(entryOf('/a.txt'));
    expect(started(queue)).toEqual(['/a.txt']);
  });

  it('all checks of mounts run when the mounts respond', () => {
    const { mounts } = createMounts('/srv/www/x', '/srv/www/y');
    const queue = new CheckQueue(mounts, () => undefined, new ThreadShare(3));
    const entries = Array.from({ length: 200 }, (_, i) => entryOf(`/${'xy'[i % 2]}/${i}.txt`));
    for (const entry of entries) queue.add(entry);
    const done = new Set<string>();
    for (let paths = started(queue); paths.length > 0; paths = started(queue)) {
      for (const path of paths) {
        done.add(path);
        queue.finish(entries.find(({ urlPath }) => urlPath === path) as CacheEntry);
      }
    }
    expect(done.size).toBe(200);
  });
});

/** The handler of `staticFiles` with another mount table or device. */
function serve(
  folder: string,
  more: Partial<DirectoryFiles>,
  options: StaticFilesOptions = {},
): RequestListener {
  const root = new RootDirectory(folder);
  const settings = resolveStaticOptions(options);
  const source = {
    load: (urlPath: string, loadOptions: LoadOptions) => loadFile(root, urlPath, settings, loadOptions),
    stillResolves: async () => true,
    localDevice: root.localDevice,
    mounts: root.mounts,
  };
  return bare(createFileHandler(settings, { ...source, ...more }));
}

/** Counts the file operations that this process gives to the thread pool. */
async function poolOperations(act: () => Promise<unknown>): Promise<number> {
  let count = 0;
  const hook = createHook({
    init: (_id, type) => {
      if (type.startsWith('FSREQ')) count++;
    },
  }).enable();
  await act();
  hook.disable();
  return count;
}

it('staticFiles checks a cached file in the thread pool after something was mounted, which may hang', async () => {
  const folder = makeFolder({ 'a.txt': 'a' });
  let table = '';
  const mounts = new Mounts(
    () => folder,
    () => table,
  );
  const port = await listen(serve(folder, { mounts }));
  const operations = (): Promise<number> => poolOperations(() => get(port, '/a.txt'));
  while ((await operations()) > 0);
  table = lineOf(`${folder}/dir`);
  await new Promise((done) => setTimeout(done, 150));
  expect(await operations()).toBeGreaterThan(0);
  // The next checks are synchronous again. Other work of the process may add operations to one of the requests.
  while ((await operations()) > 0);
});

it('the first request for a file needs at most four operations of the thread pool, as long as the root is known', async () => {
  const sizes = [1, 200_000];
  const files = sizes.flatMap((size) => [1, 2, 3].map((n) => [`dir/${size}-${n}.txt`, Buffer.alloc(size)]));
  const folder = makeFolder({ 'first.txt': '', ...Object.fromEntries(files) });
  const port = await listen(bare(staticFiles(folder)));
  await get(port, '/first.txt');
  for (const size of sizes) {
    const counts: number[] = [];
    for (const n of [1, 2, 3]) counts.push(await poolOperations(() => get(port, `/dir/${size}-${n}.txt`)));
    // Other work of the process, such as loading a module, may add operations to one of the requests.
    expect(Math.min(...counts)).toBeLessThanOrEqual(4);
  }
});

describe('a file whose handle has become stale on a network file system', () => {
  const errno = -constants.errno.ESTALE;
  // The error of Node: libuv has no name for it.
  const code = `Unknown system error ${errno}`;
  const stale = (): Error => Object.assign(new Error(`${code}: ${code}, stat`), { errno, code });

  it('staticFiles resolves the path again while it loads the file', async () => {
    const folder = makeFolder({ 'a.txt': 'a' });
    const port = await listen(bare(staticFiles(folder)));
    const { stat } = promises;
    let stats = 0;
    const spy = jest.spyOn(promises, 'stat').mockImplementation((path, options) => {
      const isFirst = String(path).startsWith(folder) && stats++ === 0;
      return isFirst ? Promise.reject(stale()) : stat(path, options);
    });
    const response = await get(port, '/a.txt');
    // A recent file may be loaded once more.
    expect(stats).toBeGreaterThan(1);
    expect([response.status, response.text]).toEqual([200, 'a']);
    spy.mockRestore();
  });

  it.each([
    ['stat', 'a cached file', '/a.txt'],
    ['open', 'a file that is streamed', '/a.bin'],
  ] as const)('staticFiles tries again when %s fails for %s', async (operation, _what, path) => {
    const folder = makeFolder({ 'a.txt': 'a', 'a.bin': Buffer.alloc(300_000, 'a') });
    const port = await listen(serve(folder, { localDevice: undefined }));
    const { headers } = await get(port, path, {}, 'HEAD');
    const spy = jest.spyOn(fs, operation).mockImplementationOnce((...args: unknown[]) => {
      const done = args.at(-1);
      if (typeof done === 'function') process.nextTick(done, stale());
    });
    const response = await get(port, path);
    expect(spy.mock.calls.length).toBeGreaterThan(0);
    spy.mockRestore();
    expect([response.status, response.headers.etag]).toEqual([200, headers.etag]);
  });

  it('staticFiles tries again when the last fstat fails for a file that is streamed', async () => {
    const folder = makeFolder({ 'a.bin': Buffer.alloc(300_000, 'a') });
    const port = await listen(serve(folder, { localDevice: undefined }));
    const { headers } = await get(port, '/a.bin', {}, 'HEAD');
    const { fstat } = fs;
    let calls = 0;
    const spy = jest.spyOn(fs, 'fstat').mockImplementation((...args: unknown[]) => {
      const done = args.at(-1);
      // The first call belongs to the opening of the file.
      if (++calls === 2 && typeof done === 'function') process.nextTick(done, stale());
      else Reflect.apply(fstat, fs, args);
    });
    const response = await get(port, '/a.bin');
    spy.mockRestore();
    expect(calls).toBeGreaterThan(2);
    expect([response.status, response.headers.etag]).toEqual([200, headers.etag]);
  });
});
