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
  type FieldNode,
  type GraphQLAbstractType,
  type GraphQLField,
  type GraphQLFieldResolver,
  type GraphQLIsTypeOfFn,
  GraphQLList,
  type GraphQLNamedType,
  GraphQLNonNull,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  type GraphQLTypeResolver,
  getDirectiveValues,
  getNullableType,
  isAbstractType,
  isDirective,
  isEnumType,
  isIntrospectionType,
  isListType,
  isNonNullType,
  isObjectType,
  isSpecifiedScalarType,
  locatedError,
  type OperationTypeNode,
  SchemaMetaFieldDef,
  TypeMetaFieldDef,
  TypeNameMetaFieldDef,
} from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import { stepOf } from '../options/rules.ts';
import { getOrCreate, settle } from '../options/values.ts';
import { noteThrown } from './graphql-error.ts';
import { optionalExport, V17 } from './graphql-version.ts';
import { watchLoads } from './n-plus-one.ts';
import { batchResolverOf } from './resolve-many.ts';
import { type ExecutionInputs, type FieldTracker, type Guard, type Guards, isThenable } from './types.ts';
import { UnusedValues } from './unused-values.ts';

type Resolver = GraphQLFieldResolver<unknown, unknown>;
type TypeResolver = GraphQLTypeResolver<unknown, unknown>;
type Then = (value: unknown) => unknown;
type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

const THEN = 'then';
const { then } = Promise.prototype;
const noop = (): void => undefined;
const nativeIterator = Array.prototype[Symbol.iterator];

/** The tracker of the fields of an execution; undefined in it if the execution has none. */
const trackers = new AsyncLocalStorage<{ readonly track: FieldTracker | undefined }>();
/** Whether executions of this process have had trackers. */
let hasTrackers = false;
let unattributed = 0;

/** The number of calls of resolvers whose execution is not known: a function of the option `engine` may lose it. */
export const unattributedCalls = (): number => unattributed;

/** The inputs of an execution whose caller is checked, and the checks. */
export interface Caller {
  readonly guards: Guards;
  readonly inputs: ExecutionInputs;
  /** As in `ValidatedOperation`. */
  readonly visible: GraphQLSchema | undefined;
}

interface GuardedExecution {
  readonly inputs: ExecutionInputs;
  /** Gets the fields. */
  readonly track: FieldTracker | undefined;
  /** Undefined if callers are not checked. */
  readonly caller: Caller | undefined;
  /** Deferred parts read the properties of objects that resolvers returned before. */
  readonly readsLater?: boolean;
}

/** The member of a schema, and of `info`, that has the caller of the execution. */
const CALLER: unique symbol = Symbol('caller');
interface WithCaller {
  [CALLER]?: Caller | undefined;
}

/** The member of a schema that has the inputs of its execution, for the resolvers of graphql 16. */
const INPUTS: unique symbol = Symbol('inputs');
interface WithInputs {
  readonly [INPUTS]?: ExecutionInputs;
}

/** Calls `execute` with guarded resolvers. Changes `args`. */
export function executeGuarded<Result = MaybePromise<ExecutionResult>>(
  execute: (args: ExecutionArgs) => Result,
  args: ExecutionArgs,
  { inputs, track, caller, readsLater = false }: GuardedExecution,
): Result {
  const { schema, fieldResolver, typeResolver } = args;
  const view = guardedSchema(schema, fieldResolver ?? defaultFieldResolver, { caller, readsLater });
  // Resolvers find the schema of their execution in `info`, also where asynchronous contexts are lost.
  args.schema = schemaFor(view, inputs, caller);
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

/** Returns the view of a schema for one execution. Its introspection shows what the caller may see. */
function schemaFor(view: GraphQLSchema, inputs: ExecutionInputs, caller: Caller | undefined): GraphQLSchema {
  if (V17 && caller === undefined) return view;
  const own = { [CALLER]: { value: caller }, [INPUTS]: { value: inputs } };
  const visible = caller?.visible;
  if (visible === undefined) return Object.create(view, own);
  const fieldOf = (type: GraphQLObjectType, name: string): Field | undefined =>
    name === TypeNameMetaFieldDef.name ? TypeNameMetaFieldDef : type.getFields()[name];
  return Object.create(view, {
    ...own,
    // graphql-js takes its own `__schema` and `__type` for this type, and the fields of the view for any other.
    getQueryType: { value: () => undefined },
    getField: { value: fieldOf },
    getPossibleTypes: { value: (type: GraphQLAbstractType) => visible.getPossibleTypes(type) },
  });
}

const visibleOf = ({ schema }: GraphQLResolveInfo): GraphQLSchema | undefined =>
  (schema as WithCaller)[CALLER]?.visible;

/** The fields of introspection for executions whose caller sees a part of the schema. */
const INTROSPECTION: readonly Field[] = [
  { ...SchemaMetaFieldDef, resolve: (_source, _args, _context, info) => visibleOf(info) },
  {
    ...TypeMetaFieldDef,
    resolve: (_source, { name }, _context, info) => visibleOf(info)?.getType(String(name)),
  },
];

/**
 * Guards the source of a subscription. graphql 17 does not release one that is opened after the signal was aborted; with
 * graphql 16 its resolver would have no signal. Changes `args`.
 */
export function guardSource(args: ExecutionArgs, inputs: ExecutionInputs): void {
  const { schema, fieldResolver } = args;
  const view = guardedSchema(schema, fieldResolver ?? defaultFieldResolver, {
    caller: undefined,
    readsLater: false,
  });
  args.schema = schemaFor(view, inputs, undefined);
}

/** Gives resolvers the signal of their execution, as graphql 17 does. Starts no mutation after it was aborted. */
function addSignal(info: GraphQLResolveInfo): void {
  const { [INPUTS]: inputs } = info.schema as WithInputs;
  if (inputs === undefined) return;
  Object.assign(info, { getAbortSignal: () => inputs.signal });
  if (info.operation.operation === 'mutation' && info.path.prev === undefined)
    inputs.signal?.throwIfAborted();
}

function returnLate(source: unknown): void {
  if (!isObject(source) || !(Symbol.asyncIterator in source)) return;
  const iterator = (source as object as AsyncIterable<unknown>)[Symbol.asyncIterator]();
  new Promise((resolve) => resolve(iterator.return?.())).catch(() => undefined);
}

function trackField(info: GraphQLResolveInfo, source: unknown): void {
  const store = trackers.getStore();
  if (store === undefined) unattributed += 1;
  else store.track?.(info, source);
}

/** The properties of a list type that decide how its values are guarded. */
interface ListShape {
  /** Whether graphql 16 gets the lists in another form. An error of an item that is not required ends at the item. */
  readonly isGuarded: boolean;
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
function listShape(type: GraphQLOutputType): ListShape | undefined {
  const list = getNullableType(type);
  if (!isListType(list)) return undefined;
  const hasRequiredItems = isNonNullType(list.ofType);
  const items = listShape(list.ofType);
  const isGuarded = hasRequiredItems || items !== undefined;
  const hasPlainItems = isPlainType(getNullableType(list.ofType));
  return { isGuarded, hasRequiredItems, hasPlainItems, items };
}

const isObject = (value: unknown): value is object =>
  (typeof value === 'object' && value !== null) || typeof value === 'function';

/** The list of graphql 16 whose items are completed now. */
let openList: GuardedList | undefined;

/** Guards a value for graphql 16: of a field, or an item of a list. */
function guardValue(value: unknown, shape: ListShape | undefined): unknown {
  if (isThenable(value))
    return openList === undefined && shape === undefined ? value : new GuardedPromise(value, shape, openList);
  return shape?.isGuarded === true && isObject(value) && Symbol.iterator in value
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
function guardList17(value: unknown, shape: ListShape, info: GraphQLResolveInfo, isItem = false): unknown {
  const onList = (list: unknown): unknown => guardList17(list, shape, info, isItem);
  if (types.isPromise(value)) {
    // Called before graphql-js reads the list.
    then.call(then.call(value, onList), undefined, noop);
    return value;
  }
  if (isThenable(value)) return withObserver(value, onList);
  if (!isObject(value)) return value;
  if (isAborted(info)) new UnusedValues().ignoreItems(value);
  else {
    if (Array.isArray(value) && shape.items !== undefined) {
      // An iterator of the application may create the items: it must not be read twice.
      const isPlain = value[Symbol.iterator] === nativeIterator;
      if (isPlain) for (const item of value) guardList17(item, shape.items, info, true);
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

const isAborted = (info: GraphQLResolveInfo & { getAbortSignal?: () => AbortSignal | undefined }): boolean =>
  info.getAbortSignal?.()?.aborted === true;

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
      if (value === null || value === undefined || value instanceof Error || isAborted(this.#info)) return;
    }
  }

  async #read(): Promise<IteratorResult<unknown>> {
    const { done, value } = stepOf(await this.#iterator.next());
    if (done) return { done, value };
    const item: unknown = isThenable(value) ? await settledItem(value) : value;
    const { items } = this.#shape;
    if (items !== undefined) guardList17(item, items, this.#info, true);
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

type Views = WeakMap<GraphQLSchema, WeakMap<Resolver, GraphQLSchema>>;

/** The views by the checks of callers, and of executions without them. */
const views: WeakMap<object, { readonly now: Views; readonly later: Views }> = new WeakMap();
const WITHOUT_CHECKS = {};

function viewsFor({ caller, readsLater }: Pick<Required<GuardedExecution>, 'caller' | 'readsLater'>): Views {
  const create = () => ({ now: new WeakMap(), later: new WeakMap() });
  const { now, later } = getOrCreate(views, caller?.guards ?? WITHOUT_CHECKS, create);
  return readsLater ? later : now;
}

function guardedSchema(
  schema: GraphQLSchema,
  fallback: Resolver,
  execution: Pick<Required<GuardedExecution>, 'caller' | 'readsLater'>,
): GraphQLSchema {
  const bySchema = viewsFor(execution);
  const guards = execution.caller?.guards;
  const byFallback = getOrCreate(bySchema, schema, () => new WeakMap());
  let view = byFallback.get(fallback);
  if (view === undefined) {
    const { readsLater } = execution;
    const resolverOf = (place: FieldPlace): Resolver => {
      const resolver = guardedResolver(place, schema, fallback, readsLater);
      return guards === undefined
        ? resolver
        : securedResolver(resolver, guards.fieldGuard(schema, place.parentType, place.field));
    };
    view = viewOfSchema(schema, (place) => ({
      resolve: resolverOf(place),
      ...(place.parentType === schema.getSubscriptionType() && {
        subscribe: guardedSubscriber(place, schema),
      }),
    }));
    byFallback.set(fallback, view);
  }
  return view;
}

/** Checks the caller before a resolver is called. */
function securedResolver(resolve: Resolver, guard: Guard | undefined): Resolver {
  return (source, args, context, info) => {
    const { schema, fieldNodes, operation } = info;
    const { [CALLER]: caller } = schema as WithCaller;
    if (caller === undefined) throw new TypeError('A field was executed without its caller');
    const refusal = guard?.(caller.inputs, fieldNodes[0] as FieldNode, operation);
    if (refusal !== undefined) throw refusal;
    const auth = caller.guards.authOf?.(caller.inputs);
    Object.assign(info, auth === undefined ? { [CALLER]: caller } : { auth, [CALLER]: caller });
    return resolve(source, args, context, info);
  };
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
  const batched = batchResolverOf(field, parentType);
  const watch = watchLoads(field, parentType);
  return (source, args, context, info) => {
    const seen: Mutable<GraphQLResolveInfo> = info;
    if (!V17) addSignal(info);
    seen.schema = schema;
    seen.parentType = parentType;
    seen.returnType = type;
    if (hasTrackers) trackField(info, source);
    const resolved = callResolver(batched ?? field.resolve ?? fallback, source, args, context, info);
    const value =
      watch === undefined
        ? resolved
        : watch(Object(info.variableValues), info.fieldNodes[0] as FieldNode, resolved);
    if (readsLater) new UnusedValues().ignoreRejections(value);
    if (!V17) return guardValue(value, shape);
    return shape === undefined ? value : guardList17(value, shape, info);
  };
}

function guardedSubscriber({ field, parentType }: FieldPlace, schema: GraphQLSchema): Resolver {
  return (source, args, context, info) => {
    if (!V17) addSignal(info);
    Object.assign(info, { schema, parentType, returnType: field.type });
    const opening = (field.subscribe ?? defaultFieldResolver)(source, args, context, info);
    return settle(opening, (opened) => {
      if (V17 && isAborted(info)) returnLate(opened);
      return opened;
    });
  };
}

/** Calls a resolver and notes which errors are the application's. */
function callResolver(resolve: Resolver, ...args: Parameters<Resolver>): unknown {
  let value: unknown;
  try {
    value = resolve(...args);
  } catch (reason) {
    noteThrown(reason);
    throw reason;
  }
  if (types.isPromise(value)) then.call(value, undefined, noteThrown);
  else if (types.isNativeError(value)) noteThrown(value);
  return value;
}

/** Calls a type resolver with the type of the application, and checks the caller. */
const guardedTypeResolver =
  (resolve: TypeResolver): TypeResolver =>
  (value, context, info, view) => {
    const name = resolve(value, context, info, originalOf(view));
    if (!(CALLER in info)) return guardTypeCheck(name);
    return guardTypeCheck(
      settle(name, (resolved) => {
        assertCaller(info, resolved);
        return resolved;
      }),
    );
  };

/** Guards the promise of a function that determines the type of an object; graphql 17 handles its rejections. */
const guardTypeCheck = <T>(result: MaybePromise<T>): MaybePromise<T> =>
  (V17 ? result : guardValue(result, undefined)) as MaybePromise<T>;

/** Checks the caller, if there is one: the schema may require something for values of a type. */
function assertCaller(info: GraphQLResolveInfo, name: unknown): void {
  const { [CALLER]: caller } = info as WithCaller;
  if (caller === undefined) return;
  const { schema, fieldNodes, operation } = info;
  const type = schema.getType(name as string);
  const guard = isObjectType(type) ? caller.guards.valueGuard?.(schema, type) : undefined;
  const refusal = guard?.(caller.inputs, fieldNodes[0] as FieldNode, operation);
  if (refusal !== undefined) throw refusal;
}

type Field = GraphQLField<unknown, unknown>;

/** A field of the application's schema. */
interface FieldPlace {
  readonly field: Field;
  readonly parentType: GraphQLObjectType;
}

/** Returns the resolvers that a field has in the view. */
type ResolversOf = (place: FieldPlace) => Pick<Field, 'resolve' | 'subscribe'>;

/** The property of a view that has the type of the application. */
const ORIGINAL: unique symbol = Symbol('original');

const originalOf = <T extends object>(view: T): T => (view as { readonly [ORIGINAL]?: T })[ORIGINAL] ?? view;

/** Creates a view of a type or schema. It inherits everything else from the original. */
function derive<T extends object>(original: T, properties: PropertyDescriptorMap): T {
  return Object.create(original, { ...properties, [ORIGINAL]: { value: original } });
}

/** Creates a view of a schema for an execution with other resolvers. The schema itself stays as it is. */
function viewOfSchema(schema: GraphQLSchema, resolversOf: ResolversOf): GraphQLSchema {
  const known = new Map<GraphQLNamedType, GraphQLNamedType>();
  const named = <T extends GraphQLNamedType | null | undefined>(type: T): T => {
    // graphql-js compares the types of introspection with its own.
    if (type === null || type === undefined || isIntrospectionType(type)) return type;
    const introspection = type === schema.getQueryType() ? INTROSPECTION : [];
    const view = getOrCreate(known, type, () => viewOf(type, resolversOf, output, introspection));
    return view as T;
  };
  const output = (type: GraphQLOutputType): GraphQLOutputType => {
    if (isNonNullType(type)) return new GraphQLNonNull(output(type.ofType) as GraphQLObjectType);
    return isListType(type) ? new GraphQLList(output(type.ofType)) : named(type);
  };
  return derive(schema, {
    getType: { value: (name: string) => named(schema.getType(name)) },
    getRootType: { value: (operation: OperationTypeNode) => named(schema.getRootType(operation)) },
    getQueryType: { value: () => named(schema.getQueryType()) },
    getMutationType: { value: () => named(schema.getMutationType()) },
    getSubscriptionType: { value: () => named(schema.getSubscriptionType()) },
    isSubType: {
      value: (...[type, sub]: Parameters<typeof schema.isSubType>) =>
        schema.isSubType(originalOf(type), originalOf(sub)),
    },
  });
}

type Output = (type: GraphQLOutputType) => GraphQLOutputType;

function viewOf(
  type: GraphQLNamedType,
  resolversOf: ResolversOf,
  output: Output,
  introspection: readonly Field[],
): GraphQLNamedType {
  if (isObjectType(type)) return objectView(type, resolversOf, output, introspection);
  return isAbstractType(type) ? abstractView(type) : type;
}

function objectView(
  type: GraphQLObjectType,
  resolversOf: ResolversOf,
  output: Output,
  introspection: readonly Field[],
): GraphQLObjectType {
  let fields: Record<string, Field> | undefined;
  const createFields = (): Record<string, Field> => {
    // Like the object of graphql-js: V8 finds properties of a dictionary faster where many types meet.
    const created: Record<string, Field> = Object.create(null);
    for (const [name, field] of Object.entries(type.getFields())) {
      created[name] = {
        ...field,
        ...resolversOf({ field, parentType: type }),
        type: output(field.type),
      };
    }
    for (const field of introspection) Object.defineProperty(created, field.name, { value: field });
    return created;
  };
  const isTypeOf: GraphQLIsTypeOfFn<unknown, unknown> = (value, context, info) =>
    guardTypeCheck(type.isTypeOf?.(value, context, info) ?? false);
  return derive(type, {
    getFields: {
      value: () => {
        fields ??= createFields();
        return fields;
      },
    },
    isTypeOf: { get: () => (type.isTypeOf ? isTypeOf : undefined) },
  });
}

function abstractView<T extends GraphQLAbstractType>(type: T): T {
  const resolveType = guardedTypeResolver((...args) => {
    // Without the type as `this`, as in graphql-js.
    const { resolveType: resolve } = type;
    return resolve?.(...args);
  });
  return derive(type, { resolveType: { get: () => (type.resolveType ? resolveType : undefined) } });
}
