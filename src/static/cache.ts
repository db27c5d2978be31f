import type { AsyncResource } from 'node:async_hooks';
import { totalmem } from 'node:os';
import { registerGauge } from '../diagnostics/stats.ts';
import type { CacheSettings } from './options.ts';
import {
  bodyBytesOf,
  dropBodies,
  type LoadedFile,
  type LoadResult,
  type Representation,
} from './representation.ts';

// Bytes of memory of a file without its bodies, and of one further coding, as measured with paths of 40
// characters.
const FILE_BYTES = 1024;
const CODING_BYTES = 700;
// Bytes of memory of a Buffer in addition to its content.
const BUFFER_BYTES = 400;
// The number of uses after which a large body is loaded into memory, so that one scan of large files evicts
// nothing.
const USES_UNTIL_LARGE_BODY = 8;

/**
 * Cached files by URL path. Only files that exist are stored, so unknown paths evict nothing. A memory
 * budget, which other caches may share, bounds the bytes: a file whose body is evicted keeps its ETag and
 * headers, and is read from disk.
 */
export class FileCache {
  readonly #budget: MemoryBudget;
  readonly #entries = new Map<string, CacheEntry>();
  /** Representations whose large bodies are being read into memory. */
  readonly #filling = new Set<Representation>();

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

  /** Counts a request. */
  use(entry: CacheEntry): void {
    this.#budget.use(entry);
  }

  set(entry: CacheEntry, file: LoadedFile): void {
    this.invalidate(entry);
    entry.file = file;
    this.#budget.add(entry, FILE_BYTES + CODING_BYTES * file.precompressed.length);
    const bytes = bodyBytesOf(file);
    if (bytes > 0 && !this.#budget.reserveBody(entry, bytes + BUFFER_BYTES)) dropBodies(file);
  }

  /** Removes the file of an entry. */
  invalidate(entry: CacheEntry): void {
    if (entry.file === undefined) return;
    this.#budget.remove(entry);
    entry.file = undefined;
    entry.isCheckedSync = false;
    entry.freshUntil = 0;
  }

  evict(entry: CacheEntry): void {
    this.invalidate(entry);
    this.release(entry);
  }

  /** Deletes an entry that has no file and no waiting requests. */
  release(entry: CacheEntry): void {
    if (entry.file !== undefined || entry.state !== 'idle') return;
    // Requests may still have an entry that was deleted before.
    if (this.#entries.get(entry.urlPath) === entry) this.#entries.delete(entry.urlPath);
  }

  /** Stores a body that was read from disk, if there is memory for it. */
  keepBody(entry: CacheEntry, representation: Representation, body: Buffer): void {
    if (representation.body !== undefined || entry.slot < 0) return;
    if (this.#budget.reserveBody(entry, body.length + BUFFER_BYTES)) representation.body = body;
  }

  /**
   * Reserves memory for the body of a large file that is requested often; false if it should not be cached
   * now.
   */
  reserveLargeBody(entry: CacheEntry, representation: Representation): boolean {
    if (entry.uses < USES_UNTIL_LARGE_BODY || this.#filling.has(representation)) return false;
    // A file that was just written is likely to change while it is read.
    if (entry.file?.isRacilyClean === true) return false;
    if (representation.body !== undefined || entry.slot < 0) return false;
    if (!this.#budget.reserveBody(entry, representation.metadata.size + BUFFER_BYTES)) return false;
    this.#filling.add(representation);
    entry.isPopular = true;
    return true;
  }

  /** Stores the body for which memory was reserved; undefined if it could not be read. */
  settleLargeBody(entry: CacheEntry, representation: Representation, body: Buffer | undefined): void {
    this.#filling.delete(representation);
    const { file } = entry;
    // The file was replaced or evicted meanwhile, which has returned the memory.
    const isCurrent =
      file?.uncompressed === representation || file?.precompressed.includes(representation) === true;
    if (file === undefined || !isCurrent || !entry.isPopular) return;
    if (body !== undefined) representation.body = body;
    else this.#budget.dropBodies(entry);
  }
}

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
  /** The last check that has started and not ended. */
  check: { readonly startedAt: number } | undefined = undefined;
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

const MIB = 1 << 20;
// Metadata may take half of the budget, so that a crawler of many files leaves room for bodies.
const METADATA_SHARE = 0.5;
const MIN_METADATA_BYTES = 16 * MIB;
// Entries that one search for a victim compares, and visits to find them.
const SAMPLE = 16;
const MAX_VISITS = 1024;
// Requests per entry until the uses of all entries are halved.
const USES_PER_EPOCH = 8;
const MIN_EPOCH = 4096;

/**
 * The memory of one or more caches. Bodies are evicted before metadata. A body replaces others only if its file was requested
 * more than twice as often as theirs: one scan of many files evicts nothing that is in use, and files that are requested equally often
 * do not evict each other by turns.
 */
export class MemoryBudget {
  readonly #maxBytes: number;
  readonly #maxEntries: number;
  readonly #maxMetadataBytes: number;
  readonly #entries: CacheEntry[] = [];
  #seed = 1;
  #metadataBytes = 0;
  #bodyBytes = 0;
  #epoch = 0;
  #usesInEpoch = 0;

  constructor({ maxBytes, maxEntries }: { readonly maxBytes: number; readonly maxEntries: number }) {
    this.#maxBytes = maxBytes;
    this.#maxEntries = maxEntries;
    this.#maxMetadataBytes = Math.max(maxBytes * METADATA_SHARE, MIN_METADATA_BYTES);
    const read = () => ({
      entries: this.#entries.length,
      bytes: this.#metadataBytes + this.#bodyBytes,
      maxBytes,
    });
    registerGauge(this, { kind: 'files', read });
  }

  /** Counts a request. */
  use(entry: CacheEntry): void {
    this.#age(entry);
    entry.uses++;
    if (++this.#usesInEpoch < MIN_EPOCH + USES_PER_EPOCH * this.#entries.length) return;
    this.#usesInEpoch = 0;
    this.#epoch++;
  }

  /** Adds an entry with a file; `metadataBytes` excludes the bodies. */
  add(entry: CacheEntry, metadataBytes: number): void {
    entry.slot = this.#entries.push(entry) - 1;
    entry.metadataBytes = metadataBytes;
    this.#metadataBytes += metadataBytes;
    let victim: CacheEntry | undefined = entry;
    while (this.#hasTooManyFiles() && victim !== undefined) {
      victim = this.#leastUsed(entry, isAny);
      victim?.owner.evict(victim);
    }
    this.#shrinkBodies(entry);
  }

  /** Removes an entry with all its bytes. */
  remove(entry: CacheEntry): void {
    this.#metadataBytes -= entry.metadataBytes;
    this.releaseBodies(entry);
    const last = this.#entries.pop() as CacheEntry;
    if (last !== entry) {
      this.#entries[entry.slot] = last;
      last.slot = entry.slot;
    }
    entry.slot = -1;
  }

  /** Reserves memory for a body, if necessary by evicting less used ones; false if it should not be cached now. */
  reserveBody(entry: CacheEntry, bytes: number): boolean {
    const missing = this.#bodyBytes + bytes - this.#maxBodyBytes();
    if (missing > 0 && (bytes > this.#maxBodyBytes() || !this.#replaceBodies(entry, missing))) return false;
    this.#count(entry, bytes);
    return true;
  }

  #count(entry: CacheEntry, bytes: number): void {
    entry.bodyBytes += bytes;
    this.#bodyBytes += bytes;
  }

  #hasTooManyFiles(): boolean {
    return this.#metadataBytes > this.#maxMetadataBytes || this.#entries.length > this.#maxEntries;
  }

  /** Returns the memory of the bodies of an entry. */
  releaseBodies(entry: CacheEntry): void {
    this.#bodyBytes -= entry.bodyBytes;
    entry.bodyBytes = 0;
  }

  /** Bodies may use the memory that metadata does not use, and at least their share. */
  #maxBodyBytes(): number {
    return Math.max(this.#maxBytes - this.#metadataBytes, this.#maxBytes * (1 - METADATA_SHARE));
  }

  /** Evicts bodies when metadata has grown. */
  #shrinkBodies(except: CacheEntry): void {
    while (this.#bodyBytes > this.#maxBodyBytes()) {
      const victim = this.#leastUsed(except, hasBody);
      if (victim === undefined) return;
      this.dropBodies(victim);
    }
  }

  /** Evicts bodies that are used less than half as often as those of `entry`, until `missing` bytes are free. */
  #replaceBodies(entry: CacheEntry, missing: number): boolean {
    this.#age(entry);
    let left = missing;
    const visits = Math.min(this.#entries.length, SAMPLE + Math.ceil(missing / 4096));
    for (let i = 0; i < visits && left > 0; i++) {
      const victim = this.#entryAtRandom();
      if (victim === entry || !hasBody(victim) || victim.state !== 'idle') continue;
      if (entry.uses <= 2 * victim.uses) continue;
      left -= victim.bodyBytes;
      this.dropBodies(victim);
    }
    return left <= 0;
  }

  /** Removes the bodies of an entry from memory. */
  dropBodies(entry: CacheEntry): void {
    const { file } = entry;
    if (file !== undefined) dropBodies(file);
    this.releaseBodies(entry);
    entry.isPopular = false;
  }

  /** The least used of a few entries without waiting requests. */
  #leastUsed(except: CacheEntry, isEligible: (entry: CacheEntry) => boolean): CacheEntry | undefined {
    let least: CacheEntry | undefined;
    let found = 0;
    for (let visits = 0; visits < MAX_VISITS && found < SAMPLE; visits++) {
      const candidate = this.#entryAtRandom();
      if (candidate === except || candidate.state !== 'idle' || !isEligible(candidate)) continue;
      found++;
      if (least === undefined || candidate.uses < least.uses) least = candidate;
    }
    return least;
  }

  /** Entries that were added one after the other are often equally hot, so a sample does not use neighbours. */
  #entryAtRandom(): CacheEntry {
    this.#seed = (Math.imul(this.#seed, 1_664_525) + 1_013_904_223) >>> 0;
    const entry = this.#entries[Math.floor((this.#seed / 2 ** 32) * this.#entries.length)] as CacheEntry;
    this.#age(entry);
    return entry;
  }

  #age(entry: CacheEntry): void {
    if (entry.epoch === this.#epoch) return;
    entry.uses >>= Math.min(this.#epoch - entry.epoch, 31);
    entry.epoch = this.#epoch;
  }
}

const isAny = (): boolean => true;
const hasBody = ({ bodyBytes }: CacheEntry): boolean => bodyBytes > 0;

const MAX_DEFAULT_BYTES = 256 * 1024 * 1024;
const DEFAULT_SHARE = 1 / 8;

let shared: MemoryBudget | undefined;

/** Returns the memory budget for the options of one middleware. Middlewares without own limits share one budget. */
export function budgetFor({
  maxBytes,
  maxEntries,
}: Pick<CacheSettings, 'maxBytes' | 'maxEntries'>): MemoryBudget {
  const defaults = defaultMaxBytes(process.constrainedMemory(), totalmem());
  if (maxBytes !== undefined || maxEntries !== undefined) {
    return new MemoryBudget({ maxBytes: maxBytes ?? defaults, maxEntries: maxEntries ?? Infinity });
  }
  shared ??= new MemoryBudget({ maxBytes: defaults, maxEntries: Infinity });
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
