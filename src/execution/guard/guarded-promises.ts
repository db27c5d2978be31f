import { isDead, type ListScope } from './guarded-lists.ts';

export type Then = (value: unknown) => unknown;

/** The members of a guard that promises use. */
export interface PromiseGuard {
  /** The list of graphql 16 whose item is being completed. */
  scope: ListScope | undefined;
  run<T>(step: () => T): T;
  fail(): void;
  /** Nothing reads a value. */
  drop(value: unknown): void;
}

const THEN = 'then';
const noop = (): void => undefined;

/**
 * The promise of a resolver as graphql-js gets it: a thenable, which adds no microtask. graphql-js continues
 * within the guard.
 */
class GuardedPromise {
  readonly #guard: PromiseGuard;
  readonly #scope: ListScope | undefined;
  readonly #promise: Promise<unknown>;
  readonly #toResult: Then;
  readonly #onReject: () => void;

  constructor(guard: PromiseGuard, promise: Promise<unknown>, toResult: Then, onReject: () => void) {
    this.#guard = guard;
    this.#scope = guard.scope;
    this.#promise = promise;
    this.#toResult = toResult;
    this.#onReject = onReject;
  }

  [THEN](onValue: Then, onReason?: Then): unknown {
    return this.#promise.then(
      (value) => this.#continue(value, () => onValue(this.#toResult(value))),
      (reason) => {
        this.#onReject();
        return this.#continue(undefined, () => {
          if (onReason === undefined) throw reason;
          return onReason(reason);
        });
      },
    );
  }

  /**
   * Calls graphql-js with a settled promise. In a failed list the position stays pending, because nothing
   * waits for it.
   */
  #continue(value: unknown, step: () => unknown): unknown {
    const guard = this.#guard;
    if (isDead(this.#scope)) {
      guard.drop(value);
      return new Promise(noop);
    }
    const before = guard.scope;
    guard.scope = this.#scope;
    try {
      return guard.run(step);
    } catch (error) {
      guard.fail();
      throw error;
    } finally {
      guard.scope = before;
    }
  }
}

/** Creates the thenable that graphql-js gets instead of a promise. */
export function guardedPromise(
  guard: PromiseGuard,
  promise: Promise<unknown>,
  toResult: Then,
  onReject: () => void,
): object {
  return new GuardedPromise(guard, promise, toResult, onReject);
}
