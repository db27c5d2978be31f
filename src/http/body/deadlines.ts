/** Longest interval a timer can have, halved. */
const LONGEST = 2 ** 30;

/** Deadlines of one length: one timer for all that wait, since nearly all of them are met at once. */
export interface Deadlines {
  /** Calls `missed` when the time is over, unless `clear` came first. */
  set(missed: () => void): void;
  clear(missed: () => void): void;
}

/** Parts of a deadline: a missed one is noticed up to one part too late. */
const PARTS = 8;

/** Deadlines of so many milliseconds. They count ticks of the one timer, since asking for the time costs more. */
export function createDeadlines(milliseconds: number): Deadlines {
  const waiting = new Map<() => void, number>();
  let timer: NodeJS.Timeout | undefined;
  let ticks = 0;

  function tick(): void {
    ticks += 1;
    for (const [missed, since] of waiting) {
      if (ticks - since <= PARTS) break;
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
      waiting.set(missed, ticks);
      timer ??= setInterval(tick, Math.min(Math.max(1, milliseconds / PARTS), LONGEST)).unref();
    },
    clear(missed) {
      waiting.delete(missed);
    },
  };
}
