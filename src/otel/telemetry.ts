import { diag, type HrTime, type Tracer } from '@opentelemetry/api';
import type { Metrics } from './metrics.ts';
import { type BoundName, boundNames } from './names.ts';
import type { OpenTelemetrySettings } from './options.ts';

/** The tracer, the instruments and the bounded names that all spans share. */
export class Telemetry {
  readonly settings: OpenTelemetrySettings;
  readonly tracer: Tracer;
  readonly operationName: BoundName;
  readonly topic: BoundName;
  readonly errorType: BoundName;
  readonly #findMetrics: () => Metrics;
  #metrics: Metrics | undefined;

  /** `findMetrics` is called with the first message: applications set the global provider later than the options. */
  constructor(settings: OpenTelemetrySettings, tracer: Tracer, findMetrics: () => Metrics) {
    const { operationNames, topics, maxNames } = settings;
    this.settings = settings;
    this.tracer = tracer;
    this.operationName = boundNames(operationNames, maxNames);
    this.topic = boundNames(topics, maxNames);
    this.errorType = boundNames(true, maxNames);
    this.#findMetrics = findMetrics;
  }

  get metrics(): Metrics {
    this.#metrics ??= this.#findMetrics();
    return this.#metrics;
  }
}

/** Passes an error to the diagnostic logger of OpenTelemetry. */
export const reportFailure = (error: unknown): void => diag.error('espalier/otel:', error);

/** Calls a function. Its errors reach the diagnostic logger of OpenTelemetry, and never an operation. */
export function safely<T>(call: () => T): T | undefined {
  try {
    return call();
  } catch (error) {
    reportFailure(error);
    return undefined;
  }
}

/** Milliseconds after which `readEpoch` reads the clocks again. */
const EPOCH_AGE = 1000;
let epoch = 0;
let epochRead = Number.NEGATIVE_INFINITY;

/** Returns the time at which `performance.now()` was 0, as the system's clock has it about `now`. */
export function readEpoch(now: number): number {
  if (now - epochRead > EPOCH_AGE) {
    epochRead = performance.now();
    epoch = Date.now() - epochRead;
  }
  return epoch;
}

/**
 * Converts a time of `performance.now()`. The SDK accepts such numbers too, but reads a clock for each one. The times
 * of one span need the same epoch: a later one may differ by a millisecond.
 */
export function toSpanTime(epoch: number, time: number): HrTime {
  const milliseconds = epoch + time;
  const seconds = Math.floor(milliseconds / 1000);
  return [seconds, Math.round((milliseconds - seconds * 1000) * 1e6)];
}

/** Seconds since `started`, by `performance.now()`. */
export const secondsSince = (started: number): number => (performance.now() - started) / 1000;
