/** What the line below the response shows of the last run. */
export type Activity =
  | { readonly kind: 'none' }
  | { readonly kind: 'running' }
  /** A whole response: the status line of HTTP, milliseconds, and bytes before compression. */
  | { readonly kind: 'response'; readonly status: string; readonly time: number; readonly bytes: number }
  /** Events of a subscription, or parts of an incremental response. */
  | {
      readonly kind: 'events';
      readonly noun: 'event' | 'part';
      readonly count: number;
      readonly lastAt: Date | undefined;
      readonly isOpen: boolean;
    };

let current: Activity = { kind: 'none' };
const listeners = new Set<() => void>();

export const currentActivity = (): Activity => current;

export function onActivity(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** One run of an operation. Only the newest run is shown. */
export interface Run {
  respond(status: string, text: string): void;
  /** Counts the results that pass, and notes the end. */
  count<T>(noun: 'event' | 'part', results: AsyncIterableIterator<T>): AsyncIterableIterator<T>;
  fail(): void;
}

let newest = 0;

export function startRun(): Run {
  const id = ++newest;
  const started = performance.now();
  const show = (activity: Activity): void => {
    if (id !== newest) return;
    current = activity;
    for (const listener of listeners) listener();
  };
  show({ kind: 'running' });
  return {
    respond(status, text) {
      const time = Math.round(performance.now() - started);
      show({ kind: 'response', status, time, bytes: new Blob([text]).size });
    },
    fail: () => show({ kind: 'none' }),
    count(noun, results) {
      let count = 0;
      let lastAt: Date | undefined;
      const end = (): void => show({ kind: 'events', noun, count, lastAt, isOpen: false });
      show({ kind: 'events', noun, count, lastAt, isOpen: true });
      return {
        async next() {
          const result = await results.next().catch((error: unknown) => {
            end();
            throw error;
          });
          if (result.done) end();
          else {
            lastAt = new Date();
            show({ kind: 'events', noun, count: ++count, lastAt, isOpen: true });
          }
          return result;
        },
        return() {
          end();
          return results.return?.() ?? Promise.resolve({ value: undefined, done: true });
        },
        [Symbol.asyncIterator]() {
          return this;
        },
      };
    },
  };
}
