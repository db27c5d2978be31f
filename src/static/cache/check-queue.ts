import type { Mounts } from '../disk/mounts.ts';
import { mountThreads, THREADS, type ThreadShare } from '../disk/thread-share.ts';
import type { CacheEntry } from './entry.ts';

// Checks that run simultaneously. More would delay the application's own DNS and file operations.
const MAX_RUNNING = Math.max(16, THREADS);
// Checks of one folder that run simultaneously while it is not known to be fast. Other folders keep one
// thread when a file system hangs.
const MAX_RUNNING_IF_SLOW = Math.max(THREADS - 1, 1);
// Milliseconds without a finished check after which a folder counts as slow.
const SLOW_MS = 50;
// Names of fast folders that are stored while they have no checks.
const MAX_FAST_NAMES = 1024;

interface Folder {
  readonly name: string;
  /** Whether another file system is mounted there. It may hang at any time. */
  readonly isMount: boolean;
  readonly waiting: CacheEntry[];
  running: number;
  /** When the first of the running checks started, or the last check finished (`performance.now()`). */
  lastProgress: number;
}

/**
 * Entries that wait for a check in the thread pool. Alternates between folders: a mounted file system, or the
 * first segment of a path on the file system of the root.
 */
export class CheckQueue {
  readonly #mounts: Mounts;
  readonly #folders = new Map<string, Folder>();
  /** Folders with waiting entries that may start. */
  readonly #ready = new Set<Folder>();
  readonly #fastNames = new Set<string>();
  /** Entries that were started, with the folder that each counts for: mounts may change meanwhile. */
  readonly #started = new Map<CacheEntry, Folder>();
  readonly #threads: ThreadShare;
  readonly #onReady: () => void;
  #waitsForThread = false;

  /**
   * @param onReady - called when a check may start although none has finished
   * @param threads - the threads that checks of mounts share with other operations on mounts
   */
  constructor(mounts: Mounts, onReady: () => void, threads: ThreadShare = mountThreads) {
    this.#mounts = mounts;
    this.#onReady = onReady;
    this.#threads = threads;
  }

  add(entry: CacheEntry): void {
    const folder = this.#folderOf(entry);
    folder.waiting.push(entry);
    this.#ready.add(folder);
  }

  /** Removes and returns the next entry that may be checked now; its check must end with `finish`. */
  start(): CacheEntry | undefined {
    if (this.#started.size >= MAX_RUNNING) return undefined;
    const now = performance.now();
    for (const folder of this.#ready) {
      this.#ready.delete(folder);
      if (!this.#mayStart(folder, now)) continue;
      const entry = folder.waiting.shift();
      if (entry === undefined) continue;
      if (folder.running === 0) folder.lastProgress = now;
      this.#started.set(entry, folder);
      folder.running++;
      if (folder.isMount) this.#threads.take();
      if (folder.waiting.length > 0) this.#ready.add(folder);
      return entry;
    }
    return undefined;
  }

  finish(entry: CacheEntry): void {
    const folder = this.#started.get(entry);
    if (folder === undefined) return;
    this.#started.delete(entry);
    const now = performance.now();
    this.#setFast(folder.name, now - folder.lastProgress < SLOW_MS);
    folder.lastProgress = now;
    folder.running--;
    if (folder.waiting.length > 0) this.#ready.add(folder);
    else if (folder.running === 0) this.#folders.delete(folder.name);
    if (folder.isMount) this.#threads.release();
  }

  /**
   * Other file systems together leave a thread to the one of the root, and a slow folder leaves one to the
   * others.
   */
  #mayStart({ name, isMount, running, lastProgress }: Folder, now: number): boolean {
    if (isMount) return this.#threads.hasFree || this.#waitForThread();
    const hasProgress = running === 0 || now - lastProgress < SLOW_MS;
    return running < (hasProgress && this.#fastNames.has(name) ? MAX_RUNNING : MAX_RUNNING_IF_SLOW);
  }

  #waitForThread(): false {
    if (!this.#waitsForThread) {
      this.#waitsForThread = true;
      this.#threads.whenFree(() => {
        this.#waitsForThread = false;
        for (const folder of this.#folders.values()) if (folder.waiting.length > 0) this.#ready.add(folder);
        this.#onReady();
      });
    }
    return false;
  }

  #setFast(name: string, isFast: boolean): void {
    if (!isFast) this.#fastNames.delete(name);
    else if (!this.#fastNames.has(name)) {
      if (this.#fastNames.size >= MAX_FAST_NAMES) this.#fastNames.clear();
      this.#fastNames.add(name);
    }
  }

  #folderOf({ urlPath }: CacheEntry): Folder {
    const point = this.#mounts.pointOf(urlPath);
    const name = point === undefined ? firstSegment(urlPath) : `mount ${point}`;
    let folder = this.#folders.get(name);
    if (folder === undefined) {
      folder = { name, isMount: point !== undefined, waiting: [], running: 0, lastProgress: 0 };
      this.#folders.set(name, folder);
    }
    return folder;
  }
}

function firstSegment(urlPath: string): string {
  const end = urlPath.indexOf('/', 1);
  return end < 0 ? '' : urlPath.slice(0, end);
}
