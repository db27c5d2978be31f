import { AsyncLocalStorage } from 'node:async_hooks';
import type {
  GraphQLAbstractType,
  GraphQLFieldResolver,
  GraphQLResolveInfo,
  GraphQLTypeResolver,
} from 'graphql';
import { defaultTypeResolver, isObjectType } from 'graphql';
import { V17 } from '../graphql-version.ts';
import { type FieldTracker, isThenable } from '../types.ts';
import { currentGuard, type ExecutionGuard } from './guarded-execution.ts';
import { isObject, isSafePrimitive, type ValueShape } from './value-shape.ts';

export type FieldResolver = GraphQLFieldResolver<unknown, unknown>;
export type TypeResolver = GraphQLTypeResolver<unknown, unknown>;
export type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/** The property of a view that has the type or schema of the application. */
export const ORIGINAL: unique symbol = Symbol('original');

export const originalOf = <T extends object>(type: T): T =>
  (type as { readonly [ORIGINAL]?: T })[ORIGINAL] ?? type;

const MUTATION: string = 'mutation';
const guards = new WeakMap<object, ExecutionGuard>();
let lastVariables: object | undefined;
let lastGuard: ExecutionGuard | undefined;

/**
 * The guard of an execution. graphql 17 runs resolvers also outside of `ExecutionGuard.run`, and graphql 16
 * those of a mutation after one that returned a promise. All have the same variables.
 */
export function guardOf({ variableValues, operation }: GraphQLResolveInfo): ExecutionGuard | undefined {
  const current = currentGuard();
  if (current !== undefined) {
    if (current.variables !== variableValues) {
      // A function of the option `engine` may execute several operations.
      current.variables = variableValues;
      const isMutation = operation.operation === MUTATION;
      if (V17 || isMutation) guards.set(variableValues, current);
      if (isMutation) current.readRootLater();
    }
    return current.enter();
  }
  if (variableValues === lastVariables) return lastGuard?.enter();
  const guard = guards.get(variableValues);
  if (guard === undefined) return undefined;
  lastVariables = variableValues;
  lastGuard = guard;
  return guard.enter();
}

const guardTypes =
  (resolve: TypeResolver): TypeResolver =>
  (value, context, info, type) =>
    guardTypeName(resolve, originalOf(type), [value, context, info]);

const guardedDefault = guardTypes(defaultTypeResolver);

/** Guards the option `typeResolver`. */
export function guardedTypeResolver(resolver: TypeResolver | null | undefined): TypeResolver {
  return resolver === undefined || resolver === null ? guardedDefault : guardTypes(resolver);
}

export function guardResult(
  guard: ExecutionGuard | undefined,
  value: unknown,
  shape: ValueShape,
  info: GraphQLResolveInfo,
): unknown {
  if (guard === undefined) return value;
  if (isObject(value)) return guard.result(value, shape, info);
  if (!isSafePrimitive(value, shape)) guard.fail();
  return value;
}

/** The trackers of executions, by `info.variableValues`. */
const trackers = new WeakMap<object, FieldTracker>();
/** Whether executions of this process have had trackers. */
export let hasTrackers = false;
let unattributed = 0;

/** The number of calls of resolvers whose execution is not known. */
export const unattributedCalls = (): number => unattributed;

const calls = new AsyncLocalStorage<FieldTracker>();

/** Calls a function of the application, which may begin the execution later. Its fields go to the tracker. */
export const runTracked = <T>(tracker: FieldTracker, run: () => T): T => calls.run(tracker, run);

/** Called for the tracker of an execution before it runs. */
export function expectTrackers(): void {
  hasTrackers = true;
}

/** graphql 16 and functions of the option `engine` call some resolvers outside of `ExecutionGuard.run`. */
export function trackField(
  guard: ExecutionGuard | undefined,
  info: GraphQLResolveInfo,
  source: unknown,
): void {
  const tracker = guard?.tracker ?? trackers.get(info.variableValues) ?? calls.getStore();
  if (tracker === undefined) {
    unattributed += 1;
    return;
  }
  if (guard !== undefined && info.path.prev === undefined) trackers.set(info.variableValues, tracker);
  tracker(info, source);
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
  return guardCall(
    guard,
    () => resolve(value, context, info, type),
    check,
    value,
  ) as ReturnType<TypeResolver>;
}

/** Calls a function of a type with an object; `check` gets its result. */
export function guardCall(
  guard: ExecutionGuard | undefined,
  call: () => unknown,
  check: (value: unknown) => unknown,
  object: unknown,
): unknown {
  if (guard === undefined) return call();
  try {
    const value = call();
    if (!isThenable(value)) return check(value);
    guard.readLater(object);
    return guard.promise(value, check);
  } catch (error) {
    guard.fail();
    throw error;
  }
}
