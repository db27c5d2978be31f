import type { CachePolicy } from '../../../types/caching.ts';
import type { CacheEntry } from '../../../types/response-cache.ts';
import { copyOf, ownedBody } from '../../cache/memory-store.ts';
import { MAX_TAGS } from '../../cache/tags/tags.ts';
import type { ExecutionOutcome } from '../../execution/types.ts';
import type { ResultCaching } from '../exchange.ts';
import type { ResponseCacheSettings } from './options.ts';

/** The ETags of entries in the memory of the process. */
const tags = new WeakMap<CacheEntry, string>();

const NO_ERRORS: readonly never[] = Object.freeze([]);

/** A result from the cache: sent like the result of an execution, with its age. */
export class StoredResult implements ExecutionOutcome, ResultCaching {
  readonly kind = 'data';
  readonly body: string | Buffer;
  readonly errors: readonly never[] = NO_ERRORS;
  readonly isFresh: boolean;
  readonly #entry: CacheEntry;
  readonly #milliseconds: number;

  constructor(entry: CacheEntry) {
    const { storedAt, lifetime } = entry;
    this.body = entry.body;
    this.#entry = entry;
    // The clock of another process may be ahead.
    this.#milliseconds = Math.max(0, Date.now() - storedAt);
    this.isFresh = this.#milliseconds < lifetime;
  }

  /** The extensions that an engine function has returned. */
  get extensions(): ExecutionOutcome['extensions'] {
    // Read only if `onOperation` adds others.
    return this.body.includes('"extensions":') ? JSON.parse(this.body.toString()).extensions : undefined;
  }

  /** Seconds since the result was stored. */
  get age(): number {
    return Math.floor(this.#milliseconds / 1000);
  }

  /** The tag of the stored body is computed once. A body that was changed, for example indented, has another one. */
  etagOf(body: string | Buffer, create: () => string): string {
    if (body !== this.body) return create();
    let tag = tags.get(this.#entry);
    if (tag === undefined) {
      tag = create();
      tags.set(this.#entry, tag);
    }
    return tag;
  }

  policy(): CachePolicy {
    return this.#entry.policy;
  }

  /** Whether it may still be sent a number of seconds after it has expired. */
  isUsableFor(seconds: number): boolean {
    return this.#milliseconds < this.#entry.lifetime + seconds * 1000;
  }
}

/** Seconds for which a store with several users keeps a result. */
const lifetimeOf = ({ scope, maxAge, sharedMaxAge }: CachePolicy): number =>
  scope === 'PRIVATE' ? maxAge : sharedMaxAge;

/** Creates the entry of a result; undefined if it must not be stored. */
export function createEntry(
  { kind, body, release, rest }: ExecutionOutcome,
  policy: CachePolicy,
  { staleWhileRevalidate, staleIfError }: ResponseCacheSettings,
): CacheEntry | undefined {
  const lifetime = lifetimeOf(policy) * 1000;
  if (kind !== 'data' || rest !== undefined || !(lifetime > 0)) return undefined;
  if (policy.tags.length > MAX_TAGS) return undefined;
  const storedAt = Date.now();
  const expires = storedAt + lifetime + Math.max(staleWhileRevalidate, staleIfError) * 1000;
  return {
    body: retained(body, release),
    policy,
    storedAt,
    lifetime,
    expires,
  };
}

/** A body that stays unchanged: a pooled buffer is used again as soon as the response was sent. */
function retained(body: string | Buffer, release: ExecutionOutcome['release']): string | Buffer {
  if (typeof body === 'string') return isAsciiText(body) ? body : ownedBody(Buffer.from(body));
  return release === undefined ? ownedBody(body) : copyOf(body);
}

/** Returns the outcome with the body of its entry, which is written faster than a small buffer. */
export function withBodyOf({ body }: CacheEntry, outcome: ExecutionOutcome): ExecutionOutcome {
  return typeof body === 'string' ? { ...outcome, body } : outcome;
}

/** Whether a text has ASCII characters only, so that it has as many bytes as characters. */
const isAsciiText = (text: string): boolean => Buffer.byteLength(text) === text.length;
