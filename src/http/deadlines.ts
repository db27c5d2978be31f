/** Longest interval a timer can have, halved. */
const LONGEST = 2 ** 30;

/** Deadlines of one length: one timer for all that wait, since nearly all of them are met at once. */
export interface Deadlines {
  /** Calls `missed` when the time is over, unless `clear` came first. */
  set(missed: () => void): void;
  clear(missed: () => void): void;
}

/** Deadlines of so many milliseconds; a missed one is noticed up to an eighth of that too late. */
export function createDeadlines(milliseconds: number): Deadlines {
  const waiting = new Map<() => void, number>();
  let timer: NodeJS.Timeout | undefined;

  function look(): void {
    const now = performance.now();
    for (const [missed, due] of waiting) {
      if (due > now) break;
      waiting.delete(missed);
      missed();
    }
    if (waiting.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  }

  return {
    set(missed) {
      if (milliseconds === Number.POSITIVE_INFINITY) return;
      waiting.set(missed, performance.now() + milliseconds);
      timer ??= setInterval(look, Math.min(Math.max(1, milliseconds / 8), LONGEST)).unref();
    },
    clear(missed) {
      waiting.delete(missed);
    },
  };
}
