import { statSync } from 'node:fs';
import { sameVersion } from './identity.ts';
import type { Dependency } from './locate.ts';

/** Whether everything that led to an entry surely is as it was. False: unknown, to be looked at off the event loop. */
export type RevalidateSync = (dependencies: readonly Dependency[]) => boolean;

const OPTIONS = { bigint: true, throwIfNoEntry: false } as const;

/**
 * Looks on the event loop: for a file seen before, on a kernel-cached file system, that takes less of the loop's time
 * than handing the look to a thread and taking its result back.
 *
 * @param device - the one whose files may be looked at so; undefined: none
 */
export function createRevalidateSync(device: bigint | undefined): RevalidateSync {
  const breaker = createBreaker(() => process.resourceUsage().fsRead);
  return (dependencies) => {
    if (device === undefined) return false;
    for (const { identity } of dependencies) {
      if (identity !== undefined && identity.dev !== device) return false;
    }
    const began = performance.now();
    if (!breaker.allows(began)) return false;
    const unchanged = areUnchanged(dependencies);
    breaker.record(began, performance.now());
    return unchanged;
  };
}

function areUnchanged(dependencies: readonly Dependency[]): boolean {
  try {
    for (const { path, identity } of dependencies) {
      const now = statSync(path, OPTIONS);
      if (now === undefined || identity === undefined) {
        if (now !== identity) return false;
      } else if (!sameVersion(identity, now)) return false;
    }
    return true;
  } catch {
    // What is wrong with it shows when a thread looks.
    return false;
  }
}

/** A circuit breaker for looks on the loop; times are milliseconds of the monotonic clock. */
export interface Breaker {
  allows(now: number): boolean;
  record(began: number, ended: number): void;
}

// From the kernel's memory a look takes a few microseconds; one that takes a millisecond waited for something.
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
