import type { CacheEntry } from '../../../types/response-cache.ts';

/** Ends a flight with the entry that was stored; undefined if the others have to execute the operation too. */
export type EndFlight = (entry: CacheEntry | undefined) => void;

/** The asynchronous executions in progress, by key. Requests with the same key wait for one of them. */
export class Flights {
  readonly #flights = new Map<string, Promise<CacheEntry | undefined>>();

  get(key: string): Promise<CacheEntry | undefined> | undefined {
    return this.#flights.get(key);
  }

  /** Begins a flight. The returned function ends it; further calls do nothing. */
  begin(key: string): EndFlight {
    let end: EndFlight = () => undefined;
    const flight = new Promise<CacheEntry | undefined>((resolve) => {
      end = (entry) => {
        // A request that had to execute the operation itself may have begun another flight.
        if (this.#flights.get(key) === flight) this.#flights.delete(key);
        resolve(entry);
      };
    });
    this.#flights.set(key, flight);
    return end;
  }
}
