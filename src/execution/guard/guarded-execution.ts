/*
 * graphql-js leaves rejections unhandled after an error: of promises in values that it no longer reads, and
 * in version 16 of items before one that made their list fail. Unhandled, they end the process. A guard sees
 * the values that resolvers return (see guarded-schema.ts). When something fails, it handles the rejections
 * of everything that they contain.
 */
import { types } from 'node:util';
import type { ExecutionArgs, GraphQLResolveInfo } from 'graphql';
import type { FieldTracker } from '../caching.ts';
import { V17 } from '../graphql-version.ts';
import { isThenable } from '../types.ts';
import { GuardedList, isDead, type ListGuard, type ListScope } from './guarded-lists.ts';
import { observeList } from './observed-lists.ts';
import { UnusedValues } from './unused-values.ts';
import { isAlwaysRead, isPlainArray, isSafePrimitive, type ValueShape } from './value-shape.ts';

type Then = (value: unknown) => unknown;

const noop = (): void => undefined;
const THEN = 'then';

let current: ExecutionGuard | undefined;
let latest: ExecutionGuard | undefined;

/** The guard of the execution that runs synchronously. */
export function currentGuard(): ExecutionGuard | undefined {
  return current;
}

/** The guard whose value graphql-js completes. graphql 17 converts leaves also outside of `run`. */
export function completingGuard(): ExecutionGuard | undefined {
  return current ?? latest;
}

/** The arguments of an execution; graphql 16 has no signal. */
type GuardedArgs = Pick<ExecutionArgs, 'rootValue'> & { readonly abortSignal?: AbortSignal | undefined };

/** Guards one execution. */
export class ExecutionGuard implements ListGuard {
  /** Gets the fields of the execution. */
  tracker: FieldTracker | undefined;
  scope: ListScope | undefined;
  readonly #rootValue: unknown;
  readonly #signal: AbortSignal | undefined;
  #hasEnded = false;
  /** The objects and lists that resolvers have returned. */
  #values: unknown[] = [];
  #unused: UnusedValues | undefined;
  #isScheduled = false;

  constructor({ rootValue, abortSignal }: GuardedArgs) {
    this.#rootValue = rootValue;
    this.#signal = abortSignal ?? undefined;
  }

  get hasEnded(): boolean {
    return this.#hasEnded || this.#signal?.aborted === true;
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

  /** Ends the execution: no code reads its results from now on. `isComplete`: all values were read. */
  end({ isComplete }: { isComplete: boolean }): void {
    this.#hasEnded = true;
    if (!isComplete) this.fail();
    else if (this.#unused === undefined) this.#values = [];
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

  /** The next value that graphql-js completes belongs to this execution. */
  enter(): this {
    latest = this;
    return this;
  }

  /**
   * Guards an object that a resolver returned. Returns what graphql-js should complete. `info` is undefined for an
   * item of a list.
   */
  result(value: object, shape: ValueShape, info?: GraphQLResolveInfo): unknown {
    if (isThenable(value)) return this.promise(value, (resolved) => this.value(resolved, shape, info));
    if (value instanceof Error) {
      this.fail();
      return value;
    }
    if (shape.isLeaf && (V17 || shape.isConvertible !== undefined)) return this.leaf(value);
    this.#values.push(value);
    if (this.#unused !== undefined) this.fail();
    const { items } = shape;
    if (items === undefined) return value;
    if (V17) {
      observeList(this, value, items, info);
      return value;
    }
    if (isPlainArray(value) && isAlwaysRead(value, items)) return value;
    if (Symbol.iterator in value) return new GuardedList(this, value as Iterable<unknown>, items);
    this.fail();
    return value;
  }

  value(value: unknown, shape: ValueShape, info?: GraphQLResolveInfo): unknown {
    if (V17) this.enter();
    if (typeof value === 'object' && value !== null) return this.result(value, shape, info);
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
    if (V17 && types.isPromise(promise)) {
      Promise.prototype.then.call(promise, toResult, () => this.fail());
      return promise;
    }
    const { scope } = this;
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
    const before = this.scope;
    this.scope = scope;
    try {
      return this.run(step);
    } catch (error) {
      this.fail();
      throw error;
    } finally {
      this.scope = before;
    }
  }
}
