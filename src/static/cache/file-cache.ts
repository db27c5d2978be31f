import type { AsyncResource } from 'node:async_hooks';
import { type LoadedFile, type LoadResult, withoutBodies } from '../file/loaded-file.ts';
import type { UnchangedCheck } from './is-unchanged-sync.ts';

/** A request that waits for the check of a cache entry. */
export interface Waiter {
  readonly entry: CacheEntry;
  /** The request's asynchronous context: requests share a check, but each keeps its own AsyncLocalStorage. */
  readonly asyncScope: AsyncResource;
  /** Continues the request after the check, in `asyncScope`. */
  onChecked(error: unknown, result: LoadResult | undefined): void;
}

/** The state of one URL path while a file is cached for it or requests wait for it. */
export interface CacheEntry {
  readonly urlPath: string;
  /** Whether a URL can contain the path as it is, without percent-encoding: such requests skip parsing. */
  readonly isLiteral: boolean;
  file: LoadedFile | undefined;
  /** Checks the file on the event loop; undefined if the check has to run in the thread pool. */
  isUnchanged: UnchangedCheck | undefined;
  /** The time until which the file is served without a check (`performance.now()`). */
  freshUntil: number;
  /** The time until which the symbolic links on the path count as unchanged (`performance.now()`). */
  pathVerifiedUntil: number;
  /** Whether the entry was requested since the last eviction scan. */
  isRecentlyUsed: boolean;
  /** The number of streams from disk of a body that would fit in the cache. */
  streamCount: number;
  /** Whether the body was streamed so often that it is cached even if it is large. */
  isPopular: boolean;
  /** Requests for the next check. Undefined instead of an empty list, so that few short-lived arrays reach old space. */
  waiting: Waiter[] | undefined;
  /** `checking`: requests that arrive now have to wait for another check. */
  state: 'idle' | 'queued' | 'checking';
}

// The number of streams after which a body is loaded into memory, so that one scan of large files evicts nothing.
const STREAMS_UNTIL_RELOAD = 8;

// Excludes the bare root, which may have to redirect to the mount path with a slash, and paths that the parser refuses or
// the option `dotfiles` decides about: the fallback file may be at such a path.
const LITERAL = /^(?:\/(?!\.)[\w\-.~!$&'()*+,;=:@]+)+\/?$/;

/**
 * Cached files by URL path. Only files that exist are stored, so unknown paths evict nothing. `maxBytes` bounds the bodies:
 * a file whose body is evicted keeps its ETag and headers, and is streamed from disk. `maxEntries` bounds the files.
 */
export class FileCache {
  readonly #maxBytes: number;
  readonly #maxEntries: number;
  readonly #entries = new Map<string, CacheEntry>();
  #bytes = 0;
  #fileCount = 0;

  constructor(bounds: { readonly maxBytes: number; readonly maxEntries: number }) {
    this.#maxBytes = bounds.maxBytes;
    this.#maxEntries = bounds.maxEntries;
  }

  get(urlPath: string): CacheEntry | undefined {
    return this.#entries.get(urlPath);
  }

  getOrCreate(urlPath: string): CacheEntry {
    const existing = this.#entries.get(urlPath);
    if (existing !== undefined) return existing;
    const entry: CacheEntry = {
      urlPath,
      isLiteral: LITERAL.test(urlPath),
      file: undefined,
      isUnchanged: undefined,
      freshUntil: 0,
      pathVerifiedUntil: 0,
      isRecentlyUsed: false,
      streamCount: 0,
      isPopular: false,
      waiting: undefined,
      state: 'idle',
    };
    this.#entries.set(urlPath, entry);
    return entry;
  }

  set(entry: CacheEntry, file: LoadedFile): void {
    this.invalidate(entry);
    entry.file = file;
    entry.streamCount = 0;
    this.#bytes += file.bodyBytes;
    this.#fileCount++;
    if (this.#bytes > this.#maxBytes) this.#evict(() => this.#bytes > this.#maxBytes, this.#evictBodies);
    if (this.#fileCount > this.#maxEntries)
      this.#evict(() => this.#fileCount > this.#maxEntries, this.#evictFile);
  }

  /** Removes the file of an entry. */
  invalidate(entry: CacheEntry): void {
    if (entry.file === undefined) return;
    this.#bytes -= entry.file.bodyBytes;
    this.#fileCount--;
    entry.file = undefined;
    entry.isUnchanged = undefined;
    entry.freshUntil = 0;
  }

  /** Deletes an entry that has no file and no waiting requests. */
  release(entry: CacheEntry): void {
    if (entry.file === undefined && entry.state === 'idle') this.#entries.delete(entry.urlPath);
  }

  /** Counts a stream of a body that would fit in the cache, and has the body loaded when it is requested often. */
  countStream(entry: CacheEntry): void {
    if (++entry.streamCount < STREAMS_UNTIL_RELOAD) return;
    entry.isPopular = true;
    this.invalidate(entry);
  }

  /** Second-chance eviction: an entry that was used since the last scan moves to the end instead of being evicted. */
  #evict(isOverBound: () => boolean, evict: (entry: CacheEntry, file: LoadedFile) => void): void {
    // Entries that move to the end are visited again: two visits per entry suffice.
    let visits = 2 * this.#entries.size;
    for (const entry of this.#entries.values()) {
      if (visits-- <= 0 || !isOverBound()) return;
      if (entry.state !== 'idle' || entry.file === undefined) continue;
      this.#entries.delete(entry.urlPath);
      if (entry.isRecentlyUsed) {
        entry.isRecentlyUsed = false;
        this.#entries.set(entry.urlPath, entry);
      } else evict(entry, entry.file);
    }
  }

  readonly #evictFile = (entry: CacheEntry): void => {
    this.invalidate(entry);
  };

  readonly #evictBodies = (entry: CacheEntry, file: LoadedFile): void => {
    if (!file.canStream) {
      this.invalidate(entry);
      return;
    }
    this.#entries.set(entry.urlPath, entry);
    if (file.bodyBytes === 0) return;
    this.#bytes -= file.bodyBytes;
    entry.file = withoutBodies(file);
    entry.isPopular = false;
    entry.streamCount = 0;
  };
}
