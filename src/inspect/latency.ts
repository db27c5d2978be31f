import type { Latencies } from '../../types/inspect.ts';

/** Buckets per doubling of the duration, so that a percentile is at most 9 % off. */
const PER_OCTAVE = 4;
/** The buckets from one microsecond to two minutes. */
const BUCKETS = 27 * PER_OCTAVE;

/** The number of periods that are kept, and their milliseconds. */
const PERIODS = 10;
const PERIOD = 30_000;

/** The durations and errors of the last five minutes, in periods that are reused. */
export class LatencyWindow {
  readonly #buckets = new Uint32Array(PERIODS * BUCKETS);
  readonly #counts = new Uint32Array(PERIODS);
  readonly #errors = new Uint32Array(PERIODS);
  readonly #maxima = new Float64Array(PERIODS);
  #period = 0;

  /** Adds a duration in milliseconds. */
  add(duration: number, isError: boolean, now: number): void {
    const slot = this.#advance(now);
    const index = slot * BUCKETS + bucketOf(duration);
    this.#buckets[index] = (this.#buckets[index] as number) + 1;
    this.#counts[slot] = (this.#counts[slot] as number) + 1;
    if (isError) this.#errors[slot] = (this.#errors[slot] as number) + 1;
    this.#maxima[slot] = Math.max(this.#maxima[slot] as number, duration);
  }

  read(now: number): Latencies & { readonly count: number; readonly errors: number } {
    this.#advance(now);
    const count = this.#counts.reduce(add, 0);
    const errors = this.#errors.reduce(add, 0);
    if (count === 0) return { count, errors, p50: null, p99: null, max: null };
    const max = Math.max(...this.#maxima);
    const percentile = (share: number): number => Math.min(max, this.#percentile(count * share));
    return { count, errors, p50: percentile(0.5), p99: percentile(0.99), max };
  }

  /** Returns the middle of the bucket that contains the value of a rank. */
  #percentile(rank: number): number {
    let seen = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      for (let slot = 0; slot < PERIODS; slot++) seen += this.#buckets[slot * BUCKETS + bucket] as number;
      if (seen >= rank) return 2 ** ((bucket + 0.5) / PER_OCTAVE) / 1000;
    }
    return Number.POSITIVE_INFINITY;
  }

  /** Clears the periods that have ended, and returns the slot of the current one. */
  #advance(now: number): number {
    const period = Math.floor(now / PERIOD);
    for (let ended = Math.max(this.#period + 1, period - PERIODS + 1); ended <= period; ended++) {
      const slot = ended % PERIODS;
      this.#buckets.fill(0, slot * BUCKETS, (slot + 1) * BUCKETS);
      this.#counts[slot] = 0;
      this.#errors[slot] = 0;
      this.#maxima[slot] = 0;
    }
    this.#period = Math.max(this.#period, period);
    return this.#period % PERIODS;
  }
}

const add = (sum: number, value: number): number => sum + value;

const bucketOf = (duration: number): number =>
  Math.min(BUCKETS - 1, Math.max(0, Math.floor(Math.log2(Math.max(duration * 1000, 1)) * PER_OCTAVE)));

/** Counts per second of the last two minutes. */
export class RateHistory {
  readonly #seconds = 120;
  readonly #counts = new Uint32Array(this.#seconds);
  #last = 0;

  add(now: number): void {
    const slot = this.#advance(now);
    this.#counts[slot] = (this.#counts[slot] as number) + 1;
  }

  /** Returns the counts, the oldest first. */
  read(now: number): number[] {
    const slot = this.#advance(now);
    return [...this.#counts.subarray(slot + 1), ...this.#counts.subarray(0, slot + 1)];
  }

  #advance(now: number): number {
    const second = Math.floor(now / 1000);
    for (let next = Math.max(this.#last + 1, second - this.#seconds + 1); next <= second; next++) {
      this.#counts[next % this.#seconds] = 0;
    }
    this.#last = Math.max(this.#last, second);
    return this.#last % this.#seconds;
  }
}
