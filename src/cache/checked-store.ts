import type { MaybePromise } from '../../types/connect.ts';
import type { CacheEntry, CacheLookup, CacheStore } from '../../types/response-cache.ts';
import { isCount, isListOf, isString, isThenable, isVary } from '../options/rules.ts';
import { normalTag } from './tags/tags.ts';

/**
 * Checks what a store of the application returns. A store with an error, or with entries of another program, must not
 * fail requests, so its methods throw or reject before a wrong value is used.
 */
export const checkedStore = (store: CacheStore): CacheStore => ({
  get: (key) => whenSettled(store.get(key), checkLookup),
  set: (key, entry, version) => whenSettled(store.set(key, entry, version), (stored) => stored === true),
  invalidate: (tags) => whenSettled(store.invalidate(tags.map(normalTag)), () => undefined),
});

/** Promises of other libraries are replaced by promises of Node. */
function whenSettled<T, R>(result: MaybePromise<T>, use: (value: T) => R): MaybePromise<R> {
  return isThenable(result) ? Promise.resolve(result).then(use) : use(result);
}

/** @throws TypeError */
function checkLookup(lookup: CacheLookup): CacheLookup {
  if (isLookup(lookup)) return lookup;
  throw new TypeError('The store of the option "cache.store" has returned a wrong lookup or entry');
}

function isLookup(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { entry } = value as Partial<CacheLookup>;
  return entry === undefined || isEntry(entry);
}

// The policy becomes headers, which accept few characters.
const isTags = isListOf((tag) => isString(tag) && tag !== '' && normalTag(tag) === tag);

function isEntry(entry: Partial<CacheEntry> | null): boolean {
  if (entry === null) return false;
  const { body, policy, storedAt, lifetime, expires } = entry;
  return (
    (typeof body === 'string' || Buffer.isBuffer(body)) &&
    typeof policy === 'object' &&
    isTags(policy?.tags) &&
    isVary(policy.vary) &&
    (policy.scope === 'PUBLIC' || policy.scope === 'PRIVATE') &&
    isCount(policy.maxAge) &&
    isCount(policy.sharedMaxAge) &&
    Number.isFinite(storedAt) &&
    Number.isFinite(lifetime) &&
    Number.isFinite(expires)
  );
}
