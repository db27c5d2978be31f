/** Half of the longest interval that a timer can have. */
const MAX_INTERVAL = 2 ** 30;
/** Ticks per deadline: a callback runs at most one tick late. */
const TICKS = 8;

/** Deadlines of equal length that share one timer, since nearly all of them are met. */
export interface Deadlines {
  /** Calls `onTimeout` when the time has elapsed, unless `clear` is called before. */
  set(onTimeout: () => void): void;
  clear(onTimeout: () => void): void;
}

/**
 * Creates deadlines of the given length. They count the ticks of the timer, which is cheaper than reading the
 * clock.
 */
export function createDeadlines(milliseconds: number): Deadlines {
  const waiting = new Map<() => void, number>();
  let timer: NodeJS.Timeout | undefined;
  let ticks = 0;

  function tick(): void {
    ticks += 1;
    for (const [onTimeout, since] of waiting) {
      if (ticks - since <= TICKS) break;
      waiting.delete(onTimeout);
      onTimeout();
    }
    if (waiting.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  }

  return {
    set(onTimeout) {
      if (milliseconds === Number.POSITIVE_INFINITY) return;
      waiting.set(onTimeout, ticks);
      timer ??= setInterval(tick, Math.min(Math.max(1, milliseconds / TICKS), MAX_INTERVAL)).unref();
    },
    clear(onTimeout) {
      waiting.delete(onTimeout);
    },
  };
}

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
