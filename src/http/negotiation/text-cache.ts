/** The texts that a cache keeps. */
interface TextCacheLimits {
  readonly entries: number;
  /** The longest text in characters. */
  readonly length: number;
}

const HEADERS: TextCacheLimits = { entries: 32, length: 512 };

/** Caches the results of `parse` by header value, since clients repeat a few values. */
export const cacheByHeader = <T>(parse: (header: string) => T): ((header: string) => T) =>
  cacheByText(parse, HEADERS);

/** Caches the results of `parse` by text. A full cache is emptied. */
export function cacheByText<T>(
  parse: (text: string) => T,
  { entries, length }: TextCacheLimits,
): (text: string) => T {
  const cache = new Map<string, T>();
  return (text) => {
    let parsed = cache.get(text);
    if (parsed === undefined) {
      parsed = parse(text);
      if (text.length <= length) {
        if (cache.size >= entries) cache.clear();
        cache.set(text, parsed);
      }
    }
    return parsed;
  };
}
