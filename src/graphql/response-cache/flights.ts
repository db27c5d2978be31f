import type { CacheEntry } from '../../../types/response-cache.ts';

/** Ends a flight with the entry that was stored; undefined if the others have to execute the operation too. */
type EndFlight = (entry: CacheEntry | undefined) => void;

/** Milliseconds after which requests stop waiting for an execution, which may never end. */
const MAX_MILLISECONDS = 5000;

interface Flight {
  readonly ended: Promise<CacheEntry | undefined>;
  readonly end: EndFlight;
  readonly began: number;
  timer: NodeJS.Timeout | undefined;
}

/** The asynchronous executions in progress, by key. Requests with the same key wait for one of them. */
export class Flights {
  readonly #flights = new Map<string, Flight>();

  /** Returns the end of a flight; undefined if there is none that is worth waiting for. */
  get(key: string): Promise<CacheEntry | undefined> | undefined {
    const flight = this.#flights.get(key);
    if (flight === undefined) return undefined;
    const left = MAX_MILLISECONDS - (performance.now() - flight.began);
    // One timer per flight that others wait for.
    flight.timer ??= setTimeout(() => flight.end(undefined), Math.max(0, left)).unref();
    return flight.ended;
  }

  /** Begins a flight. The returned function ends it; further calls do nothing. */
  begin(key: string): EndFlight {
    let resolve: EndFlight = () => undefined;
    const ended = new Promise<CacheEntry | undefined>((settle) => {
      resolve = settle;
    });
    const flight: Flight = {
      ended,
      began: performance.now(),
      timer: undefined,
      end: (entry) => {
        clearTimeout(flight.timer);
        // A request that had to execute the operation itself may have begun another flight.
        if (this.#flights.get(key) === flight) this.#flights.delete(key);
        resolve(entry);
      },
    };
    this.#flights.set(key, flight);
    return flight.end;
  }
}
