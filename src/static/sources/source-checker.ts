import type { CacheEntry, Waiter } from '../cache/entry.ts';
import type { FileCache } from '../cache/file-cache.ts';
import { isNotFoundError } from '../disk/file-errors.ts';
import type { LoadResult } from '../file/loaded-file.ts';
import { loadSourceFile, type SourceLoader } from './load-source-file.ts';
import { type SourceDependency, versionOf } from './resolve-source-file.ts';

// Sufficient for a file that is replaced while it is read.
const MAX_ATTEMPTS = 16;
// Milliseconds after which requests do not wait for a running load any more: the source may have lost its
// connection, and the load may never end.
const STALLED_MS = 30_000;

interface Load {
  readonly result: Promise<LoadResult>;
  readonly startedAt: number;
}

/**
 * Checks cache entries with the `stat` of a source. A source whose `stat` is synchronous is checked
 * immediately. Requests for a file that is not cached share one load, and check its result again: it may be
 * older than they are.
 */
export class SourceChecker {
  readonly #loader: SourceLoader;
  readonly #cache: FileCache;
  readonly #dependencies = new WeakMap<LoadResult, readonly SourceDependency[]>();
  readonly #loads = new Map<CacheEntry, Load>();

  constructor(loader: SourceLoader, cache: FileCache) {
    this.#loader = loader;
    this.#cache = cache;
  }

  /** Checks the entry of a request, then calls its `onChecked`. */
  check(waiter: Waiter): void {
    const { entry } = waiter;
    const { file } = entry;
    let isCurrent: boolean | Promise<boolean>;
    try {
      isCurrent = file !== undefined && this.#isCurrent(file);
    } catch (error) {
      waiter.onChecked(error, undefined);
      return;
    }
    if (file !== undefined && isCurrent === true) {
      this.#keepFresh(entry);
      waiter.onChecked(undefined, file);
      return;
    }
    this.#find(entry, isCurrent).then(
      (result) => waiter.onChecked(undefined, result),
      (error: unknown) => waiter.onChecked(error, undefined),
    );
  }

  async #find(entry: CacheEntry, isCurrent: boolean | Promise<boolean>): Promise<LoadResult> {
    const cached = entry.file;
    if (cached !== undefined && (await isCurrent) && entry.file === cached) {
      this.#keepFresh(entry);
      return cached;
    }
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      // A load that has found no file has removed the entry.
      const current = this.#cache.getOrCreate(entry.urlPath);
      const running = this.#runningLoad(current);
      const result = await (running ?? this.#load(current));
      if (running === undefined || (await this.#isCurrent(result))) return result;
    }
    return { kind: 'busy' };
  }

  #runningLoad(entry: CacheEntry): Promise<LoadResult> | undefined {
    const load = this.#loads.get(entry);
    return load === undefined || performance.now() - load.startedAt > STALLED_MS ? undefined : load.result;
  }

  #load(entry: CacheEntry): Promise<LoadResult> {
    const result = this.#loadRepeatedly(entry).finally(() => {
      if (this.#loads.get(entry) === load) this.#loads.delete(entry);
    });
    const load: Load = { result, startedAt: performance.now() };
    this.#loads.set(entry, load);
    return result;
  }

  async #loadRepeatedly(entry: CacheEntry): Promise<LoadResult> {
    this.#cache.invalidate(entry);
    try {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        const loaded = await loadSourceFile(this.#loader, entry.urlPath).catch((error: unknown) => {
          // The file was deleted between `stat` and `open`.
          if (!isNotFoundError(error)) throw error;
          return undefined;
        });
        if (loaded === undefined) continue;
        const { result, dependencies } = loaded;
        this.#dependencies.set(result, dependencies);
        if (result.kind === 'file') {
          this.#cache.set(entry, result);
          this.#keepFresh(entry);
        }
        return result;
      }
      return { kind: 'busy' };
    } finally {
      // Keeps the entry of a file.
      this.#cache.release(entry);
    }
  }

  /** Whether the source still has the versions that led to a result. */
  #isCurrent(result: LoadResult): boolean | Promise<boolean> {
    const dependencies = this.#dependencies.get(result) ?? [];
    const pending: Promise<boolean>[] = [];
    for (const { path, version } of dependencies) {
      const stat = this.#loader.source.stat(path);
      if (stat instanceof Promise) {
        const isSame = stat.then((result) => versionOf(result) === version);
        // Nothing awaits it if a later path has changed, or if its `stat` throws.
        isSame.catch(() => undefined);
        pending.push(isSame);
      } else if (versionOf(stat) !== version) return false;
    }
    if (pending.length === 0) return true;
    return Promise.all(pending).then((results) => results.every((isSame) => isSame));
  }

  #keepFresh(entry: CacheEntry): void {
    const { revalidateAfter } = this.#loader.settings.cache;
    entry.freshUntil = revalidateAfter === 0 ? 0 : performance.now() + revalidateAfter;
  }
}
