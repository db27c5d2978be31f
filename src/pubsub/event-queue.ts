/** A producer pushes values, a consumer iterates the stream. */
export interface Queue<T> {
  readonly stream: AsyncIterableIterator<T>;
  push(value: T): void;
  /** Ends the stream, with or without an error. Values that were pushed earlier are still delivered. */
  end(error?: Error): void;
}

interface Waiter<T> {
  resolve(result: IteratorResult<T>): void;
  reject(error: Error): void;
}

/**
 * Buffers at most `limit` values; one more drops them and ends the stream with `overflow()`. `ended` is called once, when the
 * queue takes no more values.
 */
export function createQueue<T>(limit: number, overflow: () => Error, ended: () => void): Queue<T> {
  const values: T[] = [];
  const waiters: Waiter<T>[] = [];
  let open = true;
  let failure: Error | undefined;

  function end(error?: Error): void {
    if (!open) return;
    open = false;
    failure = error;
    ended();
    for (const waiter of waiters.splice(0)) settle(waiter);
  }

  /** An error rejects one `next()`; after it the stream is done. */
  function settle(waiter: Waiter<T>): void {
    const error = failure;
    failure = undefined;
    if (error === undefined) waiter.resolve({ value: undefined, done: true });
    else waiter.reject(error);
  }

  return {
    end,
    push(value) {
      if (!open) return;
      const waiter = waiters.shift();
      if (waiter !== undefined) return waiter.resolve({ value, done: false });
      if (values.length < limit) return void values.push(value);
      values.length = 0;
      end(overflow());
    },
    stream: {
      next() {
        if (values.length > 0) return Promise.resolve({ value: values.shift() as T, done: false });
        return new Promise((resolve, reject) => {
          const waiter = { resolve, reject };
          if (open) waiters.push(waiter);
          else settle(waiter);
        });
      },
      return() {
        values.length = 0;
        end();
        return Promise.resolve({ value: undefined, done: true });
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    },
  };
}
