/*
 * graphql-js leaves rejections unhandled after an error: of promises in values that it no longer reads, and
 * in version 16 of items before one that made their list fail. Unhandled, they end the process. A guard sees
 * the values that resolvers return (see guarded-schema.ts). When something fails, it handles the rejections
 * of everything that they contain.
 */
import { types } from 'node:util';
import { V17 } from '../graphql-version.ts';
import { isThenable } from '../types.ts';
import { UnusedValues } from './unused-values.ts';

type Then = (value: unknown) => unknown;

/** A list of graphql 16 that is being completed, or has been. */
interface ListScope {
  readonly parent: ListScope | undefined;
  /** The list has failed, so nothing reads its items. */
  isDead: boolean;
}

const noop = (): void => undefined;
const THEN = 'then';

let current: ExecutionGuard | undefined;

/** The guard of the execution that runs synchronously. */
export function currentGuard(): ExecutionGuard | undefined {
  return current;
}

/** Guards one execution. */
export class ExecutionGuard {
  readonly #rootValue: unknown;
  /** The objects and lists that resolvers have returned. */
  #values: unknown[] = [];
  #unused: UnusedValues | undefined;
  #isScheduled = false;
  #scope: ListScope | undefined;

  constructor(rootValue: unknown) {
    this.#rootValue = rootValue;
  }

  /** Calls code of graphql-js. Calls of resolvers in it belong to this execution. */
  run<T>(step: () => T): T {
    const before = current;
    current = this;
    try {
      return step();
    } finally {
      current = before;
    }
  }

  /**
   * Something failed: values may have become unused. Rejections are reported after the callbacks of
   * `process.nextTick`.
   */
  fail(): void {
    if (this.#unused === undefined) {
      this.#unused = new UnusedValues();
      this.#unused.ignoreRootRejections(this.#rootValue);
    }
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    process.nextTick(() => {
      this.#isScheduled = false;
      const values = this.#values;
      this.#values = [];
      for (const value of values) this.#unused?.ignoreRejections(value);
    });
  }

  /**
   * Guards what a resolver returned for a field with `lists` nested lists. Returns what graphql-js should
   * complete.
   */
  result(value: unknown, lists: number): unknown {
    if (typeof value !== 'object' || value === null) return value;
    if (isThenable(value)) return this.promise(value, (resolved) => this.result(resolved, lists));
    if (value instanceof Error) {
      this.fail();
      return value;
    }
    this.#values.push(value);
    if (this.#unused !== undefined) this.fail();
    if (lists === 0) return value;
    if (V17) {
      if (Array.isArray(value)) this.#items(value, lists);
      else if (value instanceof Set) Set.prototype.forEach.call(value, (item) => this.#item(item, lists));
      return value;
    }
    if (Symbol.iterator in value) return this.#list(value as Iterable<unknown>, lists);
    this.fail();
    return value;
  }

  /** Guards the items of an array without calling its iterator or getters, which graphql-js calls once. */
  #items(array: readonly unknown[], lists: number): void {
    for (let i = 0; i < array.length; i++) {
      const item = Object.getOwnPropertyDescriptor(array, i);
      if (item === undefined || 'value' in item) this.#item(item?.value, lists);
    }
  }

  #item(item: unknown, lists: number): unknown {
    if (item === null || item === undefined) this.fail();
    return this.result(item, lists - 1);
  }

  /** Handles the rejections in the value of a leaf, which graphql-js reads as a whole or not at all. */
  leaf(value: unknown): unknown {
    if (isThenable(value)) return this.promise(value, (resolved) => this.leaf(resolved));
    if (typeof value === 'object' && value !== null) new UnusedValues().ignoreRejections(value);
    return value;
  }

  /** Guards a promise; `toResult` guards its value. */
  promise(promise: Promise<unknown>, toResult: Then): unknown {
    // graphql 17 handles its own promises. It awaits this one, so another subscription does not change the
    // order.
    if (V17) {
      if (types.isPromise(promise)) Promise.prototype.then.call(promise, toResult, () => this.fail());
      return promise;
    }
    const scope = this.#scope;
    const then = (onValue: Then, onReason?: Then): unknown =>
      promise.then(
        (value) => this.#continue(scope, value, () => onValue(toResult(value))),
        (reason) => {
          this.fail();
          return this.#continue(scope, undefined, () => {
            if (onReason === undefined) throw reason;
            return onReason(reason);
          });
        },
      );
    return { [THEN]: then };
  }

  /**
   * Calls graphql-js with a settled promise. In a failed list the position stays pending, because nothing
   * waits for it.
   */
  #continue(scope: ListScope | undefined, value: unknown, step: () => unknown): unknown {
    if (isDead(scope)) {
      this.#values.push(value);
      this.fail();
      return new Promise(noop);
    }
    const before = this.#scope;
    this.#scope = scope;
    try {
      return this.run(step);
    } catch (error) {
      this.fail();
      throw error;
    } finally {
      this.#scope = before;
    }
  }

  /** A list whose items know whether it has failed: graphql 16 closes the iterator then. */
  #list(items: Iterable<unknown>, lists: number): Iterable<unknown> {
    return {
      [Symbol.iterator]: () => {
        const iterator = items[Symbol.iterator]();
        const scope: ListScope = { parent: this.#scope, isDead: false };
        const leave = (isDead: boolean): void => {
          scope.isDead = isDead;
          this.#scope = scope.parent;
          if (isDead) this.fail();
        };
        return {
          next: () => {
            this.#scope = scope.parent;
            try {
              const step = iterator.next();
              if (step.done === true) return step;
              this.#scope = scope;
              return { done: false, value: this.#item(step.value, lists) };
            } catch (error) {
              leave(true);
              throw error;
            }
          },
          return: () => {
            leave(true);
            return iterator.return?.() ?? { done: true, value: undefined };
          },
        };
      },
    };
  }
}

function isDead(scope: ListScope | undefined): boolean {
  for (let at = scope; at !== undefined; at = at.parent) if (at.isDead) return true;
  return false;
}
