/** A circuit breaker for looks on the loop; times are milliseconds of the monotonic clock. */
export interface Breaker {
  allows(now: number): boolean;
  /** Told how long a few looks took. */
  record(began: number, ended: number): void;
}

// From the kernel's memory a look takes a few microseconds; a few that take a millisecond waited for something.
const SLOW = 1;
// Until looks on the loop are tried again.
const PAUSE = 10_000;
// The count of blocks is at most so old when a look begins: reading it for each would cost as much as the look.
const SAMPLE = 100;

/**
 * Looks that wait for a disk belong to threads, for a while. A process that was merely preempted, or is throttled, is slow
 * as well, but reads no blocks.
 */
export function createBreaker(blocksRead: () => number): Breaker {
  let openUntil = 0;
  let sampledAt = Number.NEGATIVE_INFINITY;
  let blocks = 0;

  function sample(now: number): void {
    sampledAt = now;
    blocks = blocksRead();
  }

  return {
    allows(now) {
      if (now < openUntil) return false;
      if (now - sampledAt >= SAMPLE) sample(now);
      return true;
    },
    record(began, ended) {
      if (ended - began < SLOW) return;
      const before = blocks;
      sample(ended);
      if (blocks > before) openUntil = ended + PAUSE;
    },
  };
}
