/*
 * graphql-js leaves some rejections unhandled, which ends the process:
 *
 * - graphql 16 does not read the items of a list (`[Item!]`) after one that fails, and does not wait for the
 *   promises of the items before it
 * - graphql 17 waits for the items of an asynchronous iterable only after the last one was read, and does not
 *   read a list that arrives after the end of an execution
 *
 * The guard is a view of the schema whose resolvers return these lists and promises in another form. Every
 * other value reaches graphql-js as it is. A promise that no resolver has returned belongs to the application.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { types } from 'node:util';
import {
  defaultFieldResolver,
  defaultTypeResolver,
  type ExecutionArgs,
  type ExecutionResult,
  type GraphQLFieldResolver,
  type GraphQLNamedType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  type GraphQLTypeResolver,
  getDirectiveValues,
  getNullableType,
  isDirective,
  isEnumType,
  isListType,
  isNonNullType,
  isSpecifiedScalarType,
  locatedError,
} from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import { optionalExport, V17 } from './graphql-version.ts';
import { type FieldPlace, originalOf, viewOfSchema } from './schema-view.ts';
import { type FieldTracker, isThenable } from './types.ts';
import { UnusedValues } from './unused-values.ts';

type Resolver = GraphQLFieldResolver<unknown, unknown>;
type TypeResolver = GraphQLTypeResolver<unknown, unknown>;
type Then = (value: unknown) => unknown;
type Path = GraphQLResolveInfo['path'];
type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

const THEN = 'then';
const { then } = Promise.prototype;
const noop = (): void => undefined;

/** The tracker of the fields of an execution; undefined in it if the execution has none. */
const trackers = new AsyncLocalStorage<{ readonly track: FieldTracker | undefined }>();
/** Whether executions of this process have had trackers. */
let hasTrackers = false;
let unattributed = 0;

/** The number of calls of resolvers whose execution is not known: a function of the option `engine` may lose it. */
export const unattributedCalls = (): number => unattributed;

/**
 * Calls `execute` with guarded resolvers. Changes `args`. `track` gets the fields. `readsLater`: deferred parts read
 * the properties of objects that resolvers returned before.
 */
export function executeGuarded<Result = MaybePromise<ExecutionResult>>(
  execute: (args: ExecutionArgs) => Result,
  args: ExecutionArgs,
  track: FieldTracker | undefined,
  readsLater = false,
): Result {
  const { schema, fieldResolver, typeResolver } = args;
  args.schema = guardedSchema(schema, fieldResolver ?? defaultFieldResolver, readsLater);
  args.typeResolver = guardedTypeResolver(typeResolver ?? defaultTypeResolver);
  if (track !== undefined) hasTrackers = true;
  const outer = openList;
  openList = undefined;
  try {
    return hasTrackers ? trackers.run({ track }, execute, args) : execute(args);
  } finally {
    openList = outer;
  }
}

function trackField(info: GraphQLResolveInfo, source: unknown): void {
  const store = trackers.getStore();
  if (store === undefined) unattributed += 1;
  else store.track?.(info, source);
}

/** The properties of a list type that decide how its values are guarded. */
interface ListShape {
  readonly hasRequiredItems: boolean;
  /** The items are complete as soon as they were read, or fail then. */
  readonly hasPlainItems: boolean;
  /** The shape of the items if they are lists. */
  readonly items: ListShape | undefined;
}

/** A custom scalar may convert a value to a promise. */
const isPlainType = (type: GraphQLOutputType): boolean =>
  isEnumType(type) || isSpecifiedScalarType(type as GraphQLNamedType);

/** The shape of a list type; undefined for types whose values need no guard. */
function listShape(type: GraphQLOutputType): ListShape | undefined {
  const list = getNullableType(type);
  if (!isListType(list)) return undefined;
  const hasRequiredItems = isNonNullType(list.ofType);
  const items = listShape(list.ofType);
  // An error of an item that is not required ends at the item.
  if (!V17 && !hasRequiredItems && items === undefined) return undefined;
  return { hasRequiredItems, hasPlainItems: isPlainType(getNullableType(list.ofType)), items };
}

const isObject = (value: unknown): value is object =>
  (typeof value === 'object' && value !== null) || typeof value === 'function';

/** The list of graphql 16 whose items are completed now. */
let openList: GuardedList | undefined;

/** Guards a value for graphql 16: of a field, or an item of a list. */
function guardValue(value: unknown, shape: ListShape | undefined): unknown {
  if (!isObject(value)) return value;
  if (isThenable(value))
    return openList === undefined && shape === undefined ? value : new GuardedPromise(value, shape, openList);
  return shape !== undefined && Symbol.iterator in value
    ? new GuardedList(value as Iterable<unknown>, shape)
    : value;
}

/**
 * A list of graphql 16, which reads it once: one object is the list and its iterator. `Array.from` closes it if an
 * item fails.
 */
class GuardedList implements IterableIterator<unknown> {
  hasFailed = false;
  outer: GuardedList | undefined;
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
      return { done: false, value: guardValue(this.#item, this.#shape.items) };
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
 * as often and as early as without the guard: graphql-js adds errors to the response in them.
 */
class GuardedPromise {
  readonly #promise: PromiseLike<unknown>;
  readonly #shape: ListShape | undefined;
  readonly #list: GuardedList | undefined;

  constructor(promise: PromiseLike<unknown>, shape: ListShape | undefined, list: GuardedList | undefined) {
    this.#promise = promise;
    this.#shape = shape;
    this.#list = list;
  }

  [THEN](onValue: Then | undefined, onReason?: Then): unknown {
    if (onValue !== undefined) {
      const completed = this.#promise.then((value) => onValue(guardValue(value, this.#shape)));
      // Another library may return anything.
      return this.#list === undefined || !isThenable(completed)
        ? completed
        : new GuardedPromise(completed, undefined, this.#list);
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

/** Guards the value of a list field for graphql 17, which handles the promises of arrays and iterators itself. */
function guardList17(value: unknown, shape: ListShape, info: GraphQLResolveInfo, path = info.path): unknown {
  // Called before graphql-js reads the list.
  const onList = (list: unknown): void => {
    if (abortSignalOf(info)?.aborted === true) new UnusedValues().ignoreItems(list);
    else if (isObject(list)) replaceIterator(list, shape, info, path);
  };
  if (types.isPromise(value)) {
    then.call(value, onList, noop);
    return value;
  }
  if (isThenable(value)) return withObserver(value, onList);
  onList(value);
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

function abortSignalOf(info: GraphQLResolveInfo): AbortSignal | undefined {
  return (info as { getAbortSignal?: () => AbortSignal | undefined }).getAbortSignal?.();
}

/** The list stays the same object, because a promise of it cannot get another value without a delay. */
function replaceIterator(list: object, shape: ListShape, info: GraphQLResolveInfo, path: Path): void {
  const { items } = shape;
  if (items !== undefined && Array.isArray(list)) {
    for (const [key, item] of list.entries())
      guardList17(item, items, info, { prev: path, key, typename: undefined });
    new UnusedValues().ignoreItems(list);
  }
  if (!shape.hasRequiredItems || !(Symbol.asyncIterator in list) || !Object.isExtensible(list)) return;
  const before = Object.getOwnPropertyDescriptor(list, Symbol.asyncIterator);
  if (before?.configurable === false) return;
  const value = (): AsyncIterator<unknown> => {
    if (before === undefined) Reflect.deleteProperty(list, Symbol.asyncIterator);
    else Object.defineProperty(list, Symbol.asyncIterator, before);
    return new HeldItems((list as AsyncIterable<unknown>)[Symbol.asyncIterator](), shape, info, path);
  };
  Object.defineProperty(list, Symbol.asyncIterator, { value, configurable: true });
}

// Taken when the module is loaded: fake timers of a test must not delay responses.
const { setImmediate } = globalThis;

/**
 * The items of an asynchronous iterable of graphql 17. Those that may fail later are promises that stay pending until
 * the iterable has ended, or until its first items before those of `@stream` were read.
 */
class HeldItems implements AsyncIterator<unknown> {
  readonly #iterator: AsyncIterator<unknown>;
  readonly #shape: ListShape;
  readonly #info: GraphQLResolveInfo;
  readonly #path: Path;
  readonly #count: number;
  #index = 0;
  #held: (() => void)[] = [];
  #failure: { readonly error: unknown } | undefined;
  /** Rejects the promise of the step that graphql-js waits for. */
  #reject: (error: unknown) => void = noop;

  constructor(iterator: AsyncIterator<unknown>, shape: ListShape, info: GraphQLResolveInfo, path: Path) {
    this.#iterator = iterator;
    this.#shape = shape;
    this.#info = info;
    this.#path = path;
    this.#count = path === info.path ? itemsBeforeStream(info) : Number.POSITIVE_INFINITY;
  }

  async next(): Promise<IteratorResult<unknown>> {
    if (this.#failure !== undefined) throw this.#failure.error;
    const reading = Promise.resolve(this.#iterator.next());
    // If an item fails meanwhile, graphql-js does not read this one.
    reading.then((step) => new UnusedValues().ignoreRejections(step?.value), noop);
    const step = await new Promise<IteratorResult<unknown>>((resolve, reject) => {
      this.#reject = reject;
      reading.then(resolve, reject);
    });
    if (step.done) this.#release();
    if (step.done || this.#index >= this.#count) return step;
    const value = this.#hold(step.value, this.#index++);
    if (this.#index === this.#count) this.#release();
    return { done: false, value };
  }

  async return(): Promise<IteratorResult<unknown>> {
    this.#held = [];
    return (await this.#iterator.return?.()) ?? { done: true, value: undefined };
  }

  #hold(item: unknown, index: number): unknown {
    if (isThenable(item)) {
      const keys = [...pathKeys(this.#path), index];
      item.then(noop, (reason) => {
        const error = locatedError(reason, this.#info.fieldNodes, keys);
        this.#failure ??= { error };
        this.#reject(error);
      });
    }
    // These are complete at once, or fail.
    else if (item === null || item === undefined || item instanceof Error || this.#shape.hasPlainItems)
      return item;
    return new Promise((resolve) => this.#held.push(() => resolve(item)));
  }

  /** Releases the items after graphql-js has seen the end. Without a reader they stay pending. */
  #release(): void {
    setImmediate(() => {
      if (abortSignalOf(this.#info)?.aborted !== true) for (const release of this.#held) release();
      this.#held = [];
    });
  }
}

const STREAM = optionalExport('GraphQLStreamDirective');

/** The number of items of a list before those that `@stream` delivers later. */
function itemsBeforeStream({ fieldNodes: [node], variableValues }: GraphQLResolveInfo): number {
  const stream =
    node !== undefined && isDirective(STREAM) && getDirectiveValues(STREAM, node, variableValues);
  return stream && stream['if'] !== false ? Number(stream['initialCount']) : Number.POSITIVE_INFINITY;
}

function pathKeys(path: Path | undefined): (string | number)[] {
  return path === undefined ? [] : [...pathKeys(path.prev), path.key];
}

type Views = WeakMap<GraphQLSchema, WeakMap<Resolver, GraphQLSchema>>;
const views: Views = new WeakMap();
const viewsOfDeferred: Views = new WeakMap();

function guardedSchema(schema: GraphQLSchema, fallback: Resolver, readsLater: boolean): GraphQLSchema {
  const bySchema = readsLater ? viewsOfDeferred : views;
  let byFallback = bySchema.get(schema);
  if (byFallback === undefined) {
    byFallback = new WeakMap();
    bySchema.set(schema, byFallback);
  }
  let view = byFallback.get(fallback);
  if (view === undefined) {
    const resolverOf = (place: FieldPlace): Resolver => guardedResolver(place, schema, fallback, readsLater);
    view = viewOfSchema(schema, { resolverOf, typeResult: guardTypeResult });
    byFallback.set(fallback, view);
  }
  return view;
}

/** Creates the resolver of the view of a field. The field's own resolver may be replaced at any time. */
function guardedResolver(
  { field, parentType }: FieldPlace,
  schema: GraphQLSchema,
  fallback: Resolver,
  readsLater: boolean,
): Resolver {
  const { type } = field;
  const shape = listShape(type);
  return (source, args, context, info) => {
    const seen: Mutable<GraphQLResolveInfo> = info;
    seen.schema = schema;
    seen.parentType = parentType;
    seen.returnType = type;
    if (hasTrackers) trackField(info, source);
    const value = (field.resolve ?? fallback)(source, args, context, info);
    if (readsLater) new UnusedValues().ignoreRejections(value);
    if (!V17) return guardValue(value, shape);
    return shape === undefined ? value : guardList17(value, shape, info);
  };
}

const guardedTypeResolver =
  (resolve: TypeResolver): TypeResolver =>
  (value, context, info, type) =>
    guardTypeResult(resolve(value, context, info, originalOf(type)));

/** Guards the result of a function that determines the type of an object. */
const guardTypeResult = <T>(result: T): T => (V17 ? result : guardValue(result, undefined)) as T;
