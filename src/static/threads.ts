import { readFileSync, statfsSync, statSync } from 'node:fs';

const { UV_THREADPOOL_SIZE } = process.env;

/** The size of libuv's thread pool, which its environment variable sets at start. */
export const THREADS: number = Math.min(Math.max(Math.trunc(Number(UV_THREADPOOL_SIZE ?? 4)) || 4, 1), 1024);

/** Threads of the pool for operations on file systems that may hang. Other operations wait until one is free. */
export class ThreadShare {
  readonly #size: number;
  #inUse = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(size: number) {
    this.#size = size;
  }

  get hasFree(): boolean {
    return this.#inUse < this.#size;
  }

  /** Uses a free thread, until `release` is called. */
  take(): void {
    this.#inUse++;
  }

  release(): void {
    this.#inUse--;
    while (this.hasFree) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      next();
    }
  }

  /** Calls a function once, when a thread becomes free. It need not use the thread. */
  whenFree(callback: () => void): void {
    this.#waiting.push(callback);
  }

  /** Takes a thread as soon as one is free, and calls `start`. */
  run(start: () => void): void {
    if (!this.hasFree) {
      this.whenFree(() => this.run(start));
      return;
    }
    this.take();
    start();
  }

  /** Takes a thread for asynchronous work that uses one thread at a time. */
  async hold<T>(work: () => Promise<T>): Promise<T> {
    await new Promise<void>((resolve) => this.run(resolve));
    try {
      return await work();
    } finally {
      this.release();
    }
  }
}

/**
 * Starts an operation in a thread of a share, if there is one. Its callback has to release the thread. Skips
 * the operation if it is not wanted any more when a thread is free.
 */
export function runInThread(
  threads: ThreadShare | undefined,
  isWanted: () => boolean,
  start: () => void,
): void {
  if (threads === undefined) start();
  else
    threads.run(() => {
      if (isWanted()) start();
      else threads.release();
    });
}

/** Runs asynchronous work that uses one thread at a time, in a thread of a share if there is one. */
export function inThread<T>(threads: ThreadShare | undefined, work: () => Promise<T>): Promise<T> {
  return threads === undefined ? work() : threads.hold(work);
}

/**
 * The threads for file systems that are mounted below a root, of all middlewares together. One thread is left
 * to all other operations of the process when such a file system hangs.
 */
export const mountThreads: ThreadShare = new ThreadShare(Math.max(THREADS - 1, 1));

/** Returns the threads for operations on a file; undefined for the file system of the root. */
export type ThreadsOf = (urlPath: string, device: bigint) => ThreadShare | undefined;

/** @param localDevice - the device of the root; undefined if its file system may hang as well */
export function createThreadsOf(mounts: Mounts, localDevice: bigint | undefined): ThreadsOf {
  return (urlPath, device) => {
    // A symbolic link may lead to a mount elsewhere.
    const isOther = localDevice !== undefined && device !== localDevice;
    return isOther || mounts.pointOf(urlPath) !== undefined ? mountThreads : undefined;
  };
}

// Milliseconds between two reads of the mount table, which takes about 20 microseconds.
const INTERVAL_MS = 100;
// The share of the time that reading may take on a system with thousands of mounts.
const MAX_SHARE = 0.01;

/** The file systems that are mounted below a directory (Linux; elsewhere none are known). */
export class Mounts {
  /** Increases when something is mounted or unmounted anywhere. */
  generation = 0;
  readonly #rootPath: () => string;
  readonly #read: () => string;
  #table = '';
  #rootOfPoints = '';
  /** Mount points below the root, relative to it and with a leading slash; nested ones first. */
  #points: readonly string[] = [];
  #nextReadAt = Number.NEGATIVE_INFINITY;

  /**
   * @param rootPath - returns the path of the directory, without symbolic links as soon as they are known
   * @param read - returns the text of the mount table
   */
  constructor(rootPath: () => string, read: () => string = readMountTable) {
    this.#rootPath = rootPath;
    this.#read = read;
  }

  /** Reads the mount table, at most every 100 ms. */
  refresh(now: number): void {
    if (now < this.#nextReadAt) return;
    const table = this.#read();
    this.#nextReadAt = now + Math.max(INTERVAL_MS, (performance.now() - now) / MAX_SHARE);
    const rootPath = this.#rootPath();
    if (table === this.#table && rootPath === this.#rootOfPoints) return;
    if (table !== this.#table) this.generation++;
    this.#table = table;
    this.#rootOfPoints = rootPath;
    this.#points = mountPointsBelow(rootPath, table);
  }

  /** The mount point that a URL path leads to; undefined for the file system of the root. */
  pointOf(urlPath: string): string | undefined {
    for (const point of this.#points) {
      if (urlPath.startsWith(point) && (urlPath.length === point.length || urlPath[point.length] === '/')) {
        return point;
      }
    }
    return undefined;
  }
}

function readMountTable(): string {
  try {
    return process.platform === 'linux' ? readFileSync('/proc/self/mountinfo', 'latin1') : '';
  } catch {
    return '';
  }
}

/**
 * Returns the mount points below a directory. The fifth field of a line of mountinfo is the mount point
 * (proc(5)).
 */
function mountPointsBelow(directory: string, table: string): string[] {
  const prefix = directory.endsWith('/') ? directory : `${directory}/`;
  const points: string[] = [];
  for (const line of table.split('\n')) {
    const point = unescapeOctal(line.split(' ', 5)[4] ?? '');
    if (point.startsWith(prefix)) points.push(`/${point.slice(prefix.length)}`);
  }
  return points.sort((a, b) => b.length - a.length);
}

/**
 * Decodes the octal escapes of spaces, tabs, line breaks and backslashes; the table is read as Latin-1, paths
 * are UTF-8.
 */
function unescapeOctal(text: string): string {
  const bytes = text.replace(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

// Linux file systems on a local disk or in memory, whose inodes the kernel caches.
const KERNEL_CACHED = new Set([
  0xef53, // ext2, ext3, ext4
  0x58465342, // xfs
  0x9123683e, // btrfs
  0xf2f52010, // f2fs
  0xca451a4e, // bcachefs
  0x01021994, // tmpfs
  0x858458f6, // ramfs
  0x794c7630, // overlayfs
  0x73717368, // squashfs
  0xe0f5e1e2, // erofs
]);

/**
 * Whether a repeated `stat` takes microseconds because the kernel caches the inode. False for network file
 * systems (NFS, SMB), FUSE, 9p and virtiofs, and for unknown types.
 */
export function isKernelCached(type: number, platform: NodeJS.Platform): boolean {
  return platform === 'linux' && KERNEL_CACHED.has(type);
}

/** The device of a directory on a kernel-cached file system; undefined for other file systems. */
export function localDeviceOf(directory: string): bigint | undefined {
  try {
    if (!isKernelCached(statfsSync(directory).type, process.platform)) return undefined;
    return statSync(directory, { bigint: true }).dev;
  } catch {
    return undefined;
  }
}
