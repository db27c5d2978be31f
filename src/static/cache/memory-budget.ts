import { registerGauge } from '../../diagnostics/gauges.ts';
import { dropBodies } from '../file/loaded-file.ts';
import type { CacheEntry } from './entry.ts';

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

  /** Counts a body that has to be in memory, and evicts others for it. */
  addBody(entry: CacheEntry, bytes: number): void {
    this.#count(entry, bytes);
    this.#shrinkBodies(entry);
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

  /** Removes the bodies of an entry from memory, or the whole file if it cannot be read from disk. */
  dropBodies(entry: CacheEntry): void {
    const { file } = entry;
    if (file?.canStream !== true) {
      entry.owner.evict(entry);
      return;
    }
    dropBodies(file);
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
