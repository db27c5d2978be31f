import { setImmediate } from 'node:timers';
import type { LoadResult } from '../file/loaded-file.ts';
import { CheckQueue } from './check-queue.ts';
import type { CacheEntry, Waiter } from './entry.ts';
import { type CheckContext, isUnchangedSync, revalidate } from './revalidate.ts';

// Checks per turn of the event loop, which take about a millisecond when they are synchronous.
const MAX_PER_TURN = 256;
// Synchronous checks between two reads of the clock: one read costs a tenth of a check.
const CHUNK = 8;

/**
 * Coalesces checks of cache entries, as databases do with group commit. Requests for one path that arrive in
 * the same turn of the event loop share a check, which starts after the last of them arrived; requests that
 * arrive during a check share the next one. Therefore no response is older than its request, and a file is
 * checked, read and hashed once for all of them.
 */
export class Coalescer {
  readonly #context: CheckContext;
  #queued: CacheEntry[] = [];
  #isScheduled = false;
  /** Entries that wait for the thread pool. */
  readonly #pendingAsync: CheckQueue;

  constructor(context: CheckContext) {
    this.#context = context;
    this.#pendingAsync = new CheckQueue(context.mounts, () => this.#startAsyncChecks());
  }

  /** Checks the entry of a request, then calls its `onChecked`. */
  check(waiter: Waiter): void {
    const { entry } = waiter;
    if (entry.waiting === undefined) entry.waiting = [waiter];
    else entry.waiting.push(waiter);
    if (entry.state === 'idle') this.#enqueue(entry);
  }

  #enqueue(entry: CacheEntry): void {
    entry.state = 'queued';
    this.#queued.push(entry);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    // The check phase follows the poll phase, in which all requests of this turn arrive.
    setImmediate(this.#checkBatch);
  }

  readonly #checkBatch = (): void => {
    this.#isScheduled = false;
    const batch = this.#queued;
    this.#queued = batch.length > MAX_PER_TURN ? batch.splice(MAX_PER_TURN) : [];
    if (this.#queued.length > 0) this.#schedule();
    // All checks run before all responses, which keeps the code of each step in the CPU caches.
    const unchanged: Waiter[] = [];
    for (let i = 0; i < batch.length; i += CHUNK) this.#checkChunk(batch.slice(i, i + CHUNK), unchanged);
    this.#startAsyncChecks();
    for (const waiter of unchanged) finishIsolated(waiter, undefined, waiter.entry.file);
  };

  /**
   * Checks entries on the event loop, adds their requests to `unchanged`, and leaves the others to the thread
   * pool.
   */
  #checkChunk(entries: readonly CacheEntry[], unchanged: Waiter[]): void {
    const { breaker, mounts } = this.#context;
    const startedAt = performance.now();
    mounts.refresh(startedAt);
    let hasChecked = false;
    for (const entry of entries) {
      const isAllowed =
        entry.isCheckedSync && entry.mountGeneration === mounts.generation && breaker.allows(startedAt);
      hasChecked ||= isAllowed;
      if (isAllowed && isUnchangedSync(this.#context, entry, startedAt)) {
        entry.state = 'idle';
        for (const waiter of takeWaiting(entry)) unchanged.push(waiter);
      } else this.#pendingAsync.add(entry);
    }
    if (hasChecked) breaker.record(startedAt, performance.now());
  }

  #startAsyncChecks(): void {
    for (let entry = this.#pendingAsync.start(); entry !== undefined; entry = this.#pendingAsync.start()) {
      this.#checkInThreadPool(entry);
    }
  }

  #checkInThreadPool(entry: CacheEntry): void {
    const waiters = takeWaiting(entry);
    entry.state = 'checking';
    revalidate(this.#context, entry, (error, result) => {
      this.#pendingAsync.finish(entry);
      entry.state = 'idle';
      if (entry.waiting !== undefined) this.#enqueue(entry);
      else this.#context.cache.release(entry);
      this.#startAsyncChecks();
      for (const waiter of waiters) finishIsolated(waiter, error, result);
    });
  }
}

/** Removes and returns the requests for the check that starts now. */
function takeWaiting(entry: CacheEntry): Waiter[] {
  const waiters = entry.waiting ?? [];
  entry.waiting = undefined;
  return waiters;
}

/**
 * Continues one request. An exception of its handlers must not leave the other requests without a response.
 */
function finishIsolated(waiter: Waiter, error: unknown, result: LoadResult | undefined): void {
  try {
    waiter.asyncScope.runInAsyncScope(waiter.onChecked, waiter, error, result);
  } catch (thrown) {
    queueMicrotask(() => {
      throw thrown;
    });
  }
}
