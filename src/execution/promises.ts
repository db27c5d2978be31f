import type { MaybePromise } from '../../types/connect.ts';

/** Returns true for an object or function with a `then` method: a native promise, or a thenable of another library. */
export function isThenable<T>(value: MaybePromise<T>): value is Promise<T> {
  return (
    ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
    typeof (value as { then?: unknown }).then === 'function'
  );
}
