import { readFileSync } from 'node:fs';

/**
 * Stops synchronous checks for a while after they waited for a disk. Times are values of `performance.now()`.
 */
export interface CircuitBreaker {
  allows(now: number): boolean;
  /** Records how long a few checks took. */
  record(startedAt: number, endedAt: number): void;
}

// A stat of a cached inode takes a few microseconds. If a few of them take a millisecond, they waited.
const SLOW_MS = 1;
// Milliseconds for which the thread pool runs all checks after a slow one. Each further slow one within a
// second doubles the time.
const MIN_OPEN_MS = 100;
const MAX_OPEN_MS = 10_000;
const FORGET_MS = 1000;
// Reading the block counter costs as much as a stat, so a value of up to this age is used as the starting
// point.
const SAMPLE_MS = 100;

/**
 * Creates a breaker that opens when checks were slow and the thread read blocks from a disk meanwhile. A
 * preempted or throttled process is slow too, but reads no blocks.
 */
export function createCircuitBreaker(bytesRead: () => number): CircuitBreaker {
  let openUntil = 0;
  let openMs = 0;
  let sampledAt = Number.NEGATIVE_INFINITY;
  let bytes = 0;

  function sample(now: number): void {
    sampledAt = now;
    bytes = bytesRead();
  }

  return {
    allows(now) {
      if (now < openUntil) return false;
      if (now - sampledAt >= SAMPLE_MS) sample(now);
      return true;
    },
    record(startedAt, endedAt) {
      if (endedAt - startedAt < SLOW_MS) return;
      const before = bytes;
      sample(endedAt);
      if (bytes <= before) return;
      const isRepeated = endedAt - openUntil < FORGET_MS;
      openMs = isRepeated ? Math.min(Math.max(2 * openMs, MIN_OPEN_MS), MAX_OPEN_MS) : MIN_OPEN_MS;
      openUntil = endedAt + openMs;
    },
  };
}

/**
 * The bytes that this thread has read from disks; those of the process if Linux does not count them by
 * thread.
 */
export function diskBytesOfThread(): number {
  try {
    const text = readFileSync('/proc/thread-self/io', 'latin1');
    return Number(/^read_bytes: (\d+)$/m.exec(text)?.[1] ?? 0);
  } catch {
    return process.resourceUsage().fsRead;
  }
}
