import { LEASE_MILLISECONDS } from './lease.ts';

/** The processes that may use their stores, as far as this process knows from their renewals. */
export class Members {
  /** The times at which their leases expire at the latest (`performance.now()`). */
  readonly #expiries = new Map<string, number>();
  /** The time from which on every process with a lease is known; undefined without a subscription. */
  #completeFrom: number | undefined;

  renewed(id: string): void {
    this.#expiries.set(id, performance.now() + LEASE_MILLISECONDS);
  }

  /** Call it when the subscription has proved to work. Leases that began earlier expire within their length. */
  subscribed(): void {
    this.#completeFrom ??= performance.now() + LEASE_MILLISECONDS;
  }

  /** Call it when renewals may have been missed. */
  forget(): void {
    this.#expiries.clear();
    this.#completeFrom = undefined;
  }

  removeExpired(): void {
    const time = performance.now();
    for (const [id, expiry] of this.#expiries) if (expiry <= time) this.#expiries.delete(id);
  }

  /** Whether every process that may have a lease is in `ids`. */
  areAmong(ids: ReadonlySet<string>): boolean {
    if (this.#completeFrom === undefined || performance.now() < this.#completeFrom) return false;
    this.removeExpired();
    for (const id of this.#expiries.keys()) if (!ids.has(id)) return false;
    return true;
  }
}
