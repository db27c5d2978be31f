/**
 * A kind of spans. `phases`: parsing and validation of documents that are not in the cache, and the execution of
 * operations, whose duration is then part of `graphql.server.processing.duration`. `events`: each event of a
 * subscription. `files`: requests for static files. `uploads`: the receipt of uploads. `pubsub`: events that are
 * published with `espalier/pubsub`.
 */
export type SpanKind = 'phases' | 'events' | 'files' | 'uploads' | 'pubsub';

/** Options of `EspalierInstrumentation`. */
export interface OpenTelemetryOptions {
  /**
   * Starts with the constructor. Otherwise `enable()` starts it.
   * @default true
   */
  enabled?: boolean | undefined;
  /**
   * The names of operations, and of topics of `espalier/pubsub`, that are part of span names and of metrics. Clients
   * choose the names of operations, so their number must be bounded: a list of names, or `true` for the first
   * names that arrive, up to 100 of each. Other names become `_OTHER` in metrics. Spans always have the attribute
   * `graphql.operation.name`.
   * @default false
   */
  names?: boolean | readonly string[] | undefined;
  /**
   * Adds to spans the text of documents, with `*` instead of strings and `0` instead of numbers, and variables as
   * JSON: all, or those in a list, which may be empty. Variables often contain personal data. Spans always have the hash
   * of the document.
   * @default false
   */
  contents?: boolean | readonly string[] | undefined;
  /**
   * The kinds of spans, in addition to those of operations. The metrics of the others remain.
   * @default ['events', 'files', 'uploads', 'pubsub']
   */
  spans?: readonly SpanKind[] | undefined;
}

/** A `TracerProvider` of OpenTelemetry. */
export interface TracerSource {
  getTracer(name: string, version?: string): unknown;
}

/** A `MeterProvider` of OpenTelemetry. */
export interface MeterSource {
  getMeter(name: string, version?: string): unknown;
}

/**
 * The instrumentation as `registerInstrumentations`, `NodeSDK` and Sentry accept it: the interface
 * `Instrumentation` of `@opentelemetry/instrumentation`.
 */
export interface OpenTelemetryInstrumentation {
  readonly instrumentationName: string;
  readonly instrumentationVersion: string;
  /** Starts to create spans and metrics. */
  enable(): void;
  /** Stops. Spans that have begun are ended as usual. */
  disable(): void;
  /** Sets the provider of tracers. @default the global one */
  setTracerProvider(provider: TracerSource): void;
  /** Sets the provider of meters. @default the global one, when the first message arrives */
  setMeterProvider(provider: MeterSource): void;
  setConfig(options: OpenTelemetryOptions): void;
  getConfig(): OpenTelemetryOptions;
}
