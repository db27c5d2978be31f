/** The size of a bucket and how fast it fills. */
export interface BucketSettings {
  /** The tokens of a full bucket. */
  readonly limit: number;
  /** Milliseconds in which an empty bucket becomes full. */
  readonly window: number;
}

/** The state of a bucket after an operation took tokens from it, or could not. */
export interface Taken {
  readonly allowed: boolean;
  /** The tokens that are left. */
  readonly left: number;
}

/** Takes tokens from the bucket of a key. */
export interface BucketStore {
  take(key: string, tokens: number): Taken | Promise<Taken>;
}

/** Buckets of one process. More are possible, but then the oldest ones start again with all their tokens. */
const MAX_BUCKETS = 100_000;
/** Old buckets that each new one removes if they are full again. */
const CHECKED_PER_NEW = 2;

interface Bucket {
  left: number;
  /** The time of `left` in milliseconds. */
  at: number;
}

/** Creates the buckets of one process. `now` returns milliseconds of a clock that never goes back. */
export function createLocalBuckets(
  { limit, window }: BucketSettings,
  now: () => number = () => performance.now(),
): BucketStore {
  const buckets = new Map<string, Bucket>();
  const tokensPerMillisecond = limit / window;

  /** Removes the oldest buckets if they are full or too many. */
  function removeOld(time: number): void {
    let checked = 0;
    for (const [key, { at }] of buckets) {
      if (time - at < window && buckets.size <= MAX_BUCKETS) return;
      buckets.delete(key);
      checked += 1;
      if (checked === CHECKED_PER_NEW) return;
    }
  }

  return {
    take(key, tokens) {
      const time = now();
      const bucket = buckets.get(key) ?? { left: limit, at: time };
      bucket.left = Math.min(limit, bucket.left + (time - bucket.at) * tokensPerMillisecond);
      bucket.at = time;
      const allowed = tokens <= bucket.left;
      if (allowed) bucket.left -= tokens;
      // The last position, so that the first buckets are those that were not used for the longest time.
      buckets.delete(key);
      buckets.set(key, bucket);
      removeOld(time);
      return { allowed, left: bucket.left };
    },
  };
}
