import type { MaybePromise } from '../../types/connect.ts';
import {
  type Coding,
  canEncode,
  encode,
  encodedTag,
  encodeSync,
  encodingId,
  type Preferences,
  parsePreferences,
} from '../http/codings.ts';
import { type Exchange, type GraphQLResponse, hasCertificate, isCacheable } from '../http/exchange.ts';
import { cacheByHeader } from '../http/negotiation.ts';
import { HttpError, type Reply } from '../http/reply.ts';
import { settle } from '../options/values.ts';

/** Those that this version of Node can create, in the order of preference. */
const CODINGS: readonly Coding[] = (['zstd', 'br', 'gzip'] as const).filter(canEncode);

/** A result has to be compressed while its client waits, so the levels are low. */
const LEVELS: Readonly<Record<Coding, number>> = { zstd: 3, br: 4, gzip: 5 };

/** The smallest result that is compressed, in bytes. */
const MIN_BYTES = 1024;

/** Bytes up to which compressing costs less than a way through the thread pool. */
const MAX_SYNC_BYTES = 32 * 1024;

interface ResponseEncoding {
  readonly coding: Coding;
  /** Identifies the compressed form of the body, for its ETag; undefined for a body that was stored compressed. */
  readonly id: string | undefined;
}

/** Chooses the codings of the responses of one handler, and compresses them. */
export class Compression {
  /** Whether the rule against BREACH is off. */
  readonly #isForAll: boolean;
  readonly #preferencesOf: (header: string) => Preferences;

  constructor(option: true | 'all') {
    this.#isForAll = option === 'all';
    this.#preferencesOf = cacheByHeader((header) => parsePreferences(header, CODINGS));
  }

  /** @throws HttpError 406 if the client accepts neither a coding nor the result itself (RFC 9110 §12.5.3). */
  assertAcceptable(exchange: Exchange): void {
    const preferences = this.#preferences(exchange);
    if (preferences === undefined || preferences.identityWeight > 0) return;
    if (preferences.preferred.length > 0) return;
    const message = `No supported content coding is acceptable; supported: ${[...CODINGS, 'identity'].join(', ')}`;
    throw new HttpError(406, message, { code: 'NOT_ACCEPTABLE' });
  }

  /** The coding that the client prefers to the body itself. */
  preferred(exchange: Exchange): Coding | undefined {
    const index = this.#preferences(exchange)?.preferred[0];
    return index === undefined ? undefined : CODINGS[index];
  }

  /** The coding of a response; undefined if it is sent as it is. */
  encodingFor(exchange: Exchange, { body, cause, headers }: GraphQLResponse): ResponseEncoding | undefined {
    const stored = exchange.caching?.codingOf?.(body);
    if (stored !== undefined) return { coding: stored, id: undefined };
    const coding = this.preferred(exchange);
    if (coding === undefined || setsHeader(exchange, 'content-encoding', headers)) return undefined;
    const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
    if (length < MIN_BYTES && !this.#refusesIdentity(exchange)) return undefined;
    if (!this.isAllowed(exchange, cause.kind === 'data', headers)) return undefined;
    return { coding, id: encodingId(coding, LEVELS[coding]) };
  }

  /**
   * Whether the length of a compressed response may tell something to other sites (BREACH): their pages can let the
   * browser send credentials that it adds itself. A client that refuses the body itself is not a browser.
   */
  isAllowed(exchange: Exchange, isResult: boolean, headers?: GraphQLResponse['headers']): boolean {
    if (this.#isForAll || !hasAmbientCredentials(exchange, headers)) return true;
    const policy = isResult ? exchange.caching?.policy() : undefined;
    const isPublic = policy !== undefined && isCacheable(policy) && policy.scope === 'PUBLIC';
    return isPublic || this.#refusesIdentity(exchange);
  }

  /** Compresses the body of a reply: a short one at once, a long one in the thread pool. */
  encode(
    exchange: Exchange,
    reply: Reply,
    { coding, id }: ResponseEncoding,
    createTag: () => string | undefined,
  ): MaybePromise<void> {
    const { headers, body = '', release } = reply;
    headers['content-encoding'] = coding;
    if (id === undefined) return;
    const own = headers['etag'] ?? exchange.res.getHeader('etag');
    // Set by the application, for the body without a coding.
    if (headers['etag'] === undefined && own !== undefined) headers['etag'] = encodedTag(String(own), id);
    return settle(compress(body, coding), (bytes) => {
      release?.();
      reply.body = bytes;
      reply.release = undefined;
      exchange.caching?.keepEncoded?.(body, {
        coding,
        bytes,
        createTag() {
          const tag = createTag();
          return tag && encodedTag(tag, id);
        },
      });
    });
  }

  #preferences({ req }: Exchange): Preferences | undefined {
    const header = req.headers['accept-encoding'];
    return typeof header === 'string' ? this.#preferencesOf(header) : undefined;
  }

  #refusesIdentity(exchange: Exchange): boolean {
    return this.#preferences(exchange)?.identityWeight === 0;
  }
}

/** The schemes of credentials that a browser adds itself (RFC 7617, 7616, 4559). */
const BROWSER_SCHEMES = /^(?:basic|digest|negotiate|ntlm)\b/i;

function hasAmbientCredentials(exchange: Exchange, headers: GraphQLResponse['headers']): boolean {
  const { req } = exchange;
  const { cookie, authorization } = req.headers;
  if (cookie !== undefined || setsHeader(exchange, 'set-cookie', headers)) return true;
  if (authorization !== undefined && BROWSER_SCHEMES.test(authorization)) return true;
  return hasCertificate(req);
}

/** Whether the application, or an error of a resolver, sets a header. */
const setsHeader = ({ res }: Exchange, name: string, headers: GraphQLResponse['headers']): boolean =>
  res.hasHeader(name) || headers?.[name] !== undefined;

function compress(body: string | Buffer, coding: Coding): MaybePromise<Buffer> {
  const source = typeof body === 'string' ? Buffer.from(body) : body;
  const encodeBody = source.length <= MAX_SYNC_BYTES ? encodeSync : encode;
  return encodeBody(source, coding, LEVELS[coding]);
}
