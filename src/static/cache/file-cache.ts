import { bodyBytesOf, dropBodies, type LoadedFile } from '../file/loaded-file.ts';
import type { Representation } from '../file/representation.ts';
import { CacheEntry } from './entry.ts';
import type { MemoryBudget } from './memory-budget.ts';

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
    if (bytes === 0) return;
    if (!file.canStream) this.#budget.addBody(entry, bytes + BUFFER_BYTES);
    else if (!this.#budget.reserveBody(entry, bytes + BUFFER_BYTES)) dropBodies(file);
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
