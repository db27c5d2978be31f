/**
 * Limits the wait for a store. A reply that arrives while the process is blocked is in time: the event loop reads it
 * between its timers and its immediates.
 *
 * @param milliseconds - after which the returned promise rejects with the error
 */
export function withTimeLimit<T>(
  promise: Promise<T>,
  milliseconds: number,
  createError: () => Error,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => setImmediate(() => reject(createError())), milliseconds);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
