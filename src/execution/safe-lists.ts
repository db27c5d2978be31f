/*
 * The lists and promises that graphql-js would leave unhandled, in a form that it handles:
 *
 * - graphql 16 does not read the items of a list (`[Item!]`) after one that fails, and does not wait for the
 *   promises of the items before it
 * - graphql 17 waits for the items of an asynchronous iterable only after the last one was read, and does not
 *   read a list that arrives after the end of an execution
 */
import { types } from 'node:util';
import {
  type GraphQLNamedType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  getDirectiveValues,
  getNullableType,
  isDirective,
  isEnumType,
  isListType,
  isNonNullType,
  isSpecifiedScalarType,
  locatedError,
} from 'graphql';
import { stepOf } from '../options/rules.ts';
import { optionalExport } from './graphql-version.ts';
import { isThenable } from './types.ts';
import { UnusedValues } from './unused-values.ts';

type Then = (value: unknown) => unknown;

const THEN = 'then';
const { then } = Promise.prototype;
const noop = (): void => undefined;
const nativeIterator = Array.prototype[Symbol.iterator];

/** The properties of a list type that decide how its values are wrapped. */
interface ListShape {
  /** Whether graphql 16 gets the lists in another form. An error of an item that is not required ends at the item. */
  readonly isWrapped: boolean;
  readonly hasRequiredItems: boolean;
  /** The items are complete as soon as they were read, or fail then. */
  readonly hasPlainItems: boolean;
  /** The shape of the items if they are lists. */
  readonly items: ListShape | undefined;
}

/** A custom scalar may convert a value to a promise. */
const isPlainType = (type: GraphQLOutputType): boolean =>
  isEnumType(type) || isSpecifiedScalarType(type as GraphQLNamedType);

/** The shape of a list type; undefined for other types. */
export function listShape(type: GraphQLOutputType): ListShape | undefined {
  const list = getNullableType(type);
  if (!isListType(list)) return undefined;
  const hasRequiredItems = isNonNullType(list.ofType);
  const items = listShape(list.ofType);
  const isWrapped = hasRequiredItems || items !== undefined;
  const hasPlainItems = isPlainType(getNullableType(list.ofType));
  return { isWrapped, hasRequiredItems, hasPlainItems, items };
}

const isObject = (value: unknown): value is object =>
  (typeof value === 'object' && value !== null) || typeof value === 'function';

/** The list of graphql 16 whose items are completed now. */
let openList: SafeList | undefined;

/** Starts an execution of graphql-js. A resolver may start one while a list of another is read. */
export function outsideOfLists<Result>(start: () => Result): Result {
  const outer = openList;
  openList = undefined;
  try {
    return start();
  } finally {
    openList = outer;
  }
}

/** Wraps a value for graphql 16, of a field or an item of a list, if it has to be. */
export function safeValue(value: unknown, shape: ListShape | undefined): unknown {
  if (isThenable(value))
    return openList === undefined && shape === undefined ? value : new SafePromise(value, shape, openList);
  return shape?.isWrapped === true && isObject(value) && Symbol.iterator in value
    ? new SafeList(value as Iterable<unknown>, shape)
    : value;
}

/**
 * A list of graphql 16, which reads it once: one object is the list and its iterator. `Array.from` closes it if an
 * item fails.
 */
class SafeList implements IterableIterator<unknown> {
  hasFailed = false;
  outer: SafeList | undefined;
  readonly #list: Iterable<unknown>;
  readonly #shape: ListShape;
  #iterator: Iterator<unknown> | undefined;
  #item: unknown;

  constructor(list: Iterable<unknown>, shape: ListShape) {
    this.#list = list;
    this.#shape = shape;
  }

  [Symbol.iterator](): this {
    this.#iterator = this.#list[Symbol.iterator]();
    this.outer = openList;
    openList = this;
    return this;
  }

  next(): IteratorResult<unknown> {
    try {
      const step = (this.#iterator as Iterator<unknown>).next();
      // Its reader throws if the step is no object.
      if (!isObject(step)) this.hasFailed = true;
      if (!isObject(step) || step.done) {
        openList = this.outer;
        return step;
      }
      this.#item = step.value;
      return { done: false, value: safeValue(this.#item, this.#shape.items) };
    } catch (error) {
      this.#fail();
      throw error;
    }
  }

  return(): IteratorResult<unknown> {
    this.#fail();
    const iterator = this.#iterator as Iterator<unknown>;
    const unused = new UnusedValues();
    unused.ignoreRejections(this.#item);
    unused.drain(iterator);
    return iterator.return?.() ?? { done: true, value: undefined };
  }

  #fail(): void {
    this.hasFailed = true;
    openList = this.outer;
  }
}

/**
 * A promise of graphql 16, which calls `then` to complete the value, and then again to handle its error. In a list that
 * has failed the second promise stays pending, and so do those of the objects that contain the position. Callbacks run
 * as often and as early as without the wrapper: graphql-js adds errors to the response in them.
 */
class SafePromise {
  readonly #promise: PromiseLike<unknown>;
  readonly #shape: ListShape | undefined;
  readonly #list: SafeList | undefined;

  constructor(promise: PromiseLike<unknown>, shape: ListShape | undefined, list: SafeList | undefined) {
    this.#promise = promise;
    this.#shape = shape;
    this.#list = list;
  }

  [THEN](onValue: Then | undefined, onReason?: Then): unknown {
    if (onValue !== undefined) {
      const completed = this.#promise.then((value) => onValue(safeValue(value, this.#shape)));
      // Another library may return anything.
      return this.#list === undefined || !isThenable(completed)
        ? completed
        : new SafePromise(completed, undefined, this.#list);
    }
    return this.#promise.then(
      (value) => (this.#isUnused() ? new Promise(noop) : value),
      (reason) => {
        try {
          const result = onReason?.(reason);
          return this.#isUnused() ? new Promise(noop) : result;
        } catch (error) {
          if (this.#isUnused()) return new Promise(noop);
          throw error;
        }
      },
    );
  }

  #isUnused(): boolean {
    for (let list = this.#list; list !== undefined; list = list.outer) if (list.hasFailed) return true;
    return false;
  }
}

/** Observes the value of a list field for graphql 17, which handles the promises of arrays and iterators itself. */
export function protectList17(
  value: unknown,
  shape: ListShape,
  info: GraphQLResolveInfo,
  isItem = false,
): unknown {
  const onList = (list: unknown): unknown => protectList17(list, shape, info, isItem);
  if (types.isPromise(value)) {
    // Called before graphql-js reads the list.
    then.call(then.call(value, onList), undefined, noop);
    return value;
  }
  if (isThenable(value)) return withObserver(value, onList);
  if (!isObject(value)) return value;
  if (hasAbortedSignal(info)) new UnusedValues().ignoreItems(value);
  else {
    if (Array.isArray(value) && shape.items !== undefined) {
      // An iterator of the application may create the items: it must not be read twice.
      const isPlain = value[Symbol.iterator] === nativeIterator;
      if (isPlain) for (const item of value) protectList17(item, shape.items, info, true);
      new UnusedValues().ignoreItems(value);
    }
    if (shape.hasRequiredItems && Symbol.asyncIterator in value) holdItems(value, shape, info, isItem);
  }
  return value;
}

/** A thenable is called once, since some start their work then. */
function withObserver(thenable: Promise<unknown>, observe: (value: unknown) => void): object {
  const observed = (onValue: Then, onReason: Then): unknown =>
    thenable.then((value) => {
      observe(value);
      // graphql-js reads the list one microtask later, or never.
      new UnusedValues().ignoreRootRejections(value);
      return onValue(value);
    }, onReason);
  return { [THEN]: observed };
}

export const hasAbortedSignal = (
  info: GraphQLResolveInfo & { getAbortSignal?: () => AbortSignal | undefined },
): boolean => info.getAbortSignal?.()?.aborted === true;

/** The list stays the same object, because a promise of it cannot get another value without a delay. */
function holdItems(list: object, shape: ListShape, info: GraphQLResolveInfo, isItem: boolean): void {
  const before = Object.getOwnPropertyDescriptor(list, Symbol.asyncIterator);
  if (!Object.isExtensible(list) || before?.configurable === false) return;
  const value = (): AsyncIterator<unknown> => {
    if (before === undefined) Reflect.deleteProperty(list, Symbol.asyncIterator);
    else Object.defineProperty(list, Symbol.asyncIterator, before);
    const iterator = (list as AsyncIterable<unknown>)[Symbol.asyncIterator]();
    // graphql-js completes these items as soon as they were read.
    const count = shape.hasPlainItems ? 0 : isItem ? Number.POSITIVE_INFINITY : itemsBeforeStream(info);
    return new HeldItems(iterator, count, shape, info);
  };
  Object.defineProperty(list, Symbol.asyncIterator, { value, configurable: true });
}

/**
 * The items of an asynchronous iterable of graphql 17, which waits for items only after it has read the last one, or
 * those before the items of `@stream`. So it gets the first `count` items together. An item that is null or an error ends
 * the list.
 */
class HeldItems implements AsyncIterator<unknown> {
  readonly #iterator: AsyncIterator<unknown>;
  readonly #count: number;
  readonly #shape: ListShape;
  readonly #info: GraphQLResolveInfo;
  readonly #held: unknown[] = [];
  #index = 0;
  #isDone = false;

  constructor(iterator: AsyncIterator<unknown>, count: number, shape: ListShape, info: GraphQLResolveInfo) {
    this.#iterator = iterator;
    this.#count = count;
    this.#shape = shape;
    this.#info = info;
  }

  async next(): Promise<IteratorResult<unknown>> {
    if (this.#index === 0 && this.#count > 0) await this.#hold();
    if (this.#index < this.#held.length) return { done: false, value: this.#held[this.#index++] };
    return this.#isDone ? { done: true, value: undefined } : this.#read();
  }

  async return(): Promise<IteratorResult<unknown>> {
    return (await this.#iterator.return?.()) ?? { done: true, value: undefined };
  }

  async #hold(): Promise<void> {
    while (this.#held.length < this.#count) {
      const { done = false, value } = await this.#read();
      this.#isDone = done;
      if (done) return;
      this.#held.push(value);
      if (value === null || value === undefined || value instanceof Error || hasAbortedSignal(this.#info))
        return;
    }
  }

  async #read(): Promise<IteratorResult<unknown>> {
    const { done, value } = stepOf(await this.#iterator.next());
    if (done) return { done, value };
    const item: unknown = isThenable(value) ? await settledItem(value) : value;
    const { items } = this.#shape;
    if (items !== undefined) protectList17(item, items, this.#info, true);
    // graphql-js reads it later, or never.
    new UnusedValues().ignoreRejections(item);
    return { done: false, value: item };
  }
}

/** The value of an item that may be a promise. Returns an error, which fails at the item. */
async function settledItem(item: PromiseLike<unknown>): Promise<unknown> {
  try {
    return await item;
  } catch (reason) {
    return reason instanceof Error ? reason : locatedError(reason, undefined).originalError;
  }
}

const STREAM = optionalExport('GraphQLStreamDirective');

/** The number of items of a list before those that `@stream` delivers later. */
function itemsBeforeStream({ fieldNodes: [node], variableValues }: GraphQLResolveInfo): number {
  const stream =
    node !== undefined && isDirective(STREAM) && getDirectiveValues(STREAM, node, variableValues);
  return stream && stream['if'] !== false ? Number(stream['initialCount']) : Number.POSITIVE_INFINITY;
}
