/** A cache with bounds; keys are texts and count by their length. */
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
 * Two generations of entries: a full young one becomes the old one, whose unused entries are then forgotten. A hit in the
 * young one costs a single lookup, where a least-recently-used list would be rewritten at each request.
 */
export function createCache<V>(most: { entries: number; characters: number }): Cache<V> {
  let young = generation<V>();
  let old = generation<V>();

  function set(key: string, value: V): void {
    if (key.length * 2 > most.characters) return;
    if (young.entries.size * 2 >= most.entries || (young.characters + key.length) * 2 > most.characters) {
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
