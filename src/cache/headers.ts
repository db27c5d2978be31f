import { hash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { CachePolicy } from '../../types/caching.ts';
import type { ResponseHooks } from '../core/extension.ts';
import { encodedTag } from '../http/codings.ts';
import { checkPreconditions } from '../http/conditions.ts';
import { type Exchange, isCacheable, type ResultCaching } from '../http/exchange.ts';
import { GRAPHQL_TYPE } from '../http/negotiation.ts';
import { type Headers, HttpError, isWriteReplaced, type Reply, withVary } from '../http/reply.ts';
import { hasCredentials, maySetCookie } from './credentials.ts';
import type { CachingSettings } from './options.ts';

/**
 * Creates what a cache adds to the responses of one handler: the age of stored results, and with the option `httpCache`
 * the headers of caches. They turn the response of a GET, HEAD or QUERY into a 304 if the client has it.
 */
export function createCacheHeaders(options: CachingSettings | undefined): ResponseHooks {
  const onReply: ResponseHooks['onReply'] = (exchange, response, reply, encoding) => {
    const { req, res, caching } = exchange;
    if (caching === undefined) return;
    if (caching.age !== undefined) reply.headers['age'] = String(caching.age);
    if (options === undefined) return;
    if (response.status !== 200 || response.cause.kind !== 'data') return;
    const { headers } = reply;
    // The application's own header has priority.
    if (!res.hasHeader('cache-control')) addPolicy(headers, exchange, caching.policy(), options);
    // Routers and clients read the policy of a POST. No cache stores it without `Content-Location` (RFC 9110 §9.3.3).
    if (req.method === 'POST') return;
    const own = res.getHeader('etag');
    const plain =
      own === undefined ? weakenIfPatched(res, tagOf(caching, reply.body ?? '', response.type)) : String(own);
    const tag = encoding === undefined ? plain : encodedTag(plain, encoding);
    headers['etag'] = tag;
    switch (checkPreconditions(req.headers, { tag, modified: undefined })) {
      case 'not-modified':
        toNotModified(reply, res);
        // A compressor adds this only to responses with content; a cache takes `Vary` from the 304.
        if (isWriteReplaced(res)) headers['vary'] = withVary(headers['vary'], 'Accept-Encoding');
        return;
      case 'failed':
        throw new HttpError(412, 'The result has another ETag than If-Match', {
          code: 'PRECONDITION_FAILED',
        });
    }
  };
  return {
    onReply,
    tagOf: ({ caching }, { body, type }) => options && caching && tagOf(caching, body, type),
  };
}

/** Adds `Cache-Control`, `CDN-Cache-Control` (RFC 9213), `Vary` and the header of tags. */
function addPolicy(
  headers: Headers,
  exchange: Exchange,
  policy: CachePolicy,
  { tags: place }: CachingSettings,
): void {
  if (!isCacheable(policy)) return;
  const { maxAge, sharedMaxAge, tags } = policy;
  let names = policy.vary;
  // A shared cache that does not know all tags could not remove the result.
  const isComplete = place === false || place === 'extensions' || fitIntoHeader(tags);
  const isPublic = policy.scope === 'PUBLIC' && isComplete && isShared(exchange);
  if (isPublic) {
    const isEqual = sharedMaxAge === maxAge;
    headers['cache-control'] = `public, max-age=${maxAge}${isEqual ? '' : `, s-maxage=${sharedMaxAge}`}`;
    if (!isEqual) headers['cdn-cache-control'] = `max-age=${sharedMaxAge}`;
    const age = exchange.caching?.age ?? 0;
    if (age > 0) headers['x-accel-expires'] = secondsForNginx(sharedMaxAge - age);
    if (place !== false && place !== 'extensions' && tags.length > 0) {
      headers[place.toLowerCase()] = tags.join(place === 'Cache-Tag' ? ',' : ' ');
    }
  } else if (maxAge > 0) {
    headers['cache-control'] = `private, max-age=${maxAge}`;
    // Another user of the same browser must not get the stored response.
    names = [...names, 'authorization', 'cookie'];
  }
  if (names.length > 0) headers['vary'] = withVary(headers['vary'], toFieldNames(names));
}

/**
 * nginx ignores `Age`, and would keep a stored result for its whole lifetime again. An expired result gets a time that
 * has passed: with 0 in a 304, nginx takes the lifetime of the response that it has.
 */
const secondsForNginx = (left: number): string => (left > 0 ? String(left) : '@1');

/** Returns the different names of a list, separated by commas. */
const toFieldNames = (names: readonly string[]): string =>
  [...new Set(names.map((name) => name.toLowerCase()))].map(toFieldName).join(', ');

/**
 * Whether all users get the same result: the option `responseCache.key` has returned an empty key, or without it the request
 * has no credentials. With the option `auth` the result must not depend on the caller.
 */
function isShared({ req, res, userKey, isRestricted }: Exchange): boolean {
  if (isRestricted) return false;
  if (userKey === undefined) return !hasCredentials(req, res);
  // A shared cache would send the cookie to other users too.
  return userKey === '' && !maySetCookie(req, res);
}

/** Returns the ETag of a result without a coding. That of a stored result is computed once. */
function tagOf(caching: ResultCaching, body: string | Buffer, type: string): string {
  const create = (): string => createEtag(body, type);
  return caching.etagOf?.(body, create) ?? create();
}

/** Writes a name with capitals, as in `Accept-Language`. */
const toFieldName = (name: string): string =>
  name.replace(/(^|-)([a-z])/g, (letters) => letters.toUpperCase());

/** RFC 9110 §15.4.5: a 304 has the headers for caches, and no content. */
function toNotModified(reply: Reply, res: ServerResponse): void {
  reply.release?.();
  reply.status = 304;
  reply.body = undefined;
  reply.release = undefined;
  delete reply.headers['content-type'];
  delete reply.headers['x-content-type-options'];
  for (const name of ['type', 'encoding', 'language']) res.removeHeader(`content-${name}`);
}

/**
 * Creates the ETag of a response from its bytes. Responses of another media type have another tag, since they
 * are other representations (RFC 9110 §8.8.1).
 */
function createEtag(body: string | Buffer, type: string): string {
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
  const digest = hash('sha1', body, 'base64url');
  return `"${length.toString(16)}-${digest}${type === GRAPHQL_TYPE ? '-g' : ''}"`;
}

/** Weakens a tag if other middleware has patched the response: a compressor sends other bytes (RFC 9110 §8.8.3.3). */
function weakenIfPatched(res: ServerResponse, tag: string): string {
  return isWriteReplaced(res) ? `W/${tag}` : tag;
}

/**
 * Bytes of one header with tags. Clients such as Node refuse a response whose headers have more than 16 KiB together,
 * and CDNs ignore longer lists.
 */
const MAX_BYTES = 7000;

/** Whether a header with the tags, each with a separator, has a size that all clients and CDNs accept. */
const fitIntoHeader = (tags: readonly string[]): boolean =>
  tags.reduce((bytes, tag) => bytes + tag.length + 1, 0) <= MAX_BYTES;
