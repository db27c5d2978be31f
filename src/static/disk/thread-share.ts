import type { Mounts } from './mounts.ts';

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
