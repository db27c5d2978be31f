import type { MaybePromise } from '../../types/connect.ts';

// What every folder needs for values: promises or not, their types, and maps that create their entries.

export const isBoolean = (value: unknown): value is boolean => typeof value === 'boolean';
export const isFunction = (value: unknown): boolean => typeof value === 'function';
export const isString = (value: unknown): value is string => typeof value === 'string';
/** Whether a value is a promise, or a thenable of another library: an object or function with a method `then`. */
export const isThenable = <T>(value: MaybePromise<T>): value is Promise<T> =>
  ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
  typeof (value as { then?: unknown }).then === 'function';
/** Calls `next` with a value, or later with that of a promise: what is there already waits for no microtask. */
export const settle = <T, R>(value: MaybePromise<T>, next: (value: T) => MaybePromise<R>): MaybePromise<R> =>
  isThenable(value) ? value.then(next) : next(value);

/** Returns the value of a key, which is created at its first use. */
export function getOrCreate<Key, Value>(
  values: { get(key: Key): Value | undefined; set(key: Key, value: Value): unknown },
  key: Key,
  create: () => NoInfer<Value>,
): Value {
  let value = values.get(key);
  if (value === undefined) {
    value = create();
    values.set(key, value);
  }
  return value;
}

/** Returns a function that calls `load` the first time, and returns its result every time. */
export function once<T extends object>(load: () => T): () => T {
  let loaded: T | undefined;
  return () => {
    loaded ??= load();
    return loaded;
  };
}

/** Runs steps that may be asynchronous. Their exception or rejection goes to `fail`. */
export function caught<T>(
  steps: () => MaybePromise<T>,
  fail: (error: unknown) => MaybePromise<T>,
): MaybePromise<T> {
  try {
    const result = steps();
    return isThenable(result) ? result.then(undefined, fail) : result;
  } catch (error) {
    return fail(error);
  }
}
export const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0;
export const isPositive = (value: unknown): value is number => isCount(value) && value > 0;
export const isSeconds = (value: unknown): boolean => Number.isFinite(value) && (value as number) >= 0;
export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
