import { isAscii } from 'node:buffer';
import type { LRUCache } from 'lru-cache';
import type { CacheEntry, CacheLookup, CacheStore } from '../../types/response-cache.ts';
import { packages } from '../diagnostics/packages.ts';
import { registerGauge } from '../diagnostics/stats.ts';
import { ALL_TAGS } from './invalidations.ts';

/** The largest entry, as a fraction of the store. */
const SHARE = 1 / 8;
/** Measured: the bytes of an entry without key, body and tags, and of one of its tags. */
const ENTRY_BYTES = 700;
const TAG_BYTES = 150;
/** Milliseconds by which the clock may be corrected. */
const MAX_CLOCK_ERROR = 1000;
/** Bytes up to which an ASCII body is stored as a string, which is written faster than a buffer. */
const MAX_TEXT_BYTES = 4 * 1024;

interface Item {
  readonly key: string;
  readonly entry: CacheEntry;
}

/** Responses in the memory of the process, bounded in bytes. The least recently used ones are removed first. */
export class MemoryStore implements CacheStore {
  readonly #items: LRUCache<string, Item>;
  readonly #byTag = new Map<string, Item | Set<Item>>();
  readonly #log = new InvalidationLog();
  readonly #maxEntryBytes: number;
  /** The difference between the clock and the running time of the process. */
  #offset = Number.NEGATIVE_INFINITY;

  constructor(maxBytes: number) {
    this.#maxEntryBytes = Math.max(1, Math.floor(maxBytes * SHARE));
    const { LRUCache: Items } = packages.lruCache();
    this.#items = new Items({
      maxSize: maxBytes,
      maxEntrySize: this.#maxEntryBytes,
      dispose: (item: Item) => this.#unlink(item),
    });
    const read = () => ({ entries: this.size, bytes: this.bytes, maxBytes });
    registerGauge(this, { kind: 'responses', read });
  }

  get size(): number {
    return this.#items.size;
  }

  /** The bytes that the entries are estimated to retain. */
  get bytes(): number {
    return this.#items.calculatedSize;
  }

  get(key: string): CacheLookup {
    const now = Date.now();
    this.#checkClock(now);
    const item = this.#items.get(key);
    const { version } = this.#log;
    if (item === undefined) return { entry: undefined, version };
    if (now < item.entry.expires) return { entry: item.entry, version };
    this.#items.delete(key);
    return { entry: undefined, version };
  }

  set(key: string, entry: CacheEntry, version: number | string): boolean {
    if (typeof version !== 'number') return false;
    if (!this.#log.isCurrent(entry.policy.tags, version)) return false;
    const size = sizeOf(key, entry);
    if (size > this.#maxEntryBytes) return false;
    const body = ownedBody(entry.body);
    const item = { key, entry: body === entry.body ? entry : { ...entry, body } };
    this.#items.set(key, item, { size });
    for (const tag of entry.policy.tags) this.#link(tag, item);
    return true;
  }

  /** Removes the entries with one of these tags. */
  invalidate(tags: readonly string[]): void {
    this.#log.add(tags);
    if (tags.includes(ALL_TAGS)) {
      this.#items.clear();
      this.#byTag.clear();
      return;
    }
    for (const tag of tags) {
      const linked = this.#byTag.get(tag);
      if (linked instanceof Set) for (const { key } of linked) this.#items.delete(key);
      else if (linked !== undefined) this.#items.delete(linked.key);
    }
  }

  /**
   * When the clock was set back, the ages of the entries are unknown. The clock also advances while the machine
   * sleeps.
   */
  #checkClock(now: number): void {
    const offset = now - performance.now();
    if (offset < this.#offset - MAX_CLOCK_ERROR) this.invalidate([ALL_TAGS]);
    this.#offset = offset;
  }

  /** Most tags have one entry, and need no set. */
  #link(tag: string, item: Item): void {
    const linked = this.#byTag.get(tag);
    if (linked === undefined) this.#byTag.set(tag, item);
    else if (linked instanceof Set) linked.add(item);
    else if (linked !== item) this.#byTag.set(tag, new Set([linked, item]));
  }

  #unlink(item: Item): void {
    for (const tag of item.entry.policy.tags) {
      const linked = this.#byTag.get(tag);
      if (linked === item) this.#byTag.delete(tag);
      else if (linked instanceof Set) {
        linked.delete(item);
        if (linked.size === 0) this.#byTag.delete(tag);
      }
    }
  }
}

function sizeOf(key: string, { body, policy }: CacheEntry): number {
  let size = ENTRY_BYTES + key.length * 2 + body.length;
  for (const tag of policy.tags) size += TAG_BYTES + tag.length * 2;
  return size;
}

/** A body that shares no memory with other buffers: a slice would retain the whole slab that it belongs to. */
export function ownedBody(body: string | Buffer): string | Buffer {
  if (typeof body === 'string') return body;
  if (body.length <= MAX_TEXT_BYTES && isAscii(body)) return body.toString('latin1');
  return body.length === body.buffer.byteLength ? body : copyOf(body);
}

/** Returns a copy with memory that is not shared. */
export function copyOf(body: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(body.length);
  body.copy(copy);
  return copy;
}

const MAX_TAGS = 20_000;

/**
 * The recent invalidations of one process. An execution that began before an invalidation may have read old
 * data, so its result must not be stored, and the tags of a result are known only at its end.
 */
class InvalidationLog {
  /** Increases with each invalidation. */
  version = 0;
  /** The result of an execution that began earlier cannot be stored, because the log does not reach back. */
  #oldest = 0;
  readonly #versions = new Map<string, number>();

  add(tags: readonly string[]): void {
    this.version++;
    if (tags.includes(ALL_TAGS) || this.#versions.size + tags.length > MAX_TAGS) {
      this.#versions.clear();
      this.#oldest = this.version;
    } else for (const tag of tags) this.#versions.set(tag, this.version);
  }

  /** Whether none of the tags was invalidated since `version`. */
  isCurrent(tags: readonly string[], version: number): boolean {
    if (version === this.version) return true;
    if (version < this.#oldest) return false;
    return !tags.some((tag) => (this.#versions.get(tag) ?? 0) > version);
  }
}
