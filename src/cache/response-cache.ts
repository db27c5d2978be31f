import { setImmediate } from 'node:timers';
import type { CachePolicy } from '../../types/caching.ts';
import type { MaybePromise } from '../../types/connect.ts';
import type { CacheEntry, CacheLookup } from '../../types/response-cache.ts';
import { isPublicError } from '../core/errors.ts';
import { hasTimedOut } from '../execution/deadline.ts';
import { type ExecutionOutcome, isThenable } from '../execution/types.ts';
import { CLIENT_ABORTED } from '../http/body.ts';
import type { Coding } from '../http/codings.ts';
import type { EncodedBody, ResultCaching } from '../http/exchange.ts';
import { settle } from '../options/values.ts';
import type { CacheableQuery } from './cached-query.ts';
import { MAX_TAGS } from './invalidations.ts';
import { copyOf, ownedBody } from './memory-store.ts';
import type { ResponseCacheSettings } from './options.ts';
import type { EncodedEntry, FailsafeStore } from './store.ts';

/** Stores results of queries and sends them without an execution. */
export class ResponseCache {
  readonly #store: FailsafeStore;
  readonly #settings: ResponseCacheSettings;
  readonly #flights = new Flights();
  /** The executions in the background that replace expired results. One that never ends counts for a limited time. */
  readonly #revalidations = new Flights();

  constructor(store: FailsafeStore, settings: ResponseCacheSettings) {
    this.#store = store;
    this.#settings = settings;
  }

  /** Returns a stored result, the result of another request with the same key, or executes the query. */
  run(query: CacheableQuery): MaybePromise<ExecutionOutcome> {
    const { coding } = query;
    if (coding === undefined || !this.#store.keepsBytes) return this.#run(query);
    return settle(this.#store.getEncoded(encodedKey(query.key, coding)), (entry) => {
      const stored = entry && new StoredResult(entry, { coding });
      const used = stored?.isFresh === true ? query.useEncoded(stored) : undefined;
      return used ?? this.#run(query);
    });
  }

  #run(query: CacheableQuery): MaybePromise<ExecutionOutcome> {
    return settle(this.#store.get(query.key), (lookup) => this.#continue(query, lookup));
  }

  #continue(query: CacheableQuery, { entry, version }: CacheLookup): MaybePromise<ExecutionOutcome> {
    const keep = this.#keepEncodedFor(query, entry, version);
    const stored = entry === undefined ? undefined : new StoredResult(entry, { keep });
    if (stored?.isFresh === true) return query.use(stored);
    if (stored?.isUsableFor(this.#settings.staleWhileRevalidate) === true) {
      this.#revalidate(query, version);
      return query.use(stored);
    }
    if (version === undefined) return query.execute();
    const flight = query.plan.isCacheable ? this.#flights.get(query.key) : undefined;
    const execute = () => this.#execute(query, version, stored);
    return flight === undefined ? execute() : this.#join(query, flight, version, execute);
  }

  /**
   * Waits for the execution of another request. After an abort one of the waiting requests executes, for all. A client
   * that waits for a long time executes itself, also if other clients disconnect again and again.
   */
  async #join(
    query: CacheableQuery,
    flight: NonNullable<ReturnType<Flights['get']>>,
    version: number | string,
    execute: () => MaybePromise<ExecutionOutcome>,
  ): Promise<ExecutionOutcome> {
    const began = performance.now();
    let shared = await flight;
    while (shared === ABORTED && performance.now() - began < MAX_MILLISECONDS) {
      if (query.isAborted) throw CLIENT_ABORTED;
      const next = this.#flights.get(query.key);
      if (next === undefined) return execute();
      shared = await next;
    }
    if (typeof shared !== 'object') return execute();
    if (shared.version === version) return query.use(new StoredResult(shared.entry));
    // The result may have been invalidated before this request.
    const { entry } = await this.#store.get(query.key);
    const stored = entry === undefined ? undefined : new StoredResult(entry);
    return stored?.isFresh === true ? query.use(stored) : execute();
  }

  #execute(
    query: CacheableQuery,
    version: number | string,
    stale: StoredResult | undefined,
  ): MaybePromise<ExecutionOutcome> {
    const outcome = query.execute();
    if (!isThenable(outcome)) {
      void this.#keep(query, outcome, version);
      return this.#orStale(query, outcome, stale);
    }
    const end = this.#flights.begin(query.key);
    const finish = (settled: ExecutionOutcome): MaybePromise<ExecutionOutcome> => {
      const kept = this.#keep(query, settled, version);
      Promise.resolve(kept).then(
        (entry) => end(entry && { entry, version }),
        () => end(undefined),
      );
      return this.#orStale(query, settled, stale);
    };
    // After an exception of `finish` too, nobody must wait.
    return outcome.then(finish).catch((error: unknown) => {
      end(query.isAborted ? ABORTED : undefined);
      throw error;
    });
  }

  /** Returns the function that stores the compressed form of an entry, with its validity and its tags. */
  #keepEncodedFor(
    { key, coding }: CacheableQuery,
    entry: CacheEntry | undefined,
    version: number | string | undefined,
  ): StoredForm['keep'] {
    if (coding === undefined || entry === undefined || version === undefined) return undefined;
    if (!this.#store.keepsBytes) return undefined;
    return (encoded) => {
      const encodedEntry = { ...entry, body: ownedBody(encoded.bytes), etag: encoded.createTag() };
      void this.#store.set(encodedKey(key, encoded.coding), encodedEntry, version);
    };
  }

  /** Stores a result. Returns its entry if it was stored: no tag of it was invalidated since the lookup. */
  #keep(
    query: CacheableQuery,
    outcome: ExecutionOutcome,
    version: number | string,
  ): MaybePromise<CacheEntry | undefined> {
    const entry = this.#entryOf(query, outcome);
    query.plan.isCacheable = entry !== undefined;
    if (entry === undefined) return undefined;
    return settle(this.#store.set(query.key, entry, version), (stored) => (stored ? entry : undefined));
  }

  #entryOf(query: CacheableQuery, outcome: ExecutionOutcome): CacheEntry | undefined {
    const policy = query.policy();
    if ((policy.scope === 'PRIVATE' && !query.isPrivate) || !query.isShareable) return undefined;
    if (!query.plan.covers(policy.vary, query.vary)) return undefined;
    return createEntry(outcome, policy, this.#settings);
  }

  /** Replaces unexpected errors, and timeouts, by an expired result, within `staleIfError`. */
  #orStale(
    query: CacheableQuery,
    outcome: ExecutionOutcome,
    stale: StoredResult | undefined,
  ): MaybePromise<ExecutionOutcome> {
    const isUsable = (result: StoredResult) => result.isUsableFor(this.#settings.staleIfError);
    if (stale === undefined || !isUsable(stale)) return outcome;
    const isLate = hasTimedOut(outcome);
    if (outcome.kind !== 'partial' && !isLate) return outcome;
    if (!isLate && outcome.isMasked !== true && outcome.errors.some(isPublicError)) return outcome;
    // It may have been invalidated during the execution.
    return settle(this.#store.get(query.key), ({ entry }) => {
      const stored = entry === undefined ? undefined : new StoredResult(entry);
      return stored !== undefined && isUsable(stored) ? query.use(stored) : outcome;
    });
  }

  /** Executes an expired query once, after its expired result was sent. */
  #revalidate(query: CacheableQuery, version: number | string | undefined): void {
    if (version === undefined || this.#revalidations.get(query.key) !== undefined) return;
    const end = this.#revalidations.begin(query.key);
    setImmediate(() => {
      this.#replace(query, version)
        .catch((error: unknown) => query.report(error))
        .finally(() => end(undefined));
    });
  }

  async #replace(query: CacheableQuery, version: number | string): Promise<void> {
    const outcome = await query.refresh();
    await this.#keep(query, outcome, version);
    outcome.release?.();
  }
}

/** Prepared for each coding: no other key contains a colon at this place. */
const encodedKey = (key: string, coding: Coding): string => `${coding}:${key}`;

/** How the body of an entry is stored, and what is done with a form that is not. */
interface StoredForm {
  /** The coding of the body; undefined for the result itself. */
  readonly coding?: Coding;
  readonly keep?: ((encoded: EncodedBody) => void) | undefined;
}

/** The ETags of entries in the memory of the process. */
const tags = new WeakMap<CacheEntry, string>();

const NO_ERRORS: readonly never[] = Object.freeze([]);

/** A result from the cache: sent like the result of an execution, with its age. */
export class StoredResult implements ExecutionOutcome, ResultCaching {
  readonly kind = 'data';
  readonly body: string | Buffer;
  readonly errors: readonly never[] = NO_ERRORS;
  readonly isFresh: boolean;
  readonly #entry: EncodedEntry;
  readonly #form: StoredForm;
  readonly #milliseconds: number;

  constructor(entry: EncodedEntry, form: StoredForm = {}) {
    const { storedAt, lifetime } = entry;
    this.body = entry.body;
    this.#entry = entry;
    this.#form = form;
    // The clock of another process may be ahead.
    this.#milliseconds = Math.max(0, Date.now() - storedAt);
    this.isFresh = this.#milliseconds < lifetime;
  }

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
    let tag = this.#entry.etag ?? tags.get(this.#entry);
    if (tag === undefined) {
      tag = create();
      tags.set(this.#entry, tag);
    }
    return tag;
  }

  codingOf(body: string | Buffer): Coding | undefined {
    return body === this.body ? this.#form.coding : undefined;
  }

  keepEncoded(body: string | Buffer, encoded: EncodedBody): void {
    if (body === this.body && this.isFresh) this.#form.keep?.(encoded);
  }

  policy(): CachePolicy {
    return this.#entry.policy;
  }

  /** Whether it may still be sent a time after it has expired. */
  isUsableFor(milliseconds: number): boolean {
    return this.#milliseconds < this.#entry.lifetime + milliseconds;
  }
}

/** Seconds for which a store with several users keeps a result. */
const lifetimeOf = ({ scope, maxAge, sharedMaxAge }: CachePolicy): number =>
  scope === 'PRIVATE' ? maxAge : sharedMaxAge;

/** Creates the entry of a result; undefined if it must not be stored. */
function createEntry(
  { kind, body, release, rest }: ExecutionOutcome,
  policy: CachePolicy,
  { staleWhileRevalidate, staleIfError }: ResponseCacheSettings,
): CacheEntry | undefined {
  const lifetime = lifetimeOf(policy) * 1000;
  if (kind !== 'data' || rest !== undefined || !(lifetime > 0)) return undefined;
  if (policy.tags.length > MAX_TAGS) return undefined;
  const storedAt = Date.now();
  const expires = storedAt + lifetime + Math.max(staleWhileRevalidate, staleIfError);
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

/** Whether a text has ASCII characters only, so that it has as many bytes as characters. */
const isAsciiText = (text: string): boolean => Buffer.byteLength(text) === text.length;

/** The execution of a flight was aborted because its client disconnected, so another request may repeat it. */
const ABORTED = 'aborted';

/**
 * An entry that was stored with the version of the store before its execution; undefined if the other requests have to
 * execute the operation too.
 */
type FlightResult =
  | { readonly entry: CacheEntry; readonly version: number | string }
  | typeof ABORTED
  | undefined;

type EndFlight = (result: FlightResult) => void;

/** Milliseconds after which requests stop waiting for an execution, which may never end. */
const MAX_MILLISECONDS = 5000;

interface Flight {
  readonly ended: Promise<FlightResult>;
  readonly end: EndFlight;
  readonly began: number;
  timer: NodeJS.Timeout | undefined;
}

/** The asynchronous executions in progress, by key. Requests with the same key wait for one of them. */
class Flights {
  readonly #flights = new Map<string, Flight>();

  /** Returns the end of a flight; undefined if there is none that is worth waiting for. */
  get(key: string): Promise<FlightResult> | undefined {
    const flight = this.#flights.get(key);
    if (flight === undefined) return undefined;
    const left = MAX_MILLISECONDS - (performance.now() - flight.began);
    // One timer per flight that others wait for.
    flight.timer ??= setTimeout(() => flight.end(undefined), Math.max(0, left)).unref();
    return flight.ended;
  }

  /** Begins a flight. The returned function ends it; further calls do nothing. */
  begin(key: string): EndFlight {
    let resolve: EndFlight = () => undefined;
    const ended = new Promise<FlightResult>((settled) => {
      resolve = settled;
    });
    const flight: Flight = {
      ended,
      began: performance.now(),
      timer: undefined,
      end: (result) => {
        clearTimeout(flight.timer);
        // A request that had to execute the operation itself may have begun another flight.
        if (this.#flights.get(key) === flight) this.#flights.delete(key);
        resolve(result);
      },
    };
    this.#flights.set(key, flight);
    return flight.end;
  }
}
