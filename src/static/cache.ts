import type { AsyncResource } from 'node:async_hooks';
import type { Stats } from 'node:fs';
import { totalmem } from 'node:os';
import type { LRUCache } from 'lru-cache';
import { packages } from '../diagnostics/packages.ts';
import { registerGauge } from '../diagnostics/stats.ts';
import type { PageAdditions } from './capabilities.ts';
import type { CompressedCodings } from './compress.ts';
import type { Dependency, NotFound } from './files.ts';
import type { CacheSettings } from './options.ts';
import type { Representation } from './representation.ts';
import type { Variant } from './variants.ts';

/** A file with its headers and bodies, as the cache stores it. */
export interface LoadedFile {
  readonly kind: 'file';
  /** All paths whose stat decided that this file is served. */
  readonly dependencies: readonly Dependency[];
  readonly uncompressed: Representation;
  /** The additions of an HTML file; undefined for all other files and without the option `pages`. */
  readonly page: PageAdditions | undefined;
  /** Asked in each check whether the file is still right, in addition to its dependencies; empty for most files. */
  readonly watched: readonly { isCurrent(): boolean }[];
  /** Files beside this one that show the same in other formats; undefined for most files. */
  readonly variants: readonly Variant[] | undefined;
  /** The paths of this page in other languages; undefined for most files. */
  readonly languages: ReadonlyMap<string, string> | undefined;
  /** Representations from precompressed copies; empty for most files. */
  readonly precompressed: readonly Representation[];
  /** Codings that are created while the file is served; undefined without the option `compress`. */
  readonly createdCodings: CompressedCodings | undefined;
  /** The argument of the `setHeaders` option; undefined without the option. */
  readonly stats: Stats | undefined;
  /** Whether another write could leave the timestamps unchanged; the next request then reads the file again. */
  readonly isRacilyClean: boolean;
  /** The latest ctime of the files, in milliseconds since the epoch. */
  readonly changedAt: number;
}

function bodyBytesOf({ uncompressed, precompressed }: LoadedFile): number {
  let bytes = uncompressed.body?.length ?? 0;
  for (const { body } of precompressed) bytes += body?.length ?? 0;
  return bytes;
}

/** Removes the bodies from memory; responses then read them from disk. */
function dropBodies({ uncompressed, precompressed }: LoadedFile): void {
  uncompressed.body = undefined;
  for (const representation of precompressed) representation.body = undefined;
}

/** A file that has another URL path, with one URL for each page. */
export interface Moved {
  readonly kind: 'moved';
  readonly to: string;
}

/** The result of loading a URL path. `busy`: the file kept changing while it was read. */
export type LoadResult =
  | LoadedFile
  | { readonly kind: 'directory' }
  | { readonly kind: 'busy' }
  | Moved
  | NotFound;

// Bytes of memory of a file without its bodies, and of one further coding, as measured with paths of 40
// characters.
const FILE_BYTES = 1024;
const CODING_BYTES = 700;
// Bytes of memory of a Buffer in addition to its content.
const BUFFER_BYTES = 400;
// The number of uses after which a large body is loaded into memory, so that one scan of large files evicts
// nothing.
const USES_UNTIL_LARGE_BODY = 8;

/** The size of the largest body that is cached. Larger files are always streamed. */
export const maxBodyBytes = (isPopular: boolean): number => (isPopular ? 8 << 20 : 256 << 10);

/**
 * Cached files by URL path. Only files that exist are stored, so unknown paths evict nothing. A memory
 * budget, which other caches may share, bounds the bytes: a file whose body is evicted keeps its ETag and
 * headers, and is read from disk.
 */
export class FileCache {
  readonly #budget: MemoryBudget;
  readonly #entries = new Map<string, CacheEntry>();
  #isClosed = false;

  constructor(budget: MemoryBudget) {
    this.#budget = budget;
  }

  get(urlPath: string): CacheEntry | undefined {
    return this.#entries.get(urlPath);
  }

  getOrCreate(urlPath: string): CacheEntry {
    const existing = this.#entries.get(urlPath);
    if (existing !== undefined) return existing;
    const entry = new CacheEntry(urlPath, this);
    this.#entries.set(urlPath, entry);
    return entry;
  }

  use(entry: CacheEntry): void {
    this.#budget.use(entry);
  }

  set(entry: CacheEntry, file: LoadedFile): void {
    this.invalidate(entry);
    if (this.#isClosed) return;
    entry.file = file;
    this.#budget.add(entry, FILE_BYTES + CODING_BYTES * file.precompressed.length);
    const bytes = bodyBytesOf(file);
    if (bytes > 0 && !this.#budget.reserveBody(entry, bytes + BUFFER_BYTES)) dropBodies(file);
  }

  invalidate(entry: CacheEntry): void {
    if (entry.file === undefined) return;
    this.#budget.remove(entry);
    entry.file = undefined;
    entry.seenWith = undefined;
    entry.isCheckedSync = false;
    entry.wantsBodies = false;
    entry.freshUntil = 0;
  }

  /** Removes the file of an entry, and the entry unless requests wait for it. */
  evict(entry: CacheEntry): void {
    this.invalidate(entry);
    this.release(entry);
  }

  /** Returns the memory of all files. Requests that are being answered continue without a cache. */
  close(): void {
    this.#isClosed = true;
    for (const entry of this.#entries.values()) this.evict(entry);
  }

  /** Deletes an entry that has no file and no waiting requests. */
  release(entry: CacheEntry): void {
    if (entry.file !== undefined || entry.state !== 'idle') return;
    // Requests may still have an entry that was deleted before.
    if (this.#entries.get(entry.urlPath) === entry) this.#entries.delete(entry.urlPath);
  }

  /** Asks the next check to load the file's missing bodies, if they fit into the budget. */
  wantBodies(entry: CacheEntry): void {
    const { file } = entry;
    if (file === undefined || entry.wantsBodies) return;
    const maxBytes = maxBodyBytes(isPopular(entry));
    let missing = 0;
    for (const { body, metadata } of [file.uncompressed, ...file.precompressed])
      if (body === undefined && metadata.size <= maxBytes) missing += metadata.size;
    if (missing === 0 || !this.#budget.reserveBody(entry, missing + BUFFER_BYTES)) return;
    entry.wantsBodies = true;
    entry.freshUntil = 0;
  }
}

/** Whether a file is requested so often that a large body is cached too. */
export const isPopular = (entry: CacheEntry): boolean => entry.uses >= USES_UNTIL_LARGE_BODY;

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
  /** The dependencies of the file whose check also covers this one: they are compared once. */
  seenWith: readonly Dependency[] | undefined = undefined;
  /** Whether the event loop may check the file; otherwise the thread pool does. */
  isCheckedSync = false;
  /** The time until which the file is served without a check (`performance.now()`). */
  freshUntil = 0;
  /** The time until which the symbolic links on the path count as unchanged (`performance.now()`). */
  pathVerifiedUntil = 0;
  /** The number of requests, halved in each epoch of the memory budget. */
  uses = 0;
  epoch = 0;
  /** How many files the memory budget had added when it last moved the entry to the end of its queue. */
  movedAt = 0;
  /** The position among the bodies in the memory budget. */
  slot = -1;
  /** Bytes that the memory budget counts for the file without its bodies, and for its bodies. */
  metadataBytes = 0;
  bodyBytes = 0;
  /** Whether the next check loads the file again, with its bodies. */
  wantsBodies = false;
  /**
   * Requests for the next check. Undefined instead of an empty list, so that few short-lived arrays reach old
   * space.
   */
  waiting: Waiter[] | undefined = undefined;
  /** `checking`: requests that arrive now have to wait for another check. */
  state: 'idle' | 'queued' | 'checking' = 'idle';
  /** The last check that has started and not ended. */
  check: { readonly startedAt: number } | undefined = undefined;
  /** The cache of the entry. Several caches share one memory budget. */
  readonly owner: FileCache;

  constructor(urlPath: string, owner: FileCache) {
    this.urlPath = urlPath;
    this.isLiteral = LITERAL.test(urlPath);
    this.owner = owner;
  }
}

const MIB = 1 << 20;
// Metadata may take half of the budget, so that a crawler of many files leaves room for bodies.
const METADATA_SHARE = 0.5;
const MIN_METADATA_BYTES = 16 * MIB;
// Bodies that are visited to find those that another one replaces, and to find one for which there is no room any more.
const MIN_VISITS = 16;
const MAX_VISITS = 256;
// Requests per file until the uses of all files are halved.
const USES_PER_EPOCH = 8;
const MIN_EPOCH = 4096;

/**
 * The memory of one or more caches. Bodies are evicted before metadata. A body replaces others only if its file was requested
 * more than twice as often as theirs: one scan of many files evicts nothing that is in use, and files that are requested equally often
 * do not evict each other by turns.
 */
export class MemoryBudget {
  readonly #maxBytes: number;
  /** The files, with the bytes of their metadata. The package evicts the least recently requested ones. */
  readonly #files: LRUCache<CacheEntry, CacheEntry>;
  /** The files with bodies, which searches visit in turn. A queue of the package would cost five times as much. */
  readonly #bodies: CacheEntry[] = [];
  #visited = 0;
  #bodyBytes = 0;
  #added = 0;
  #epoch = 0;
  #usesInEpoch = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
    const { LRUCache: Files } = packages.lruCache();
    this.#files = new Files({
      maxSize: Math.floor(Math.max(maxBytes * METADATA_SHARE, MIN_METADATA_BYTES)),
      sizeCalculation: (entry: CacheEntry) => entry.metadataBytes,
      disposeAfter: (entry: CacheEntry, _key: CacheEntry, reason: string) => {
        if (reason === 'evict') entry.owner.evict(entry);
      },
    });
    const read = () => ({
      entries: this.#files.size,
      bytes: this.#files.calculatedSize + this.#bodyBytes,
      maxBytes,
    });
    registerGauge(this, { kind: 'files', read });
  }

  use(entry: CacheEntry): void {
    this.#age(entry);
    entry.uses++;
    // A file among the newest quarter need not be moved: without new files, requests move none.
    if (this.#added - entry.movedAt > this.#files.size >> 2) {
      entry.movedAt = this.#added;
      this.#files.get(entry);
    }
    if (++this.#usesInEpoch < MIN_EPOCH + USES_PER_EPOCH * this.#files.size) return;
    this.#usesInEpoch = 0;
    this.#epoch++;
  }

  /** Adds an entry with a file; `metadataBytes` excludes the bodies. */
  add(entry: CacheEntry, metadataBytes: number): void {
    entry.metadataBytes = metadataBytes;
    entry.movedAt = ++this.#added;
    this.#files.set(entry, entry);
    this.#shrinkBodies(entry);
  }

  remove(entry: CacheEntry): void {
    this.#files.delete(entry);
    this.#releaseBodies(entry);
  }

  /** Reserves memory for a body, if necessary by evicting less used ones; false if it should not be cached now. */
  reserveBody(entry: CacheEntry, bytes: number): boolean {
    const max = this.#maxBodyBytes();
    const missing = this.#bodyBytes + bytes - max;
    if (missing > 0 && (bytes > max || !this.#replaceBodies(entry, missing))) return false;
    if (entry.bodyBytes === 0) entry.slot = this.#bodies.push(entry) - 1;
    entry.bodyBytes += bytes;
    this.#bodyBytes += bytes;
    return true;
  }

  /** Bodies may use the memory that metadata does not use, and at least their share. */
  #maxBodyBytes(): number {
    return Math.max(this.#maxBytes - this.#files.calculatedSize, this.#maxBytes * (1 - METADATA_SHARE));
  }

  /** Evicts bodies when metadata has grown. */
  #shrinkBodies(except: CacheEntry): void {
    while (this.#bodyBytes > this.#maxBodyBytes()) {
      const victim = this.#leastUsed(except);
      if (victim === undefined) return;
      this.#dropBodies(victim);
    }
  }

  /** Evicts bodies that are used less than half as often as those of `entry`, until `missing` bytes are free. */
  #replaceBodies(entry: CacheEntry, missing: number): boolean {
    this.#age(entry);
    let left = missing;
    const visits = Math.min(this.#bodies.length, MIN_VISITS + Math.ceil(missing / 4096));
    for (let i = 0; i < visits && left > 0; i++) {
      const victim = this.#nextBody();
      if (victim === entry || victim.state !== 'idle' || entry.uses <= 2 * victim.uses) continue;
      left -= victim.bodyBytes;
      this.#dropBodies(victim);
    }
    return left <= 0;
  }

  #dropBodies(entry: CacheEntry): void {
    const { file } = entry;
    if (file !== undefined) dropBodies(file);
    this.#releaseBodies(entry);
    entry.wantsBodies = false;
  }

  #releaseBodies(entry: CacheEntry): void {
    if (entry.bodyBytes === 0) return;
    this.#bodyBytes -= entry.bodyBytes;
    entry.bodyBytes = 0;
    const last = this.#bodies.pop() as CacheEntry;
    if (last === entry) return;
    this.#bodies[entry.slot] = last;
    last.slot = entry.slot;
  }

  /** The first of the next bodies whose file was requested once, or the least used of them. */
  #leastUsed(except: CacheEntry): CacheEntry | undefined {
    let least: CacheEntry | undefined;
    for (let visits = Math.min(this.#bodies.length, MAX_VISITS); visits > 0; visits--) {
      const candidate = this.#nextBody();
      if (candidate === except || candidate.state !== 'idle') continue;
      if (least === undefined || candidate.uses < least.uses) least = candidate;
      if (least.uses <= 1) break;
    }
    return least;
  }

  #nextBody(): CacheEntry {
    this.#visited = this.#visited + 1 < this.#bodies.length ? this.#visited + 1 : 0;
    const entry = this.#bodies[this.#visited] as CacheEntry;
    this.#age(entry);
    return entry;
  }

  #age(entry: CacheEntry): void {
    if (entry.epoch === this.#epoch) return;
    entry.uses >>= Math.min(this.#epoch - entry.epoch, 31);
    entry.epoch = this.#epoch;
  }
}

const MAX_DEFAULT_BYTES = 256 * 1024 * 1024;
const DEFAULT_SHARE = 1 / 8;

let shared: MemoryBudget | undefined;

/** Returns the memory budget for the options of one middleware. Middlewares without `maxBytes` share one budget. */
export function budgetFor({ maxBytes }: Pick<CacheSettings, 'maxBytes'>): MemoryBudget {
  if (maxBytes !== undefined) return new MemoryBudget(maxBytes);
  shared ??= new MemoryBudget(defaultMaxBytes(process.constrainedMemory(), totalmem()));
  return shared;
}

/**
 * Returns the default of `maxBytes`.
 *
 * @param constrained - the memory limit of the process' control group; undefined, 0 or a huge number without one
 */
export function defaultMaxBytes(constrained: number | undefined, total: number): number {
  const available = constrained === undefined || constrained <= 0 ? total : Math.min(constrained, total);
  return Math.min(MAX_DEFAULT_BYTES, Math.floor(available * DEFAULT_SHARE));
}
