import { statSync } from 'node:fs';
import { sameVersion } from './identity.ts';
import type { Witness } from './locate.ts';

/** Whether everything that led to an entry surely is as it was. False: unknown, to be looked at off the event loop. */
export type Glance = (witnesses: readonly Witness[]) => boolean;

const OPTIONS = { bigint: true, throwIfNoEntry: false } as const;

/**
 * Looks on the event loop: for a file seen before, on a kernel-cached file system, that takes less of the loop's time
 * than handing the look to a thread and taking its result back.
 *
 * @param device - the one whose files may be looked at so; undefined: none
 */
export function createGlance(device: bigint | undefined): Glance {
  const patience = createPatience(() => process.resourceUsage().fsRead);
  return (witnesses) => {
    if (device === undefined) return false;
    for (const { identity } of witnesses) {
      if (identity !== undefined && identity.dev !== device) return false;
    }
    const began = performance.now();
    if (!patience.lasts(began)) return false;
    const unchanged = areUnchanged(witnesses);
    patience.endure(began, performance.now());
    return unchanged;
  };
}

function areUnchanged(witnesses: readonly Witness[]): boolean {
  try {
    for (const { path, identity } of witnesses) {
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

/** Whether looks on the loop are worth their time, in milliseconds. */
export interface Patience {
  lasts(now: number): boolean;
  endure(began: number, ended: number): void;
}

// From the kernel's memory a look takes a few microseconds; one that takes a millisecond waited for something.
const SLOW = 1;
// Until the next try.
const PAUSE = 10_000;
const SAMPLE = 100;

/**
 * Looks that wait for a disk belong to threads, for a while. A process that was merely preempted, or is throttled, is slow
 * as well, but reads no blocks.
 */
export function createPatience(blocksRead: () => number): Patience {
  let lostUntil = 0;
  let sampledAt = Number.NEGATIVE_INFINITY;
  let blocks = 0;

  function sample(now: number): void {
    sampledAt = now;
    blocks = blocksRead();
  }

  return {
    lasts(now) {
      if (now < lostUntil) return false;
      if (now - sampledAt >= SAMPLE) sample(now);
      return true;
    },
    endure(began, ended) {
      if (ended - began < SLOW) return;
      const before = blocks;
      sample(ended);
      if (blocks > before) lostUntil = ended + PAUSE;
    },
  };
}
