/*
 * graphql-js leaves rejections unhandled after an error: of promises in values that it no longer reads, and
 * in version 16 of items before one that made their list fail. Unhandled, they end the process. A guard sees
 * the values that resolvers return (see guarded-schema.ts). When something fails, it handles the rejections
 * of everything that they contain.
 */
import { types } from 'node:util';
import type { ExecutionArgs, ExecutionResult, GraphQLResolveInfo } from 'graphql';
import { V17 } from '../graphql-version.ts';
import { type FieldTracker, isThenable } from '../types.ts';
import {
  GuardedList,
  ListChain,
  type ListGuard,
  type ListScope,
  mayFailLate,
  ObservedArray,
} from './guarded-lists.ts';
import { guardedPromise, type PromiseGuard, scopedPromise, type Then } from './guarded-promises.ts';
import { observeList } from './observed-lists.ts';
import { isCompletelyRead } from './read-results.ts';
import { ReturnedValues, UnusedValues } from './unused-values.ts';
import { arrayKind, isObject, isPlainArray, isSafePrimitive, type ValueShape } from './value-shape.ts';

const { then } = Promise.prototype;
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
export class ExecutionGuard extends ReturnedValues implements ListGuard, PromiseGuard {
  /** Gets the fields of the execution. */
  readonly tracker: FieldTracker | undefined;
  /** `info.variableValues` of the operation that calls resolvers. */
  variables: object | undefined;
  scope: ListScope | undefined;
  readonly #chain = new ListChain();
  readonly #signal: AbortSignal | undefined;
  #hasEnded = false;
  /** The object of a list that has been given a `scopedPromise`. */
  #pendingObject: GraphQLResolveInfo['path'] | undefined;

  constructor({ rootValue, abortSignal }: GuardedArgs, tracker: FieldTracker | undefined) {
    super(rootValue);
    this.tracker = tracker;
    this.#signal = abortSignal ?? undefined;
  }

  get hasEnded(): boolean {
    return this.#hasEnded || this.#signal?.aborted === true;
  }

  /** Calls a function of graphql-js. Calls of resolvers in it belong to this execution. */
  run<Args, Result>(step: (args: Args) => Result, args: Args): Result {
    const before = current;
    current = this;
    try {
      return step(args);
    } finally {
      current = before;
    }
  }

  /** Ends the execution: no code reads its results from now on. `result` is undefined if there is none. */
  end(result: ExecutionResult | undefined): void {
    this.#hasEnded = true;
    if (result === undefined || !isCompletelyRead(result)) this.fail();
    else this.forget();
  }

  /** A resolver failed. A nullable field becomes null, and graphql-js reads all other values. */
  failField({ isRequired }: ValueShape): void {
    if (isRequired) this.fail();
  }

  /** graphql-js sees a promise. */
  sawPromise(): void {
    this.#chain.clear();
  }

  resume(scope: ListScope | undefined, toResult: Then, onValue: Then | undefined, value: unknown): unknown {
    const execution = current;
    const list = this.scope;
    current = this;
    this.scope = scope;
    try {
      const result = toResult(value);
      return onValue === undefined ? result : onValue(result);
    } catch (error) {
      this.fail();
      throw error;
    } finally {
      current = execution;
      this.scope = list;
    }
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
    if (isThenable(value)) {
      if (shape.isIndependent) return this.#independent(value, info);
      return this.promise(value, (resolved) => this.value(resolved, shape, info), shape);
    }
    if (value instanceof Error) {
      this.failField(shape);
      return value;
    }
    if (shape.isLeaf) return this.leaf(value);
    this.add(value);
    return shape.items === undefined ? value : this.#list(value, shape, info);
  }

  /**
   * Guards a promise that becomes null if it rejects. If another field of its object fails, the object becomes a
   * promise that rejects after this one has settled, which a failed list ignores.
   */
  #independent(promise: Promise<unknown>, info: GraphQLResolveInfo | undefined): unknown {
    this.sawPromise();
    // graphql 17 does not read its value after the end of the execution.
    if (V17) this.add(promise);
    if (this.scope === undefined || !mayFailLate(this.scope)) return promise;
    const object = info?.path.prev;
    // One promise that stays pending is enough for each object.
    if (promise.then === then) {
      if (object === this.#pendingObject) return promise;
      this.#pendingObject = object;
    }
    return scopedPromise(this.scope, promise);
  }

  #list(list: object, shape: ValueShape, info: GraphQLResolveInfo | undefined): unknown {
    const items = shape.items as ValueShape;
    if (V17) {
      observeList(this, list, items, info);
      return list;
    }
    if (info !== undefined && isPlainArray(list)) {
      const kind = arrayKind(list, items);
      if (kind === 'plain' || (kind === 'observed' && this.#chain.add(info.path, shape))) return list;
      if (kind === 'observed') return new ObservedArray(this, list, info);
    }
    if (Symbol.iterator in list) return new GuardedList(this, list as Iterable<unknown>, items);
    this.fail();
    return list;
  }

  value(value: unknown, shape: ValueShape, info?: GraphQLResolveInfo): unknown {
    if (V17) this.enter();
    if (isObject(value)) return this.result(value, shape, info);
    if (!isSafePrimitive(value, shape)) this.fail();
    return value;
  }

  /** Handles the rejections in the value of a leaf, which graphql-js reads as a whole or not at all. */
  leaf(value: unknown): unknown {
    if (isThenable(value)) return this.promise(value, (resolved) => this.leaf(resolved));
    if (typeof value === 'object' && value !== null) new UnusedValues().ignoreRejections(value);
    return value;
  }

  /** Guards a promise, of a field or item with a shape; `toResult` guards its value. */
  promise(promise: Promise<unknown>, toResult: Then, shape?: ValueShape): unknown {
    this.sawPromise();
    const onReject = (): void => {
      if (shape === undefined || shape.isRequired) this.fail();
    };
    // graphql 17 handles its own promises. It awaits this one, so another subscription does not change the
    // order.
    if (V17 && types.isPromise(promise)) {
      Promise.prototype.then.call(promise, toResult, onReject);
      return promise;
    }
    return guardedPromise(this, promise, toResult, onReject);
  }
}
