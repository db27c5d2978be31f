import { types } from 'node:util';
import { type GraphQLResolveInfo, getDirectiveValues, isDirective } from 'graphql';
import { optionalExport } from '../graphql-version.ts';
import { isThenable } from '../types.ts';
import type { ListGuard } from './guarded-lists.ts';
import { UnusedValues } from './unused-values.ts';
import { arrayKind, isPlainArray, type ValueShape } from './value-shape.ts';

/**
 * Shows the guard the items of a list that graphql 17 completes. graphql 17 handles the rejections of promises in
 * lists, but not of those within other items. `info` is undefined for an item of a list.
 */
export function observeList(
  guard: ListGuard,
  list: object,
  items: ValueShape,
  info: GraphQLResolveInfo | undefined,
): void {
  if (isPlainArray(list)) observeArray(guard, list, items);
  else if (list instanceof Set) observeValues(guard, list, items);
  else if (Symbol.asyncIterator in list) {
    if (items.isRequired) delayItems(guard, list, items, itemsBeforeStream(info));
    else observeLaterItems(guard, list, items);
  } else if (Symbol.iterator in list) observeItems(guard, list, items);
  else guard.fail();
}

function observeArray(guard: ListGuard, list: unknown[], items: ValueShape): void {
  if (arrayKind(list, items) !== 'guarded') {
    if (items.isRequired && list.some((item) => item instanceof Error)) guard.fail();
    return;
  }
  observeValues(guard, list, items);
}

/** Observes all items before graphql-js reads the first one, which may fail. */
function observeValues(guard: ListGuard, list: unknown[] | Set<unknown>, items: ValueShape): void {
  const values = Array.isArray(list) ? list : Set.prototype.values.call(list);
  let isReplaced = false;
  for (const item of values) if (guard.value(item, items) !== item) isReplaced = true;
  if (isReplaced) observeItems(guard, list, items);
}

/**
 * Replaces the iterator that the next call of a method returns. The list stays the same object, because a
 * promise of it cannot get another value without a delay.
 */
function replaceNextIterator<T extends object>(
  list: object,
  method: typeof Symbol.iterator | typeof Symbol.asyncIterator,
  replace: (iterator: T) => T,
): void {
  if (!Object.isExtensible(list) || types.isProxy(list)) return;
  const before = Object.getOwnPropertyDescriptor(list, method);
  if (before?.configurable === false) return;
  const value = (): T => {
    if (before === undefined) Reflect.deleteProperty(list, method);
    else Object.defineProperty(list, method, before);
    return replace((list as Record<symbol, () => T>)[method]?.() as T);
  };
  Object.defineProperty(list, method, { value, configurable: true });
}

/** Shows the guard the items of an iterable that graphql 17 reads. */
function observeItems(guard: ListGuard, list: object, items: ValueShape): void {
  replaceNextIterator<Iterator<unknown>>(list, Symbol.iterator, (iterator) => ({
    next: () => {
      const step = iterator.next();
      return step.done ? step : { done: false, value: guard.value(step.value, items) };
    },
    return: (value) => iterator.return?.(value) ?? { done: true, value },
  }));
}

/** Like `observeItems`, for an asynchronous iterable. */
function observeLaterItems(guard: ListGuard, list: object, items: ValueShape): void {
  const observe = (step: unknown): void => {
    try {
      const { value } = step as { readonly value?: unknown };
      const item = guard.value(value, items);
      // Only the guarded form of a thenable shows its value. This is called before the reader of the step.
      if (item !== value) Reflect.set(step as object, 'value', item);
    } catch {
      // The step is null or its getter has thrown. graphql-js reports that when it reads the step.
    }
  };
  replaceNextIterator<AsyncIterator<unknown>>(list, Symbol.asyncIterator, (iterator) => ({
    next: () => {
      const step = iterator.next();
      // The reader gets the same promise, so this subscription does not delay it.
      if (types.isPromise(step)) Promise.prototype.then.call(step, observe, () => undefined);
      else if (isThenable(step)) return observedStep(step, observe);
      else observe(step);
      return step;
    },
    return: async (value) => (await iterator.return?.(value)) ?? { done: true, value },
  }));
}

const THEN = 'then';

/**
 * Returns a thenable that shows its value before the reader gets it. A thenable is called once, since some start
 * their work then.
 */
function observedStep<T>(step: PromiseLike<T>, observe: (value: unknown) => void): Promise<T> {
  const then = (onValue: (value: unknown) => unknown, onReason: (reason: unknown) => unknown): unknown =>
    step[THEN]((value) => {
      if (isThenable(value)) return onValue(observedStep(value, observe));
      observe(value);
      return onValue(value);
    }, onReason);
  return { [THEN]: then } as Promise<T>;
}

const STREAM = optionalExport('GraphQLStreamDirective');

/** The number of items of a list before those that `@stream` delivers later. Items of lists are not streamed. */
function itemsBeforeStream(info: GraphQLResolveInfo | undefined): number {
  const node = info?.fieldNodes[0];
  if (info === undefined || node === undefined || !isDirective(STREAM)) return Number.POSITIVE_INFINITY;
  const stream = getDirectiveValues(STREAM, node, info.variableValues);
  const isStreamed = stream !== undefined && stream['if'] !== false;
  return isStreamed ? Number(stream['initialCount']) : Number.POSITIVE_INFINITY;
}

/**
 * Completes the items of an asynchronous iterable after the last of them was read. graphql 17 handles the
 * rejections of items that propagate only then, and never if it stops reading.
 *
 * `count`: the items to be delayed; the later ones belong to a stream, which handles them.
 */
function delayItems(guard: ListGuard, list: object, items: ValueShape, count: number): void {
  replaceNextIterator<AsyncIterator<unknown>>(list, Symbol.asyncIterator, (iterator) => {
    const delayed = new DelayedItems(guard, items, count);
    return {
      next: async () => {
        const step = await iterator.next();
        if (step.done) void delayed.releaseSoon();
        return step.done ? step : { done: false, value: delayed.add(step.value) };
      },
      return: async (value) => {
        delayed.drop();
        return (await iterator.return?.(value)) ?? { done: true, value };
      },
    };
  });
}

/**
 * Microtasks until the items are released: graphql-js has seen the end of the list then, and the guard the end of an
 * execution that failed before. Tracing channels with subscribers delay that end by up to two microtasks.
 */
const RELEASE_TURNS = 5;

class DelayedItems {
  readonly #guard: ListGuard;
  readonly #items: ValueShape;
  readonly #unused = new UnusedValues();
  #left: number;
  #waiting: (() => void)[] = [];

  constructor(guard: ListGuard, items: ValueShape, count: number) {
    this.#guard = guard;
    this.#items = items;
    this.#left = count;
  }

  /** Returns the item, or a promise of it that is resolved when the items are released. */
  add(given: unknown): unknown {
    const item = this.#guard.value(given, this.#items);
    if (this.#left <= 0) return item;
    this.#left -= 1;
    // A null fails immediately, and so does a primitive value of a built-in scalar. Other types may return promises.
    const { isConvertible } = this.#items;
    const isDelayed = item != null && (isConvertible === undefined || typeof item === 'object');
    const result = isDelayed ? this.#delay(item) : item;
    if (this.#left === 0) void this.releaseSoon();
    return result;
  }

  #delay(item: unknown): Promise<unknown> {
    this.#unused.ignoreRejections(item);
    return new Promise((resolve) => this.#waiting.push(() => resolve(item)));
  }

  /**
   * Resolves the promises after graphql-js has seen the end of the list and handles their rejections. Without a
   * reader they stay pending.
   */
  async releaseSoon(): Promise<void> {
    for (let turn = 0; turn < RELEASE_TURNS; turn++) await undefined;
    if (!this.#guard.hasEnded) for (const resolve of this.#waiting) resolve();
    this.drop();
  }

  drop(): void {
    this.#waiting = [];
  }
}
