import type { MaybePromise } from '../../types/connect.ts';
import { startTimeLimit } from '../http/timers.ts';
import { isThenable } from '../options/values.ts';

/** Milliseconds between two attempts to use a store that does not reply. */
const PAUSE = 1000;

interface Bounds {
  /** The longest time, in milliseconds, for which a request waits. */
  readonly timeout: number;
  /** The message about a store that does not reply in time. */
  readonly late: string;
  /** Whether an error also begins a pause. Otherwise each one is reported. */
  readonly pausesAfterError: boolean;
  report(error: unknown): void;
}

/**
 * Limits the waits for a store of several processes, such as Redis, that requests can do without. One that does not reply
 * in time is reported once, and then not used until it has replied, except by one request per second: its client may queue
 * all commands.
 */
export class BoundedStore {
  readonly #bounds: Bounds;
  /** The time until which the store is not used; undefined while it replies. */
  #pausedUntil: number | undefined;

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
  }

  /** Uses the store. Returns `unavailable` if it fails, does not reply in time, or pauses. */
  use<T>(call: () => MaybePromise<T>, unavailable: T): MaybePromise<T> {
    if (this.#pausedUntil !== undefined) {
      if (performance.now() < this.#pausedUntil) return unavailable;
      // This request tries again; others do not.
      this.#pausedUntil = performance.now() + PAUSE;
    }
    try {
      const result = call();
      // Promises of other libraries may have no `catch`.
      if (isThenable(result)) return this.#wait(Promise.resolve(result), unavailable);
      this.#pausedUntil = undefined;
      return result;
    } catch (error) {
      this.#fail(error);
      return unavailable;
    }
  }

  #wait<T>(result: Promise<T>, unavailable: T): Promise<T> {
    const { timeout, late } = this.#bounds;
    return new Promise((resolve) => {
      const cancel = startTimeLimit(timeout, () => {
        this.#pause(new Error(late));
        resolve(unavailable);
      });
      result.then(
        (value) => {
          cancel();
          this.#pausedUntil = undefined;
          resolve(value);
        },
        (error: unknown) => {
          cancel();
          this.#fail(error);
          resolve(unavailable);
        },
      );
    });
  }

  #fail(error: unknown): void {
    if (this.#bounds.pausesAfterError) this.#pause(error);
    else this.#bounds.report(error);
  }

  #pause(error: unknown): void {
    if (this.#pausedUntil === undefined) this.#bounds.report(error);
    this.#pausedUntil = performance.now() + PAUSE;
  }
}
