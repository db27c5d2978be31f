import type { MaybePromise } from '../../types/connect.ts';
import type { CacheEntry, CacheLookup, CachePubSub, CacheStore } from '../../types/response-cache.ts';
import { registerGauge } from '../diagnostics/stats.ts';
import { startTimeLimit } from '../http/timers.ts';
import { isListOf } from '../options/rules.ts';
import { isObject, isString, isThenable, settle } from '../options/values.ts';
import { BoundedStore } from '../redis/bounded.ts';
import { SharedMemoryStore } from './invalidations.ts';
import { MemoryStore } from './memory-store.ts';

/** An entry whose body is compressed. */
export interface EncodedEntry extends CacheEntry {
  readonly etag?: string | undefined;
}

/** The stores of this package that are passed as an option. */
export const byteStores: WeakSet<CacheStore> = new WeakSet();

/** The longest time, in milliseconds, for which a request waits for the store. */
const STORE_MILLISECONDS = 50;

const SLOW = `the store did not reply within ${STORE_MILLISECONDS} ms; requests are executed until it replies`;

const UNAVAILABLE: CacheLookup = { entry: undefined, version: undefined };

/** The store of a response cache. While it is unavailable, requests are executed. */
export class FailsafeStore {
  /** Whether the store keeps any bytes: those of applications have to keep text only. */
  readonly keepsBytes: boolean;
  readonly #store: CacheStore;
  readonly #report: (error: unknown) => void;
  readonly #bounded: BoundedStore;
  #hits = 0;
  #misses = 0;

  constructor(store: CacheStore, report: (error: unknown) => void, keepsBytes = false) {
    this.keepsBytes = keepsBytes;
    this.#store = store;
    this.#report = report;
    this.#bounded = new BoundedStore({
      timeout: STORE_MILLISECONDS,
      late: SLOW,
      // Other keys may still be readable, for example if Redis is full.
      pausesAfterError: false,
      report,
    });
    registerGauge(this, { kind: 'responses', read: () => ({ hits: this.#hits, misses: this.#misses }) });
  }

  /** Returns the entry of a compressed result, which is not a miss if it does not exist. */
  getEncoded(key: string): MaybePromise<EncodedEntry | undefined> {
    return settle(this.#lookUp(key), (lookup) => lookup.entry && this.#count(lookup).entry);
  }

  get(key: string): MaybePromise<CacheLookup> {
    const found = this.#lookUp(key);
    return isThenable(found) ? found.then((lookup) => this.#count(lookup)) : this.#count(found);
  }

  set(key: string, entry: CacheEntry, version: number | string): MaybePromise<boolean> {
    return settle(
      this.#bounded.use(() => this.#store.set(key, entry, version), false),
      (stored) => stored === true,
    );
  }

  /** Resolves when the invalidation is acknowledged. */
  async invalidate(tags: readonly string[]): Promise<void> {
    await this.#store.invalidate(tags);
  }

  /**
   * Invalidates tags before a result is sent. Undefined if that is done; otherwise a promise that is resolved after
   * the limit at the latest, while the store still sends the invalidation.
   */
  invalidateSoon(tags: readonly string[]): Promise<void> | undefined {
    try {
      const done = this.#store.invalidate(tags);
      return isThenable(done) ? this.#waitForInvalidation(Promise.resolve(done)) : undefined;
    } catch (error) {
      this.#report(error);
      return undefined;
    }
  }

  #count(lookup: CacheLookup): CacheLookup {
    if (lookup.entry === undefined) this.#misses += 1;
    else this.#hits += 1;
    return lookup;
  }

  #waitForInvalidation(done: Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      const cancel = startTimeLimit(STORE_MILLISECONDS, resolve);
      done.catch(this.#report).finally(() => {
        cancel();
        resolve();
      });
    });
  }

  #lookUp(key: string): MaybePromise<CacheLookup> {
    return this.#bounded.use(() => settle(this.#store.get(key), checkLookup), UNAVAILABLE);
  }
}

/** A store of the application with an error must not fail requests. */
function checkLookup(lookup: CacheLookup): CacheLookup {
  if (isObject(lookup) && (lookup.entry === undefined || isEntry(lookup.entry))) return lookup;
  throw new TypeError('The store of the option "responseCache.store" has returned a wrong lookup or entry');
}

function isEntry(entry: Partial<CacheEntry> | null): boolean {
  const { body, policy } = entry ?? {};
  return (
    (isString(body) || Buffer.isBuffer(body)) &&
    isObject(policy) &&
    isTexts(policy['tags']) &&
    isTexts(policy['vary']) &&
    [entry?.storedAt, entry?.lifetime, entry?.expires].every(Number.isFinite)
  );
}

const isTexts = isListOf(isString);

/** Creates a store in the memory of the process; with a pubsub, invalidations reach all processes. */
export function createProcessStore(maxBytes: number, pubsub: CachePubSub | undefined): CacheStore {
  const memory = new MemoryStore(maxBytes);
  return pubsub === undefined ? memory : new SharedMemoryStore(memory, pubsub);
}
