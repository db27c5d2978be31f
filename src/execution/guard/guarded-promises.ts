import { isThenable } from '../types.ts';
import { isDead, type ListScope } from './guarded-lists.ts';

export type Then = (value: unknown) => unknown;

/** The members of a guard that promises use. */
export interface PromiseGuard {
  /** The list of graphql 16 whose item is being completed. */
  scope: ListScope | undefined;
  /** Guards a value with `toResult` and calls graphql-js with the result, within this execution and a list. */
  resume(scope: ListScope | undefined, toResult: Then, onValue: Then | undefined, value: unknown): unknown;
}

const THEN = 'then';
const noop = (): void => undefined;

/** In a failed list, what a callback returned is replaced by a promise that stays pending. Nothing waits for it. */
const gated = (scope: ListScope | undefined, result: unknown): unknown =>
  isDead(scope) ? new Promise(noop) : result;

/** Calls the handler of an error. It throws if the error propagates. */
function gatedReason(scope: ListScope | undefined, onReason: Then, reason: unknown): unknown {
  try {
    return gated(scope, onReason(reason));
  } catch (error) {
    if (isDead(scope)) return new Promise(noop);
    throw error;
  }
}

/**
 * A promise at a position of a list. graphql 16 calls `then` to complete the value, and then again to handle its error.
 * The second promise stays pending if the list has failed, and so do those of the objects that contain the position.
 * The callbacks are called nevertheless, because graphql-js adds errors to the response in them.
 */
class ScopedPromise {
  readonly #scope: ListScope;
  #promise: Promise<unknown>;

  constructor(scope: ListScope, promise: Promise<unknown>) {
    this.#scope = scope;
    this.#promise = promise;
  }

  [THEN](onValue: Then | undefined, onReason?: Then): unknown {
    const scope = this.#scope;
    if (onReason !== undefined) {
      return this.#promise.then(
        (value) => gated(scope, onValue === undefined ? value : onValue(value)),
        (reason) => gatedReason(scope, onReason, reason),
      );
    }
    const completed: unknown = this.#promise.then(onValue);
    // Another library may return anything.
    if (!isThenable(completed)) return completed;
    this.#promise = completed;
    return this;
  }
}

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

  [THEN](onValue: Then | undefined, onReason?: Then): unknown {
    const scope = this.#scope;
    const completed: unknown = this.#promise.then(
      (value) => {
        const result = this.#guard.resume(scope, this.#toResult, onValue, value);
        return onReason === undefined ? result : gated(scope, result);
      },
      (reason) => {
        this.#onReject();
        if (onReason === undefined) throw reason;
        return gatedReason(scope, onReason, reason);
      },
    );
    return onReason === undefined && scope !== undefined && isThenable(completed)
      ? new ScopedPromise(scope, completed)
      : completed;
  }
}

/** Creates a thenable for a promise at a position of a list whose value needs no guard. */
export const scopedPromise = (scope: ListScope, promise: Promise<unknown>): object =>
  new ScopedPromise(scope, promise);

/** Creates the thenable that graphql-js gets instead of a promise. */
export function guardedPromise(
  guard: PromiseGuard,
  promise: Promise<unknown>,
  toResult: Then,
  onReject: () => void,
): object {
  return new GuardedPromise(guard, promise, toResult, onReject);
}
