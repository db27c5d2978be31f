/** A bounded cache; keys are strings, weighed by their length. */
export interface Cache<V> {
  get(key: string): V | undefined;
  set(key: string, value: V): void;
}

interface Generation<V> {
  readonly entries: Map<string, V>;
  characters: number;
}

const generation = <V>(): Generation<V> => ({ entries: new Map(), characters: 0 });

/**
 * Creates a cache of two generations. When the young one is full it replaces the old one, whose entries are evicted unless
 * they were used. A hit in the young one is a single look-up, where a least-recently-used list would be rewritten.
 */
export function createCache<V>(max: { entries: number; characters: number }): Cache<V> {
  let young = generation<V>();
  let old = generation<V>();

  function set(key: string, value: V): void {
    if (key.length * 2 > max.characters) return;
    if (young.entries.size * 2 >= max.entries || (young.characters + key.length) * 2 > max.characters) {
      old = young;
      young = generation();
    }
    young.entries.set(key, value);
    young.characters += key.length;
  }

  return {
    set,
    get(key) {
      const value = young.entries.get(key);
      if (value !== undefined) return value;
      const stale = old.entries.get(key);
      if (stale !== undefined) set(key, stale);
      return stale;
    },
  };
}
