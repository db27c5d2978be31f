/*
 * How an execution of graphql-js is kept safe: a view of the schema whose resolvers check the caller, know the
 * signal, note the errors of the application, and return lists and promises that graphql-js would leave unhandled in
 * another form, since an unhandled rejection ends the process. Every other value reaches graphql-js as it is. A promise
 * that no resolver has returned belongs to the application.
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
  type GraphQLFieldResolver,
  type GraphQLObjectType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  type GraphQLTypeResolver,
  isObjectType,
  SchemaMetaFieldDef,
  TypeMetaFieldDef,
  TypeNameMetaFieldDef,
} from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import { getOrCreate, isObject, settle } from '../options/values.ts';
import { noteThrown } from './graphql-error.ts';
import { V17 } from './graphql-version.ts';
import { watchLoads } from './n-plus-one.ts';
import { batchResolverOf } from './resolve-many.ts';
import { hasAbortedSignal, listShape, outsideOfLists, protectList17, safeValue } from './safe-lists.ts';
import { type Field, type FieldPlace, originalOf, viewOfSchema } from './schema-view.ts';
import type { ExecutionInputs, FieldTracker, Guard, Guards } from './types.ts';
import { UnusedValues } from './unused-values.ts';

type Resolver = GraphQLFieldResolver<unknown, unknown>;
type TypeResolver = GraphQLTypeResolver<unknown, unknown>;
type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

const { then } = Promise.prototype;

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

interface SafeExecution {
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

/** Calls `execute` of graphql-js with safe resolvers. Changes `args`. */
export function executeSafely<Result = MaybePromise<ExecutionResult>>(
  execute: (args: ExecutionArgs) => Result,
  args: ExecutionArgs,
  { inputs, track, caller, readsLater = false }: SafeExecution,
): Result {
  const { schema, fieldResolver, typeResolver } = args;
  const view = safeSchema(schema, fieldResolver ?? defaultFieldResolver, { caller, readsLater });
  // Resolvers find the schema of their execution in `info`, also where asynchronous contexts are lost.
  args.schema = schemaFor(view, inputs, caller);
  args.typeResolver = safeTypeResolver(typeResolver ?? defaultTypeResolver);
  if (track !== undefined) hasTrackers = true;
  return outsideOfLists(() => (hasTrackers ? trackers.run({ track }, execute, args) : execute(args)));
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
 * Makes the resolver of a source safe. graphql 17 does not release one that is opened after the signal was aborted; with
 * graphql 16 its resolver would have no signal. Changes `args`.
 */
export function protectSource(args: ExecutionArgs, inputs: ExecutionInputs): void {
  const { schema, fieldResolver } = args;
  const view = safeSchema(schema, fieldResolver ?? defaultFieldResolver, {
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

type Views = WeakMap<GraphQLSchema, WeakMap<Resolver, GraphQLSchema>>;

/** The views by the checks of callers, and of executions without them. */
const views: WeakMap<object, { readonly now: Views; readonly later: Views }> = new WeakMap();
const WITHOUT_CHECKS = {};

function viewsFor({ caller, readsLater }: Pick<Required<SafeExecution>, 'caller' | 'readsLater'>): Views {
  const create = () => ({ now: new WeakMap(), later: new WeakMap() });
  const { now, later } = getOrCreate(views, caller?.guards ?? WITHOUT_CHECKS, create);
  return readsLater ? later : now;
}

function safeSchema(
  schema: GraphQLSchema,
  fallback: Resolver,
  execution: Pick<Required<SafeExecution>, 'caller' | 'readsLater'>,
): GraphQLSchema {
  const bySchema = viewsFor(execution);
  const guards = execution.caller?.guards;
  const byFallback = getOrCreate(bySchema, schema, () => new WeakMap());
  let view = byFallback.get(fallback);
  if (view === undefined) {
    const { readsLater } = execution;
    const resolverOf = (place: FieldPlace): Resolver => {
      const resolver = safeResolver(place, schema, fallback, readsLater);
      return guards === undefined
        ? resolver
        : checkedResolver(resolver, guards.fieldGuard(schema, place.parentType, place.field));
    };
    view = viewOfSchema(schema, {
      resolvers: (place) => ({
        resolve: resolverOf(place),
        ...(place.parentType === schema.getSubscriptionType() && {
          subscribe: safeSubscriber(place, schema),
        }),
      }),
      typeResolver: safeTypeResolver,
      isTypeOf: safeTypeCheck,
      introspection: INTROSPECTION,
    });
    byFallback.set(fallback, view);
  }
  return view;
}

/** Checks the caller before a resolver is called. */
function checkedResolver(resolve: Resolver, guard: Guard | undefined): Resolver {
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
function safeResolver(
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
    if (!V17) return safeValue(value, shape);
    return shape === undefined ? value : protectList17(value, shape, info);
  };
}

function safeSubscriber({ field, parentType }: FieldPlace, schema: GraphQLSchema): Resolver {
  return (source, args, context, info) => {
    if (!V17) addSignal(info);
    Object.assign(info, { schema, parentType, returnType: field.type });
    const opening = (field.subscribe ?? defaultFieldResolver)(source, args, context, info);
    return settle(opening, (opened) => {
      if (V17 && hasAbortedSignal(info)) returnLate(opened);
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
const safeTypeResolver =
  (resolve: TypeResolver): TypeResolver =>
  (value, context, info, view) => {
    const name = resolve(value, context, info, originalOf(view));
    if (!(CALLER in info)) return safeTypeCheck(name);
    return safeTypeCheck(
      settle(name, (resolved) => {
        assertCaller(info, resolved);
        return resolved;
      }),
    );
  };

/** Makes the promise safe of a function that determines the type of an object; graphql 17 handles its rejections. */
const safeTypeCheck = <T>(result: MaybePromise<T>): MaybePromise<T> =>
  (V17 ? result : safeValue(result, undefined)) as MaybePromise<T>;

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
