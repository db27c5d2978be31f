import type { CacheEntry } from '../../../types/response-cache.ts';

/** The execution of a flight was aborted because its client disconnected, so another request may repeat it. */
export const ABORTED = 'aborted';

/** An entry that was stored, and the version of the store before its execution. */
interface FlightEntry {
  readonly entry: CacheEntry;
  readonly version: number | string;
}

/** Undefined if the other requests have to execute the operation too. */
type FlightResult = FlightEntry | typeof ABORTED | undefined;

type EndFlight = (result: FlightResult) => void;

/** Milliseconds after which requests stop waiting for an execution, which may never end. */
export const MAX_MILLISECONDS = 5000;

interface Flight {
  readonly ended: Promise<FlightResult>;
  readonly end: EndFlight;
  readonly began: number;
  timer: NodeJS.Timeout | undefined;
}

/** The asynchronous executions in progress, by key. Requests with the same key wait for one of them. */
export class Flights {
  readonly #flights = new Map<string, Flight>();

  /** Returns the end of a flight; undefined if there is none that is worth waiting for. */
  get(key: string): Promise<FlightResult> | undefined {
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
    const ended = new Promise<FlightResult>((settle) => {
      resolve = settle;
    });
    const flight: Flight = {
      ended,
      began: performance.now(),
      timer: undefined,
      end: (result) => {
        clearTimeout(flight.timer);
        // A request that had to execute the operation itself may have begun another flight.
        if (this.#flights.get(key) === flight) this.#flights.delete(key);
        resolve(result);
      },
    };
    this.#flights.set(key, flight);
    return flight.end;
  }
}
