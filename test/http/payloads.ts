import { once } from 'node:events';

/** A source of payloads that a test controls. */
export interface PayloadSource extends AsyncIterable<string> {
  push(payload: string): void;
  end(): void;
  fail(error: unknown): void;
  /** The number of calls of `next`. */
  readonly pulls: number;
  /** Resolves when `return` was called. */
  readonly returned: Promise<unknown>;
}

/** Creates a source whose `next` waits for `push`. */
export function payloadSource(): PayloadSource {
  const queue: (() => Promise<IteratorResult<string>>)[] = [];
  const waiting: ((result: Promise<IteratorResult<string>>) => void)[] = [];
  const events = new EventTarget();
  let pulls = 0;
  const add = (result: () => Promise<IteratorResult<string>>): void => {
    const take = waiting.shift();
    if (take === undefined) queue.push(result);
    else take(result());
  };
  return {
    push: (value) => add(async () => ({ done: false, value })),
    end: () => add(async () => ({ done: true, value: undefined })),
    fail: (error) => add(() => Promise.reject(error)),
    get pulls() {
      return pulls;
    },
    returned: once(events, 'returned'),
    [Symbol.asyncIterator]: () => ({
      next() {
        pulls++;
        const ready = queue.shift();
        return ready === undefined ? new Promise((resolve) => waiting.push(resolve)) : ready();
      },
      async return() {
        events.dispatchEvent(new Event('returned'));
        for (const take of waiting.splice(0)) take(Promise.resolve({ done: true, value: undefined }));
        return { done: true, value: undefined };
      },
    }),
  };
}
