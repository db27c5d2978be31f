import {
  diag,
  type MeterProvider,
  metrics,
  type Tracer,
  type TracerProvider,
  trace,
} from '@opentelemetry/api';
import { Metrics } from './metrics.ts';
import { type BoundName, boundNames } from './names.ts';
import type { OpenTelemetrySettings } from './options.ts';

export const SCOPE = 'espalier';
export const VERSION = '0.1.0';

/** The tracer, the instruments and the bounded names that all spans share. */
export class Telemetry {
  readonly settings: OpenTelemetrySettings;
  readonly operationName: BoundName;
  readonly topic: BoundName;
  readonly errorType: BoundName;
  tracer: Tracer = trace.getTracer(SCOPE, VERSION);
  #meterProvider: MeterProvider | undefined;
  #metrics: Metrics | undefined;

  constructor(settings: OpenTelemetrySettings) {
    const { operationNames, topics, maxNames } = settings;
    this.settings = settings;
    this.operationName = boundNames(operationNames, maxNames);
    this.topic = boundNames(topics, maxNames);
    this.errorType = boundNames(true, maxNames);
  }

  /** The instruments. The global provider is not read before the first message, when it is usually set. */
  get metrics(): Metrics {
    this.#metrics ??= new Metrics((this.#meterProvider ?? metrics).getMeter(SCOPE, VERSION));
    return this.#metrics;
  }

  setTracerProvider(provider: TracerProvider): void {
    this.tracer = provider.getTracer(SCOPE, VERSION);
  }

  setMeterProvider(provider: MeterProvider): void {
    this.#meterProvider = provider;
    this.#metrics = undefined;
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
