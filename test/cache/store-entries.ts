import type { CacheEntry, CacheStore } from '../../types/response-cache.ts';

/** An entry of a store, with a body and tags. */
export const entryOf = (body: string, tags: string[] = [], milliseconds = 60_000): CacheEntry => ({
  body,
  policy: { maxAge: 60, sharedMaxAge: 60, scope: 'PUBLIC', vary: [], tags },
  storedAt: Date.now(),
  lifetime: milliseconds,
  expires: Date.now() + milliseconds,
});

/** Waits until the store is connected; returns the version of a lookup. */
export async function versionOf(store: CacheStore, key = 'k'): Promise<string> {
  for (;;) {
    const { version } = await store.get(key);
    if (version !== undefined) return String(version);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Returns the body of an entry; undefined if there is none. */
export const textOf = async (store: CacheStore, key = 'k'): Promise<string | undefined> =>
  (await store.get(key)).entry?.body.toString();
