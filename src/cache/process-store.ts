import type { MaybePromise } from '../../types/connect.ts';
import type { CacheEntry, CacheLookup, CachePubSub, CacheStore } from '../../types/response-cache.ts';
import { MemoryStore } from './memory-store.ts';
import { SharedInvalidation } from './shared/shared-invalidation.ts';
import { normalTag } from './tags/tags.ts';

const UNAVAILABLE: CacheLookup = { entry: undefined, version: undefined };

/** Creates a store in the memory of the process; with a pubsub, invalidations reach all processes. */
export function createProcessStore(maxBytes: number, pubsub: CachePubSub | undefined): CacheStore {
  const memory = new MemoryStore(maxBytes);
  if (pubsub !== undefined) return new LeasedStore(memory, pubsub);
  return {
    get: (key) => memory.get(key),
    set: (key, entry, version) => memory.set(key, entry, version),
    invalidate: (tags) => memory.remove(tags.map(normalTag)),
  };
}

/** Uses the memory of the process only while it is certain that no invalidation is missing. */
class LeasedStore implements CacheStore {
  readonly #memory: MemoryStore;
  readonly #shared: SharedInvalidation;

  constructor(memory: MemoryStore, pubsub: CachePubSub) {
    this.#memory = memory;
    this.#shared = new SharedInvalidation(pubsub, (tags) => memory.remove(tags));
  }

  get(key: string): MaybePromise<CacheLookup> {
    return this.#shared.isCertain ? this.#memory.get(key) : UNAVAILABLE;
  }

  set(key: string, entry: CacheEntry, version: number | string): boolean {
    return this.#shared.isCertain && this.#memory.set(key, entry, version);
  }

  invalidate(tags: readonly string[]): Promise<void> {
    return this.#shared.invalidate(tags.map(normalTag));
  }
}
