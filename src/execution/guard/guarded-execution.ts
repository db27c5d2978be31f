/*
 * graphql-js leaves rejections unhandled after an error: of promises in values that it no longer reads, and
 * in version 16 of items before one that made their list fail. Unhandled, they end the process. A guard sees
 * the values that resolvers return (see guarded-schema.ts). When something fails, it handles the rejections
 * of everything that they contain.
 */
import { types } from 'node:util';
import type { FieldTracker } from '../caching.ts';
import { V17 } from '../graphql-version.ts';
import { isThenable } from '../types.ts';
import { UnusedValues } from './unused-values.ts';
import { isAlwaysRead, isSafePrimitive, type ValueShape } from './value-shape.ts';

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
  /** Gets the fields of the execution. */
  tracker: FieldTracker | undefined;
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

  /** Guards an object that a resolver returned. Returns what graphql-js should complete. */
  result(value: object, shape: ValueShape): unknown {
    if (isThenable(value)) return this.promise(value, (resolved) => this.#value(resolved, shape));
    if (value instanceof Error) {
      this.fail();
      return value;
    }
    // graphql 17 converts leaves outside of `run`, and built-in scalars have no guarded conversion.
    if (shape.isLeaf && (V17 || shape.isConvertible !== undefined)) return this.leaf(value);
    this.#values.push(value);
    if (this.#unused !== undefined) this.fail();
    const { items } = shape;
    if (items === undefined) return value;
    if (V17) {
      if (Array.isArray(value)) for (let i = 0; i < value.length; i++) this.#value(value[i], items);
      else if (value instanceof Set) Set.prototype.forEach.call(value, (item) => this.#value(item, items));
      return value;
    }
    if (Array.isArray(value) && isAlwaysRead(value, items)) return value;
    if (Symbol.iterator in value) return this.#list(value as Iterable<unknown>, items);
    this.fail();
    return value;
  }

  /** Guards a value of any type. */
  #value(value: unknown, shape: ValueShape): unknown {
    if (typeof value === 'object' && value !== null) return this.result(value, shape);
    if (!isSafePrimitive(value, shape)) this.fail();
    return value;
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
  #list(list: Iterable<unknown>, items: ValueShape): Iterable<unknown> {
    return {
      [Symbol.iterator]: () => {
        const iterator = list[Symbol.iterator]();
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
              return { done: false, value: this.#value(step.value, items) };
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
