import type { MaybePromise } from '../../types/connect.ts';
import type { CacheEntry, CacheLookup, CachePubSub, CacheStore } from '../../types/response-cache.ts';
import { registerGauge } from '../diagnostics/stats.ts';
import { startTimeLimit } from '../http/timers.ts';
import { isListOf, isObject, isString, isThenable, settle } from '../options/rules.ts';
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

/** A store that did not reply is tried again after this time. */
const PROBE_MILLISECONDS = 1000;

const SLOW = `the store did not reply within ${STORE_MILLISECONDS} ms; requests are executed until it replies`;

const UNAVAILABLE: CacheLookup = { entry: undefined, version: undefined };

/**
 * Limits the waits for a store. A slow store counts as unavailable: requests are executed and do not wait for it
 * until it has replied, except one request per second.
 */
export class GuardedStore {
  /** Whether the store keeps any bytes: those of applications have to keep text only. */
  readonly keepsBytes: boolean;
  readonly #store: CacheStore;
  readonly #report: (error: unknown) => void;
  /** The time until which the store is not used; undefined while it replies. */
  #suspendedUntil: number | undefined;
  #hits = 0;
  #misses = 0;

  constructor(store: CacheStore, report: (error: unknown) => void, keepsBytes = false) {
    this.keepsBytes = keepsBytes;
    this.#store = store;
    this.#report = report;
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
      this.#limit(() => this.#store.set(key, entry, version), false),
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
    return this.#limit(() => settle(this.#store.get(key), checkLookup), UNAVAILABLE);
  }

  #limit<T>(use: () => MaybePromise<T>, unavailable: T): MaybePromise<T> {
    if (this.#suspendedUntil !== undefined) {
      if (performance.now() < this.#suspendedUntil) return unavailable;
      // This request tries again; others do not.
      this.#suspendedUntil = performance.now() + PROBE_MILLISECONDS;
    }
    try {
      const result = use();
      // Promises of other libraries may have no `catch`.
      return isThenable(result) ? this.#wait(Promise.resolve(result), unavailable) : result;
    } catch (error) {
      this.#report(error);
      return unavailable;
    }
  }

  #wait<T>(result: Promise<T>, unavailable: T): Promise<T> {
    return new Promise((resolve) => {
      const cancel = startTimeLimit(STORE_MILLISECONDS, () => {
        this.#suspendedUntil = performance.now() + PROBE_MILLISECONDS;
        this.#report(new Error(SLOW));
        resolve(unavailable);
      });
      result.then(
        (value) => {
          cancel();
          this.#suspendedUntil = undefined;
          resolve(value);
        },
        (error: unknown) => {
          cancel();
          this.#report(error);
          resolve(unavailable);
        },
      );
    });
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
