/**
 * Limits the wait for a store. A reply that arrives while the process is blocked is in time.
 *
 * @param milliseconds - after which the returned promise rejects with the error
 */
export function withTimeLimit<T>(
  promise: Promise<T>,
  milliseconds: number,
  createError: () => Error,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = startTimeLimit(milliseconds, () => reject(createError()));
    promise.then(resolve, reject).finally(cancel);
  });
}

/**
 * Calls a function after a time, and after replies that have arrived while the process was blocked: the event loop
 * reads them between its timers and its immediates.
 *
 * @returns a function that cancels the call
 */
export function startTimeLimit(milliseconds: number, onLate: () => void): () => void {
  let immediate: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => {
    immediate = setImmediate(onLate);
  }, milliseconds);
  return () => {
    clearTimeout(timer);
    clearImmediate(immediate);
  };
}
