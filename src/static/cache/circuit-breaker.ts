/** Stops synchronous checks for a while after they waited for a disk. Times are values of `performance.now()`. */
export interface CircuitBreaker {
  allows(now: number): boolean;
  /** Records how long a few checks took. */
  record(startedAt: number, endedAt: number): void;
}

// A stat of a cached inode takes a few microseconds. If a few of them take a millisecond, they waited.
const SLOW_MS = 1;
// How long the thread pool does all checks after a slow one.
const OPEN_MS = 10_000;
// Reading the block counter costs as much as a stat, so a value of up to this age is used as the starting point.
const SAMPLE_MS = 100;

/**
 * Creates a breaker that opens when checks were slow and the process read blocks from a disk meanwhile. A preempted or throttled
 * process is slow too, but reads no blocks.
 */
export function createCircuitBreaker(blocksRead: () => number): CircuitBreaker {
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
      if (now - sampledAt >= SAMPLE_MS) sample(now);
      return true;
    },
    record(startedAt, endedAt) {
      if (endedAt - startedAt < SLOW_MS) return;
      const before = blocks;
      sample(endedAt);
      if (blocks > before) openUntil = endedAt + OPEN_MS;
    },
  };
}
