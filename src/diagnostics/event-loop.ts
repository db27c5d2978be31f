import {
  type EventLoopUtilization,
  type IntervalHistogram,
  monitorEventLoopDelay,
  performance,
} from 'node:perf_hooks';
import type { EventLoopStats } from '../../types/health.ts';

/** Milliseconds between two samples. */
const RESOLUTION = 20;
/** Milliseconds after which a reader begins a new period. */
const PERIOD = 30_000;
const NANOSECONDS = 1e6;

/** The samples from one moment on. */
class Period {
  readonly #delays: IntervalHistogram = monitorEventLoopDelay({ resolution: RESOLUTION });
  #started = 0;
  #utilization: EventLoopUtilization | undefined;

  constructor() {
    this.#delays.enable();
    this.begin();
  }

  get age(): number {
    return performance.now() - this.#started;
  }

  begin(): void {
    this.#delays.reset();
    this.#started = performance.now();
    this.#utilization = performance.eventLoopUtilization();
  }

  read(): EventLoopStats {
    const delays = this.#delays;
    // A sample is the time between two ticks of a timer, so it contains the interval of the timer.
    const delay = (value: number): number =>
      delays.count === 0 ? 0 : Math.max(0, value / NANOSECONDS - RESOLUTION);
    return {
      mean: delay(delays.mean),
      p50: delay(delays.percentile(50)),
      p99: delay(delays.percentile(99)),
      max: delay(delays.max),
      utilization: performance.eventLoopUtilization(this.#utilization).utilization,
    };
  }
}

let periods: { older: Period; newer: Period } | undefined;

/**
 * Returns the delay of the event loop in the last 30 to 60 seconds, or since the previous calls if they were
 * earlier. The first call starts the measurement.
 */
export function readEventLoop(): EventLoopStats {
  periods ??= { older: new Period(), newer: new Period() };
  const numbers = periods.older.read();
  if (periods.newer.age > PERIOD) {
    periods.older.begin();
    periods = { older: periods.newer, newer: periods.older };
  }
  return numbers;
}
