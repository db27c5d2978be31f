import { diag, type Tracer } from '@opentelemetry/api';
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

/** Calls a function. Its errors reach the diagnostic logger of OpenTelemetry, and never an operation. */
export function safely<T>(call: () => T): T | undefined {
  try {
    return call();
  } catch (error) {
    diag.error('espalier/otel:', error);
    return undefined;
  }
}

/** Seconds since `started`, by `performance.now()`. */
export const secondsSince = (started: number): number => (performance.now() - started) / 1000;
