const MAX_ENTRIES = 32;
const MAX_LENGTH = 512;

/** Caches the results of `parse` by header value, since clients repeat a few values. */
export function cacheByHeader<T>(parse: (header: string) => T): (header: string) => T {
  const cache = new Map<string, T>();
  return (header) => {
    let parsed = cache.get(header);
    if (parsed === undefined) {
      parsed = parse(header);
      if (header.length <= MAX_LENGTH) {
        if (cache.size >= MAX_ENTRIES) cache.clear();
        cache.set(header, parsed);
      }
    }
    return parsed;
  };
}
