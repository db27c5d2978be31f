import type { GraphQLResolveInfo } from 'graphql';
import { itemsFailLate, type ValueShape } from './value-shape.ts';

/** A list of graphql 16 that is being completed, or has been. */
export interface ListScope {
  readonly parent: ListScope | undefined;
  /** The list has failed, so nothing reads its items. */
  isDead: boolean;
  /** Whether an object of the list may fail after one of its fields has returned a promise. */
  readonly mayFailLate: boolean;
}

/** The members of a guard that lists use. */
export interface ListGuard {
  /** The list of graphql 16 whose item is being completed. */
  scope: ListScope | undefined;
  /** Whether the execution has ended, so that no code reads its results. */
  readonly hasEnded: boolean;
  fail(): void;
  /** Guards a value of any type. Returns what graphql-js should complete. */
  value(value: unknown, shape: ValueShape): unknown;
}

export function isDead(scope: ListScope | undefined): boolean {
  for (let at = scope; at !== undefined; at = at.parent) if (at.isDead) return true;
  return false;
}

/** Whether an object of a list, or of a list that contains it, may fail after one of its fields has returned a promise. */
export function mayFailLate(scope: ListScope | undefined): boolean {
  for (let at = scope; at !== undefined; at = at.parent) if (at.mayFailLate) return true;
  return false;
}

type Path = GraphQLResolveInfo['path'];

/**
 * Lists of graphql 16 that fail together. While nothing has returned a promise, an error in a required list of an
 * item reaches the list of that item synchronously, so only the outermost list has to notice the failure.
 */
export class ListChain {
  #paths: Path[] | undefined;

  /** Adds a list with required items. Returns whether a list of the chain fails whenever this list fails. */
  add(path: Path, { isRequired }: ValueShape): boolean {
    this.#paths ??= [];
    const paths = this.#paths;
    const outer = path.prev?.prev;
    while (paths.length > 0 && paths[paths.length - 1] !== outer) paths.pop();
    paths.push(path);
    return isRequired && paths.length > 1;
  }

  /** Something returned a promise. An object that contains one rejects later instead of failing synchronously. */
  clear(): void {
    this.#paths = undefined;
  }
}

/**
 * A list whose items know whether it has failed: graphql 16 closes the iterator then. It reads the list once, so
 * one object is the list, its iterator and the scope of its items.
 */
export class GuardedList implements ListScope, IterableIterator<unknown> {
  parent: ListScope | undefined = undefined;
  isDead = false;
  readonly mayFailLate = true;
  readonly #guard: ListGuard;
  readonly #list: Iterable<unknown>;
  readonly #items: ValueShape;
  #iterator: Iterator<unknown> | undefined;

  constructor(guard: ListGuard, list: Iterable<unknown>, items: ValueShape) {
    this.#guard = guard;
    this.#list = list;
    this.#items = items;
  }

  [Symbol.iterator](): this {
    this.#iterator = this.#list[Symbol.iterator]();
    this.parent = this.#guard.scope;
    return this;
  }

  next(): IteratorResult<unknown> {
    const guard = this.#guard;
    guard.scope = this.parent;
    try {
      const step = (this.#iterator as Iterator<unknown>).next();
      if (step.done) return step;
      guard.scope = this;
      return { done: false, value: guard.value(step.value, this.#items) };
    } catch (error) {
      this.#fail();
      throw error;
    }
  }

  return(): IteratorResult<unknown> {
    this.#fail();
    return this.#iterator?.return?.() ?? { done: true, value: undefined };
  }

  #fail(): void {
    this.isDead = true;
    this.#guard.scope = this.parent;
    this.#guard.fail();
  }
}

/**
 * Like `GuardedList`, for an array whose items need no guard themselves. graphql 16 reads each step before it requests
 * the next one, so the same object is also every step.
 */
export class ObservedArray implements ListScope, IterableIterator<unknown> {
  parent: ListScope | undefined = undefined;
  isDead = false;
  value: unknown = undefined;
  done = false;
  readonly #guard: ListGuard;
  readonly #array: readonly unknown[];
  readonly #info: GraphQLResolveInfo;
  #index = 0;

  constructor(guard: ListGuard, array: readonly unknown[], info: GraphQLResolveInfo) {
    this.#guard = guard;
    this.#array = array;
    this.#info = info;
  }

  get mayFailLate(): boolean {
    return itemsFailLate(this.#info);
  }

  [Symbol.iterator](): this {
    this.parent = this.#guard.scope;
    return this;
  }

  next(): this {
    if (this.#index < this.#array.length) {
      this.#guard.scope = this;
      this.value = this.#array[this.#index++];
    } else {
      this.#guard.scope = this.parent;
      this.value = undefined;
      this.done = true;
    }
    return this;
  }

  return(): this {
    this.isDead = true;
    this.#guard.scope = this.parent;
    this.#guard.fail();
    return this;
  }
}
