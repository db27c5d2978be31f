import { context, propagation, type SpanContext, SpanKind, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from '@opentelemetry/core';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { EspalierInstrumentation } from '../../middleware/otel.ts';
import type { OpenTelemetryOptions } from '../../types/otel.ts';
import { until } from '../until.ts';

export const REMOTE_TRACE = '0af7651916cd43dd8448eb211c80319c';
export const REMOTE_SPAN = 'b7ad6b7169203331';
export const TRACEPARENT = `00-${REMOTE_TRACE}-${REMOTE_SPAN}-01`;

/** Options with all spans. */
export const PHASES: OpenTelemetryOptions = { spans: ['phases', 'events', 'files', 'uploads', 'pubsub'] };

/** A metric of an export: the values by their attributes as JSON. */
export type Values = Record<string, number | { count: number; sum?: number | undefined }>;

/** The SDK with exporters in memory, and the instrumentation. */
export class TestTelemetry {
  readonly spans = new InMemorySpanExporter();
  readonly tracers = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(this.spans)] });
  readonly #metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  readonly #reader = this.createReader();
  readonly meters = new MeterProvider({ readers: [this.#reader] });
  readonly instrumentation: EspalierInstrumentation;

  constructor(options: OpenTelemetryOptions = {}) {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    propagation.setGlobalPropagator(
      new CompositePropagator({
        propagators: [new W3CTraceContextPropagator(), new W3CBaggagePropagator()],
      }),
    );
    this.instrumentation = new EspalierInstrumentation(options);
    this.instrumentation.setTracerProvider(this.tracers);
    this.instrumentation.setMeterProvider(this.meters);
  }

  /** Creates a reader that never reads by itself. */
  createReader(): PeriodicExportingMetricReader {
    return new PeriodicExportingMetricReader({
      exporter: this.#metrics,
      exportIntervalMillis: 1e8,
      exportTimeoutMillis: 1e7,
    });
  }

  named(name: string): ReadableSpan[] {
    return this.spans.getFinishedSpans().filter((span) => span.name === name);
  }

  /** Waits until a number of spans with a name have ended. */
  async wait(name: string, count = 1): Promise<ReadableSpan[]> {
    await until(() => this.named(name).length >= count);
    return this.named(name);
  }

  /** The names of all spans, in the order of their ends. */
  names(): string[] {
    return this.spans.getFinishedSpans().map(({ name }) => name);
  }

  async metrics(): Promise<Record<string, Values>> {
    this.#metrics.reset();
    await this.#reader.forceFlush();
    const exported = this.#metrics.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics);
    const all = exported.flatMap(({ metrics }) => metrics);
    return Object.fromEntries(
      all.map(({ descriptor, dataPoints }) => [
        descriptor.name,
        Object.fromEntries(
          dataPoints.map(({ attributes, value }) => [
            JSON.stringify(attributes),
            typeof value === 'number'
              ? value
              : { count: (value as { count: number }).count, sum: (value as { sum?: number }).sum },
          ]),
        ),
      ]),
    );
  }

  async stop(): Promise<void> {
    this.instrumentation.disable();
    await this.tracers.shutdown();
    await this.meters.shutdown();
    context.disable();
    propagation.disable();
    trace.disable();
  }
}

type Kept<Span> = Span | undefined;

/** Throws if a span was not recorded. */
function recorded<Span>(span: Kept<Span>): Span {
  if (span === undefined) throw new Error('there is no span');
  return span;
}

/** The id of a span's parent; undefined for a root span. */
export const parentOf = (span: Kept<ReadableSpan>): string | undefined =>
  recorded(span).parentSpanContext?.spanId;

/** The id of the active span. */
export const activeSpan = (): string | undefined => trace.getActiveSpan()?.spanContext().spanId;

export const idOf = (span: Kept<{ spanContext(): SpanContext }>): string =>
  recorded(span).spanContext().spanId;

export const kindOf = (span: Kept<ReadableSpan>): string => SpanKind[recorded(span).kind] as string;
