/** @tags node */
import { createHook } from 'node:async_hooks';
import fs from 'node:fs';
import type { RequestListener } from 'node:http';
import { constants } from 'node:os';
import { staticFiles } from '../../middleware/static.ts';
import { createHandler } from '../../src/static/handler.ts';
import { resolveStaticOptions } from '../../src/static/options.ts';
import { RootDirectory } from '../../src/static/root.ts';
import { bare, get, listen, makeFolder } from './fixture.ts';

/** The handler of `staticFiles` for a directory that is not on a local disk. */
function serve(folder: string): RequestListener {
  const root = Object.assign(new RootDirectory(folder), { localDevice: undefined });
  return bare(createHandler(root, resolveStaticOptions({})).handle);
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

it('the first request for a file needs at most four operations of the thread pool, as long as the root is known', async () => {
  const tries = [1, 2, 3, 4, 5, 6, 7, 8];
  const sizes = [1, 200_000];
  const files = sizes.flatMap((size) => tries.map((n) => [`dir/${size}-${n}.txt`, Buffer.alloc(size)]));
  const folder = makeFolder({ 'first.txt': '', ...Object.fromEntries(files) });
  const port = await listen(bare(staticFiles(folder)));
  await get(port, '/first.txt');
  for (const size of sizes) {
    const counts: number[] = [];
    for (const n of tries) counts.push(await poolOperations(() => get(port, `/dir/${size}-${n}.txt`)));
    // Other work of the process, such as loading a module or looking for changes, may add operations to some requests.
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
    const { stat } = fs;
    let stats = 0;
    const spy = jest.spyOn(fs, 'stat').mockImplementation((...args: unknown[]) => {
      const done = args.at(-1);
      const isFirst = String(args[0]).startsWith(folder) && stats++ === 0;
      if (isFirst && typeof done === 'function') process.nextTick(done, stale());
      else Reflect.apply(stat, fs, args);
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
    const port = await listen(serve(folder));
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
    const port = await listen(serve(folder));
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
