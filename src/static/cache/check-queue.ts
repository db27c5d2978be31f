import type { CacheEntry } from './file-cache.ts';

const { UV_THREADPOOL_SIZE } = process.env;
// The size of libuv's thread pool, which its environment variable sets at start.
const THREADS = Math.min(Math.max(Math.trunc(Number(UV_THREADPOOL_SIZE ?? 4)) || 4, 1), 1024);
// Checks that run simultaneously. More would delay the application's own DNS and file operations.
const MAX_RUNNING = Math.max(16, THREADS);
// Checks of one folder that run simultaneously while it is not known to be fast. Other folders keep one thread
// when a file system hangs.
const MAX_RUNNING_IF_SLOW = Math.max(THREADS - 1, 1);
// Milliseconds without a finished check after which a folder counts as slow.
const SLOW_MS = 50;
// Names of fast folders that are stored while they have no checks.
const MAX_FAST_NAMES = 1024;

interface Folder {
  readonly name: string;
  readonly waiting: CacheEntry[];
  running: number;
  /** When the first of the running checks started, or the last check finished (`performance.now()`). */
  lastProgress: number;
}

/** Entries that wait for a check in the thread pool. Alternates between folders (the first segment of the path). */
export class CheckQueue {
  readonly #folders = new Map<string, Folder>();
  /** Folders with waiting entries that may start. */
  readonly #ready = new Set<Folder>();
  readonly #fastNames = new Set<string>();
  #running = 0;

  add(entry: CacheEntry): void {
    const folder = this.#folderOf(entry);
    folder.waiting.push(entry);
    this.#ready.add(folder);
  }

  /** Removes and returns the next entry that may be checked now; its check must end with `finish`. */
  start(): CacheEntry | undefined {
    if (this.#running >= MAX_RUNNING) return undefined;
    const now = performance.now();
    for (const folder of this.#ready) {
      this.#ready.delete(folder);
      if (folder.running >= this.#limitOf(folder, now)) continue;
      const entry = folder.waiting.shift();
      if (entry === undefined) continue;
      if (folder.running === 0) folder.lastProgress = now;
      this.#running++;
      folder.running++;
      if (folder.waiting.length > 0) this.#ready.add(folder);
      return entry;
    }
    return undefined;
  }

  finish(entry: CacheEntry): void {
    const folder = this.#folderOf(entry);
    const now = performance.now();
    this.#setFast(folder.name, now - folder.lastProgress < SLOW_MS);
    folder.lastProgress = now;
    this.#running--;
    folder.running--;
    if (folder.waiting.length > 0) this.#ready.add(folder);
    else if (folder.running === 0) this.#folders.delete(folder.name);
  }

  #limitOf({ name, running, lastProgress }: Folder, now: number): number {
    const hasProgress = running === 0 || now - lastProgress < SLOW_MS;
    return hasProgress && this.#fastNames.has(name) ? MAX_RUNNING : MAX_RUNNING_IF_SLOW;
  }

  #setFast(name: string, isFast: boolean): void {
    if (!isFast) this.#fastNames.delete(name);
    else if (!this.#fastNames.has(name)) {
      if (this.#fastNames.size >= MAX_FAST_NAMES) this.#fastNames.clear();
      this.#fastNames.add(name);
    }
  }

  #folderOf({ urlPath }: CacheEntry): Folder {
    const end = urlPath.indexOf('/', 1);
    const name = end < 0 ? '' : urlPath.slice(0, end);
    let folder = this.#folders.get(name);
    if (folder === undefined) {
      folder = { name, waiting: [], running: 0, lastProgress: 0 };
      this.#folders.set(name, folder);
    }
    return folder;
  }
}
