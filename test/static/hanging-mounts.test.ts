import { execFileSync } from 'node:child_process';
import fs, { closeSync, constants, openSync, readdirSync, readlinkSync, writeSync } from 'node:fs';
import { createFileHandler } from '../../src/static/handler.ts';
import { type LoadOptions, loadFile } from '../../src/static/load.ts';
import { resolveStaticOptions } from '../../src/static/options.ts';
import { RootDirectory } from '../../src/static/root.ts';
import { Mounts, THREADS } from '../../src/static/threads.ts';
import type { StaticFilesOptions } from '../../types/static.ts';
import { until } from '../until.ts';
import { bare, get, listen, makeFolder } from './fixture.ts';

const REMOTE = Array.from({ length: 3 * THREADS }, (_, index) => `nfs/${index}.bin`);
const LARGE = Buffer.alloc(300_000, 'a');

/** A directory with a mount `nfs`. No file is checked or opened on the event loop. */
function serve(folder: string, options: StaticFilesOptions = {}): Promise<number> {
  const root = new RootDirectory(folder);
  const settings = resolveStaticOptions(options);
  const mounts = new Mounts(
    () => folder,
    () => `36 25 98:0 / ${folder}/nfs rw,noatime master:1 - ext3 /dev/root rw\n`,
  );
  const source = {
    load: (urlPath: string, loadOptions: LoadOptions) => loadFile(root, urlPath, settings, loadOptions),
    stillResolves: async () => true,
    localDevice: undefined,
    mounts,
  };
  return listen(bare(createFileHandler(settings, source)));
}

interface Hang {
  /** The number of operations that hang. */
  readonly count: () => number;
  /** Lets the operations continue, and ends the fault. */
  readonly release: () => void;
}

const isRemote = (path: unknown): boolean => String(path).includes('/nfs/');

/** Lets each `open` of a file of the mount block its thread: a FIFO is opened when a writer opens it. */
function hangOpens(fifo: string): Hang {
  const { open } = fs;
  let count = 0;
  const spy = jest.spyOn(fs, 'open').mockImplementation((...args: unknown[]) => {
    if (isRemote(args[0])) {
      count++;
      Reflect.apply(open, fs, [fifo, constants.O_RDONLY, args.at(-1)]);
    } else Reflect.apply(open, fs, args);
  });
  const release = (): void => {
    spy.mockRestore();
    closeSync(openSync(fifo, constants.O_RDWR));
  };
  return { count: () => count, release };
}

/** Lets each `read` of a file of the mount block its thread: a FIFO is read when a writer has written to it. */
function hangReads(fifo: string): Hang {
  const { read } = fs;
  let count = 0;
  const both = openSync(fifo, constants.O_RDWR);
  const spy = jest.spyOn(fs, 'read').mockImplementation((...args: unknown[]) => {
    if (!isRemote(readlinkSync(`/proc/self/fd/${args[0]}`))) {
      Reflect.apply(read, fs, args);
      return;
    }
    count++;
    const readFile = (): void => Reflect.apply(read, fs, args);
    Reflect.apply(read, fs, [both, Buffer.alloc(1), 0, 1, null, readFile]);
  });
  const release = (): void => {
    spy.mockRestore();
    writeSync(both, Buffer.alloc(count));
  };
  return { count: () => count, release };
}

describe('a mount that hangs', () => {
  it.each([
    ['opens', hangOpens],
    ['reads', hangReads],
  ])('%s that hang leave a thread to the other files of the directory', async (_operation, hang) => {
    const names = [...REMOTE, 'other/a.bin', 'b.bin'];
    const folder = makeFolder(Object.fromEntries(names.map((name) => [name, LARGE])));
    execFileSync('mkfifo', [`${folder}/fifo`]);
    const port = await serve(folder);
    for (const name of names) expect((await get(port, `/${name}`, {}, 'HEAD')).status).toBe(200);
    const descriptors = readdirSync('/proc/self/fd').length;
    const { count, release } = hang(`${folder}/fifo`);
    const remote = Promise.allSettled(REMOTE.map((name) => get(port, `/${name}`)));
    try {
      await until(() => count() === THREADS - 1);
      for (const path of ['/other/a.bin', '/b.bin']) {
        const { status, body } = await get(port, path);
        expect([status, body.equals(LARGE)]).toEqual([200, true]);
      }
      expect(count()).toBe(THREADS - 1);
    } finally {
      release();
    }
    for (const result of await remote) {
      if (result.status === 'rejected') throw result.reason;
      expect([result.value.status, result.value.body.equals(LARGE)]).toEqual([200, true]);
    }
    await until(() => readdirSync('/proc/self/fd').length <= descriptors + 1);
  });

  it('a check of a file with several possible copies uses one thread', async () => {
    const port = await serve(makeFolder({ 'nfs/a.js': 'let a' }), { precompressed: true });
    while ((await get(port, '/nfs/a.js')).headers.etag === undefined);
    const { stat } = fs;
    let running = 0;
    let most = 0;
    let count = 0;
    const spy = jest.spyOn(fs, 'stat').mockImplementation((...args: unknown[]) => {
      count++;
      most = Math.max(most, ++running);
      const done = args.pop() as (...results: unknown[]) => void;
      Reflect.apply(stat, fs, [
        ...args,
        (...results: unknown[]) => {
          running--;
          done(...results);
        },
      ]);
    });
    try {
      expect((await get(port, '/nfs/a.js')).status).toBe(200);
    } finally {
      spy.mockRestore();
    }
    expect([count, most]).toEqual([4, 1]);
  });
});
