import type { Headers } from '../../http/reply.ts';
import type { Exchange } from '../exchange.ts';

/**
 * Bytes of one header with tags. Clients such as Node refuse a response whose headers have more than 16 KiB together,
 * and CDNs ignore longer lists.
 */
const MAX_BYTES = 7000;

/** The characters that a list needs per tag: quotes, a comma and a space. */
const SEPARATORS = 4;

/** Returns the number of tags that fit into a header. */
export function fittingTags(tags: readonly string[]): number {
  let left = MAX_BYTES;
  const end = tags.findIndex((tag) => {
    left -= tag.length + SEPARATORS;
    return left < 0;
  });
  return end === -1 ? tags.length : end;
}

/** Creates a list of strings (RFC 9651 §3.1). Tags contain no character that has to be escaped. */
export const toStrings = (tags: readonly string[]): string => tags.map((tag) => `"${tag}"`).join(', ');

/** Adds the headers that describe the use of the response cache. */
export function addStoreHeaders(headers: Headers, { caching, invalidatedTags }: Exchange): void {
  if (caching?.age !== undefined) headers['age'] = String(caching.age);
  // RFC 9875 §3.
  if (invalidatedTags !== undefined) {
    const fitting = invalidatedTags.slice(0, fittingTags(invalidatedTags));
    headers['cache-group-invalidation'] = toStrings(fitting);
  }
}
