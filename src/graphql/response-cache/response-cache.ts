import { setImmediate } from 'node:timers';
import type { CachePolicy } from '../../../types/caching.ts';
import type { MaybePromise } from '../../../types/connect.ts';
import type { CacheEntry, CacheLookup } from '../../../types/response-cache.ts';
import type { GuardedStore } from '../../cache/guarded-store.ts';
import { type ExecutionOutcome, isThenable } from '../../execution/types.ts';
import { CLIENT_ABORTED } from '../../http/body.ts';
import { ABORTED, Flights, MAX_MILLISECONDS } from './flights.ts';
import type { KeyPlan } from './key-plan.ts';
import type { ResponseCacheSettings } from './options.ts';
import { createEntry, StoredResult, withBodyOf } from './stored-result.ts';

/** A query whose result may come from the cache. */
export interface CacheableQuery {
  readonly key: string;
  readonly plan: KeyPlan;
  /** The request headers whose values are part of the key. */
  readonly vary: readonly string[];
  /** Whether the key identifies the user, so that private results may be stored. */
  readonly isPrivate: boolean;
  /** Whether the key separates all users; known after the execution, in which a resolver may set a cookie. */
  readonly isShareable: boolean;
  /** Whether the client has disconnected. */
  readonly isAborted: boolean;
  /** Executes the query. */
  execute(): MaybePromise<ExecutionOutcome>;
  /** Returns the policy of the result with all its tags, after the execution. */
  policy(): CachePolicy;
  /** Returns the same query for an execution that does not depend on the request, which may have ended. */
  later(): CacheableQuery;
  /** Uses a stored result for the response, whose headers then have its age. */
  use(stored: StoredResult): StoredResult;
  /** Whether all errors of an outcome are unexpected ones, not meant for the client. */
  hasFailed(outcome: ExecutionOutcome): boolean;
  /** Reports an error after the response was sent. */
  report(error: unknown): void;
}

/** Stores results of queries and sends them without an execution. */
export class ResponseCache {
  readonly #store: GuardedStore;
  readonly #settings: ResponseCacheSettings;
  readonly #flights = new Flights();
  /** The executions in the background that replace expired results. One that never ends counts for a limited time. */
  readonly #revalidations = new Flights();

  constructor(store: GuardedStore, settings: ResponseCacheSettings) {
    this.#store = store;
    this.#settings = settings;
  }

  /** Returns a stored result, the result of another request with the same key, or executes the query. */
  run(query: CacheableQuery): MaybePromise<ExecutionOutcome> {
    const found = this.#store.get(query.key);
    return found instanceof Promise
      ? found.then((lookup) => this.#continue(query, lookup))
      : this.#continue(query, found);
  }

  #continue(query: CacheableQuery, { entry, version }: CacheLookup): MaybePromise<ExecutionOutcome> {
    const stored = entry === undefined ? undefined : new StoredResult(entry);
    if (stored !== undefined) query.plan.found();
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
      const share = (entry: CacheEntry | undefined) => end(entry && { entry, version });
      if (isThenable(kept)) kept.then(share, () => end(undefined));
      else share(kept);
      return kept === undefined || isThenable(kept)
        ? this.#orStale(query, settled, stale)
        : withBodyOf(kept, settled);
    };
    // The option `tags` may throw in `finish` too.
    return outcome.then(finish).then(undefined, (error: unknown) => {
      end(query.isAborted ? ABORTED : undefined);
      throw error;
    });
  }

  /** Stores a result. Returns its entry if it was stored: no tag of it was invalidated since the lookup. */
  #keep(
    query: CacheableQuery,
    outcome: ExecutionOutcome,
    version: number | string,
  ): MaybePromise<CacheEntry | undefined> {
    const entry = this.#entryOf(query, outcome);
    query.plan.count(entry !== undefined, outcome.kind !== 'data');
    if (entry === undefined) return undefined;
    const isStored = this.#store.set(query.key, entry, version);
    if (isThenable(isStored)) return isStored.then((stored) => (stored ? entry : undefined));
    return isStored === true ? entry : undefined;
  }

  #entryOf(query: CacheableQuery, outcome: ExecutionOutcome): CacheEntry | undefined {
    const policy = query.policy();
    if ((policy.scope === 'PRIVATE' && !query.isPrivate) || !query.isShareable) return undefined;
    if (!query.plan.covers(policy.vary, query.vary)) return undefined;
    return createEntry(outcome, policy, this.#settings);
  }

  /** Replaces unexpected errors by an expired result, within `staleIfError`. */
  #orStale(
    query: CacheableQuery,
    outcome: ExecutionOutcome,
    stale: StoredResult | undefined,
  ): MaybePromise<ExecutionOutcome> {
    const isUsable = (result: StoredResult) => result.isUsableFor(this.#settings.staleIfError);
    if (stale === undefined || !isUsable(stale)) return outcome;
    if (outcome.kind !== 'partial' || !query.hasFailed(outcome)) return outcome;
    const use = ({ entry }: CacheLookup): ExecutionOutcome => {
      const stored = entry === undefined ? undefined : new StoredResult(entry);
      return stored !== undefined && isUsable(stored) ? query.use(stored) : outcome;
    };
    // It may have been invalidated during the execution.
    const found = this.#store.get(query.key);
    return isThenable(found) ? found.then(use) : use(found);
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

  async #replace(expired: CacheableQuery, version: number | string): Promise<void> {
    const query = expired.later();
    const outcome = await query.execute();
    await this.#keep(query, outcome, version);
    outcome.release?.();
  }
}
