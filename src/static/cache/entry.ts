import type { AsyncResource } from 'node:async_hooks';
import type { LoadedFile, LoadResult } from '../file/loaded-file.ts';

/** A request that waits for the check of a cache entry. */
export interface Waiter {
  readonly entry: CacheEntry;
  /** The request's asynchronous context: requests share a check, but each keeps its own AsyncLocalStorage. */
  readonly asyncScope: AsyncResource;
  /** Continues the request after the check, in `asyncScope`. */
  onChecked(error: unknown, result: LoadResult | undefined): void;
}

// Excludes the bare root, which may have to redirect to the mount path with a slash, and paths that the
// parser refuses or the option `dotfiles` decides about: the fallback file may be at such a path.
const LITERAL = /^(?:\/(?!\.)[\w\-.~!$&'()*+,;=:@]+)+\/?$/;

/** The state of one URL path while a file is cached for it or requests wait for it. */
export class CacheEntry {
  readonly urlPath: string;
  /** Whether a URL can contain the path as it is, without percent-encoding: such requests skip parsing. */
  readonly isLiteral: boolean;
  file: LoadedFile | undefined = undefined;
  /** Whether the event loop may check the file; otherwise the thread pool does. */
  isCheckedSync = false;
  /** The generation of the mount table at the last check. A new mount could cover the file. */
  mountGeneration = 0;
  /** The time until which the file is served without a check (`performance.now()`). */
  freshUntil = 0;
  /** The time until which the symbolic links on the path count as unchanged (`performance.now()`). */
  pathVerifiedUntil = 0;
  /** The number of requests, halved in each epoch of the memory budget. */
  uses = 0;
  epoch = 0;
  /** The position in the memory budget; -1 without a file. */
  slot = -1;
  /** Bytes that the memory budget counts for the file without its bodies, and for its bodies. */
  metadataBytes = 0;
  bodyBytes = 0;
  /** Whether a large body was cached or is being read into the cache. */
  isPopular = false;
  /**
   * Requests for the next check. Undefined instead of an empty list, so that few short-lived arrays reach old
   * space.
   */
  waiting: Waiter[] | undefined = undefined;
  /** `checking`: requests that arrive now have to wait for another check. */
  state: 'idle' | 'queued' | 'checking' = 'idle';
  readonly owner: EntryOwner;

  constructor(urlPath: string, owner: EntryOwner) {
    this.urlPath = urlPath;
    this.isLiteral = LITERAL.test(urlPath);
    this.owner = owner;
  }
}

/** The cache that an entry belongs to. Several caches share one memory budget. */
interface EntryOwner {
  /** Removes the file of an entry, and the entry unless requests wait for it. */
  evict(entry: CacheEntry): void;
}
