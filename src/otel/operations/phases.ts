import { type Attributes, type Context, SpanStatusCode } from '@opentelemetry/api';
import type { ParseEvent, ValidateEvent } from '../../core/diagnostics.ts';
import type { ObservedOperation } from '../../execution/observed.ts';
import type { Telemetry } from '../telemetry.ts';

type PhaseName = 'parse' | 'validate';

/** A phase that has ended. */
interface Phase {
  readonly name: PhaseName;
  readonly started: number;
  readonly ended: number;
  readonly error: string | undefined;
}

const SPAN_NAMES: Readonly<Record<PhaseName, string>> = {
  parse: 'GraphQL Document Parsing',
  validate: 'GraphQL Document Validation',
};

/** The codes of errors, which are set later. */
const FAILURES: Readonly<Record<PhaseName, string>> = {
  parse: 'GRAPHQL_PARSE_FAILED',
  validate: 'GRAPHQL_VALIDATION_FAILED',
};

/**
 * The phases of new documents. They end before the type of their operation is known, so that their spans are
 * created afterwards.
 */
export class Phases {
  readonly #telemetry: Telemetry;
  /** By document or, if it was refused, by its first error. */
  readonly #phases = new WeakMap<object, readonly Phase[]>();

  constructor(telemetry: Telemetry) {
    this.#telemetry = telemetry;
  }

  add(name: PhaseName, { document, errors, duration }: ParseEvent | ValidateEvent): void {
    const ended = performance.now();
    const error = errors.length === 0 ? undefined : FAILURES[name];
    const earlier = document === undefined ? undefined : this.#phases.get(document);
    const key = errors[0] ?? document;
    const phase = { name, started: ended - duration, ended, error };
    if (key !== undefined) this.#phases.set(key, [...(earlier ?? []), phase]);
    const attributes: Attributes = { 'graphql.processing.type': name };
    if (error !== undefined) attributes['error.type'] = this.#telemetry.errorType(error);
    this.#telemetry.metrics.processingDuration.record(duration / 1000, attributes);
  }

  /** Counts the lookup of an operation's document, and creates the spans of the phases that it has caused. */
  end(operation: ObservedOperation, parent: Context): void {
    const { metrics, settings } = this.#telemetry;
    const own = this.#take(operation);
    if (own.length === 0) metrics.documentHits.value += 1;
    else metrics.documentMisses.value += 1;
    if (settings.spans.phases) for (const phase of own) this.#createSpan(phase, parent);
  }

  #take({ prepared, failures, started }: ObservedOperation): readonly Phase[] {
    const key = prepared?.document ?? failures?.[0];
    const phases = isObject(key) ? this.#phases.get(key) : undefined;
    if (phases === undefined || !isObject(key)) return NONE;
    this.#phases.delete(key);
    // An operation that arrives while a document is prepared for another one has not caused its phases.
    return phases.filter((phase) => phase.started >= started);
  }

  #createSpan({ name, started, ended, error }: Phase, parent: Context): void {
    const attributes: Attributes = { 'graphql.processing.type': name };
    if (error !== undefined) attributes['error.type'] = error;
    const options = { startTime: started, attributes };
    const span = this.#telemetry.tracer.startSpan(SPAN_NAMES[name], options, parent);
    if (error !== undefined) span.setStatus({ code: SpanStatusCode.ERROR });
    span.end(ended);
  }
}

const NONE: readonly Phase[] = [];
const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;
