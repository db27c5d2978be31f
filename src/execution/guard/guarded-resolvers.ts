import { AsyncLocalStorage } from 'node:async_hooks';
import {
  defaultFieldResolver,
  defaultTypeResolver,
  type GraphQLAbstractType,
  type GraphQLFieldResolver,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  type GraphQLTypeResolver,
  getNullableType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
} from 'graphql';
import type { FieldTracker } from '../caching.ts';
import { V17 } from '../graphql-version.ts';
import { isThenable } from '../types.ts';
import { currentGuard, type ExecutionGuard } from './guarded-execution.ts';

type FieldResolver = GraphQLFieldResolver<unknown, unknown>;
type TypeResolver = GraphQLTypeResolver<unknown, unknown>;
type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/** The types of the application, by their guarded views. */
const originals = new WeakMap<object, object>();
const guards = new WeakMap<object, ExecutionGuard>();

/**
 * The guard of an execution. Only graphql 17 runs resolvers outside of `ExecutionGuard.run`, later and with
 * the same variables.
 */
export function guardOf({ variableValues }: GraphQLResolveInfo): ExecutionGuard | undefined {
  if (!V17) return currentGuard();
  let guard = guards.get(variableValues);
  if (guard === undefined) {
    guard = currentGuard();
    if (guard !== undefined) guards.set(variableValues, guard);
  }
  return guard;
}

export const originalOf = <T extends object>(type: T): T => (originals.get(type) as T | undefined) ?? type;

/** Guards the option `fieldResolver`. */
export function guardedFieldResolver(resolver: FieldResolver | null | undefined): FieldResolver {
  const resolve = resolver ?? defaultFieldResolver;
  return (source, args, context, info) => {
    const parent = originalOf(info.parentType);
    const { type } = parent.getFields()[info.fieldName] ?? { type: info.returnType };
    return guardField(resolve, type, info.schema, [source, args, context, info]);
  };
}

/** Guards the option `typeResolver`. */
export function guardedTypeResolver(resolver: TypeResolver | null | undefined): TypeResolver {
  const resolve = resolver ?? defaultTypeResolver;
  return (value, context, info, type) => guardTypeName(resolve, originalOf(type), [value, context, info]);
}

export function guardField(
  resolve: FieldResolver,
  type: GraphQLOutputType,
  schema: GraphQLSchema,
  [source, args, context, info]: Parameters<FieldResolver>,
): unknown {
  const guard = guardOf(info);
  const seen: Mutable<GraphQLResolveInfo> = info;
  seen.schema = originalOf(schema);
  seen.parentType = originalOf(info.parentType);
  seen.returnType = type;
  trackField(guard, info, source);
  if (guard === undefined) return resolve(source, args, context, info);
  try {
    const value = resolve(source, args, context, info);
    if ((value === null || value === undefined) && isNonNullType(type)) guard.fail();
    // graphql 17 converts leaves outside of `run`, so a failed conversion has no guard.
    return V17 && isLeafType(getNullableType(type))
      ? guard.leaf(value)
      : guard.result(value, countLists(type));
  } catch (error) {
    guard.fail();
    throw error;
  }
}

/** The trackers of executions, by guard and by `info.variableValues`. */
const trackers = new WeakMap<object, FieldTracker>();
let unattributed = 0;

/** The number of calls of resolvers whose execution is not known. */
export const unattributedCalls = (): number => unattributed;

/** Sets the function that gets the fields of a guarded execution. */
export function setTracker(guard: ExecutionGuard, tracker: FieldTracker): void {
  trackers.set(guard, tracker);
}

const calls = new AsyncLocalStorage<FieldTracker>();

/** Calls a function of the application, which may begin the execution later. Its fields go to the tracker. */
export const runTracked = <T>(tracker: FieldTracker, run: () => T): T => calls.run(tracker, run);

/** graphql 16 and functions of the option `engine` call some resolvers outside of `ExecutionGuard.run`. */
function trackField(guard: ExecutionGuard | undefined, info: GraphQLResolveInfo, source: unknown): void {
  const tracker = trackers.get(guard ?? info.variableValues) ?? calls.getStore();
  if (tracker === undefined) {
    if (guard === undefined) unattributed += 1;
    return;
  }
  if (guard !== undefined && info.path.prev === undefined) trackers.set(info.variableValues, tracker);
  tracker(info, source);
}

function countLists(type: GraphQLOutputType): number {
  if (isNonNullType(type)) return countLists(type.ofType);
  return isListType(type) ? 1 + countLists(type.ofType) : 0;
}

export function guardTypeName(
  resolve: TypeResolver,
  type: GraphQLAbstractType,
  [value, context, info]: [unknown, unknown, GraphQLResolveInfo],
): ReturnType<TypeResolver> {
  const guard = guardOf(info);
  const check = (name: unknown): unknown => {
    const found = typeof name === 'string' ? info.schema.getType(name) : undefined;
    if (!isObjectType(found) || !info.schema.isSubType(type, found)) guard?.fail();
    return name;
  };
  return guardCall(guard, () => resolve(value, context, info, type), check) as ReturnType<TypeResolver>;
}

/** Calls a function of a type; `check` gets its result. */
export function guardCall(
  guard: ExecutionGuard | undefined,
  call: () => unknown,
  check: (value: unknown) => unknown,
): unknown {
  if (guard === undefined) return call();
  try {
    const value = call();
    return isThenable(value) ? guard.promise(value, check) : check(value);
  } catch (error) {
    guard.fail();
    throw error;
  }
}

/** Creates a view of a type or schema. It inherits everything else from the original. */
export function derive<T extends object>(original: T, properties: PropertyDescriptorMap): T {
  const view: T = Object.create(original, properties);
  originals.set(view, original);
  return view;
}
