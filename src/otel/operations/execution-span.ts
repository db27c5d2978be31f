import { type Context, context, type Link, type Span, trace } from '@opentelemetry/api';
import type { ExecutionObserver, ObservedResult } from '../../execution/observed.ts';
import { errorType, recordErrors } from '../errors.ts';
import { safely, secondsSince, type Telemetry } from '../telemetry.ts';
import { publisherOf } from '../topics.ts';
import type { OperationInfo } from './operation-info.ts';

/** The place of an execution. */
interface Place {
  /** The context of the operation. */
  readonly context: Context;
  /** The span of the operation; undefined if the execution gets no span. */
  readonly span: Span | undefined;
  /** Whether this is the execution of an event of a subscription. */
  readonly isEvent: boolean;
  /** The event. */
  readonly event: unknown;
}

/**
 * The span and the metrics of one execution. An event of a subscription begins a trace, which is linked to
 * the subscription and, within one process, to the span that published the event.
 */
export class ExecutionSpan implements ExecutionObserver {
  readonly #telemetry: Telemetry;
  readonly #info: OperationInfo;
  readonly #isEvent: boolean;
  readonly #started = performance.now();
  readonly #span: Span | undefined;
  readonly #context: Context;

  constructor(telemetry: Telemetry, info: OperationInfo, place: Place) {
    this.#telemetry = telemetry;
    this.#info = info;
    this.#isEvent = place.isEvent;
    const attributes = info.executionAttributes;
    if (place.span === undefined) {
      this.#span = undefined;
      this.#context = place.context;
    } else if (place.isEvent) {
      const links = linksOf(place.span, place.event);
      const base = trace.deleteSpan(place.context);
      this.#span = telemetry.tracer.startSpan('GraphQL Subscription Event', { attributes, links }, base);
      this.#context = trace.setSpan(base, this.#span);
    } else {
      this.#span = telemetry.tracer.startSpan('GraphQL Operation Execution', { attributes }, place.context);
      this.#context = trace.setSpan(place.context, this.#span);
    }
  }

  run<T>(step: () => T): T {
    return context.with(this.#context, step);
  }

  ended(result: ObservedResult | undefined, error?: unknown): void {
    safely(() => {
      const errors = result === undefined ? [error] : result.kind === 'data' ? [] : result.errors;
      const type = errors.length === 0 ? undefined : errorType(errors);
      const span = this.#span;
      if (span !== undefined) {
        // Errors of an operation are recorded on its own span, those of an event on this one.
        if (type !== undefined && this.#isEvent) recordErrors(span, type, errors);
        else if (type !== undefined) span.setAttribute('error.type', type);
        span.end();
      }
      this.#record(type);
    });
  }

  #record(type: string | undefined): void {
    const { metrics, errorType: bound } = this.#telemetry;
    const { nameAttributes, executionMetricAttributes } = this.#info;
    const histogram = this.#isEvent ? metrics.eventDuration : metrics.processingDuration;
    const attributes = this.#isEvent ? nameAttributes : executionMetricAttributes;
    histogram.record(
      secondsSince(this.#started),
      type === undefined ? attributes : { ...attributes, 'error.type': bound(type) },
      this.#context,
    );
  }
}

function linksOf(subscription: Span, event: unknown): Link[] {
  const publisher = publisherOf(event);
  const links: Link[] = [{ context: subscription.spanContext() }];
  if (publisher !== undefined) links.push({ context: publisher });
  return links;
}
