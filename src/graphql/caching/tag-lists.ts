import type { Headers } from '../../http/reply/http-error.ts';
import type { Exchange } from '../exchange.ts';

/** Creates a list of strings (RFC 9651 §3.1). Tags contain no character that has to be escaped. */
export const toStrings = (tags: readonly string[]): string => tags.map((tag) => `"${tag}"`).join(', ');

/** Adds the headers that describe the use of the response cache. */
export function addStoreHeaders(headers: Headers, { caching, invalidatedTags }: Exchange): void {
  if (caching?.age !== undefined) headers['age'] = String(caching.age);
  // RFC 9875 §3.
  if (invalidatedTags !== undefined) headers['cache-group-invalidation'] = toStrings(invalidatedTags);
}
