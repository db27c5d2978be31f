/**
 * The time for which a process may use its memory store without contact to the others, in milliseconds. An
 * invalidation waits at most this long for a process that does not reply.
 */
export const LEASE_MILLISECONDS = 3000;

/** Milliseconds between two renewals. */
export const RENEWAL_MILLISECONDS = 1000;

/** A time on both clocks: one stops while the machine sleeps, the other one can be set. */
interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

export const now = (): Moment => ({ monotonic: performance.now(), wall: Date.now() });

/**
 * The permission of a process to use its memory store. It begins when the process sends a renewal, and is granted
 * when the process receives it: messages arrive in order, so all invalidations before the renewal have arrived too.
 */
export class Lease {
  #start: Moment | undefined;

  get isValid(): boolean {
    const start = this.#start;
    if (start === undefined) return false;
    const age = Date.now() - start.wall;
    return age >= 0 && age < LEASE_MILLISECONDS && performance.now() - start.monotonic < LEASE_MILLISECONDS;
  }

  grant(start: Moment): void {
    this.#start = start;
  }

  end(): void {
    this.#start = undefined;
  }
}
