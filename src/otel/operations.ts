import { createHash } from 'node:crypto';
import {
  type Attributes,
  type Context,
  context,
  type Link,
  type Span,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import type { ParseEvent, ValidateEvent } from '../diagnostics/events.ts';
import type {
  ExecutionObserver,
  ObservedOperation,
  ObservedResult,
  OperationObserver,
} from '../execution/observed.ts';
import type { ExecutionInputs, PreparedOperation } from '../execution/types.ts';
import { getOrCreate } from '../options/values.ts';
import { publisherOf } from './requests.ts';
import {
  type Count,
  errorType,
  type Parent,
  recordErrors,
  safely,
  secondsSince,
  type Telemetry,
} from './telemetry.ts';

const REFUSED = 'GraphQL Operation';
const REFUSED_ATTRIBUTES = { 'graphql.processing.type': 'request' };
const NO_ATTRIBUTES: Attributes = {};

/**
 * The span and the metrics of one operation. The span of a subscription ends when its source stream is open,
 * as the semantic conventions allow: it may stay open for days.
 */
export class OperationSpan implements OperationObserver {
  readonly #telemetry: Telemetry;
  readonly #operation: ObservedOperation;
  /** Undefined if the operation was refused before it was prepared. */
  readonly #info: OperationInfo | undefined;
  readonly #span: Span;
  readonly #context: Context;
  #isFinished = false;
  #isSubscribed = false;

  constructor(
    telemetry: Telemetry,
    operation: ObservedOperation,
    { info, parent }: { info: OperationInfo | undefined; parent: Parent },
  ) {
    this.#telemetry = telemetry;
    this.#operation = operation;
    this.#info = info;
    const { kind, links } = parent;
    const attributes = info?.spanAttributes ?? REFUSED_ATTRIBUTES;
    this.#span = telemetry.tracer.startSpan(
      info?.spanName ?? REFUSED,
      { kind, links, attributes, startTime: operation.started },
      parent.context,
    );
    this.#context = trace.setSpan(parent.context, this.#span);
    if (info !== undefined) info.active.value += 1;
  }

  /** The context of steps between arrival and execution, such as parsing. */
  get context(): Context {
    return this.#context;
  }

  run<T>(step: () => T): T {
    return context.with(this.#context, step);
  }

  executing(inputs: ExecutionInputs): ExecutionObserver | undefined {
    const { contents, spans } = this.#telemetry.settings;
    const info = this.#info as OperationInfo;
    const isEvent = info.type === 'subscription';
    if (!isEvent && contents === false && !spans.phases) return undefined;
    return safely(() => {
      if (contents !== false && !isEvent && this.#span.isRecording()) {
        this.#span.setAttributes(variableAttributes(inputs.variableValues, contents));
      }
      if (!isEvent && !spans.phases) return undefined;
      const parent = { context: this.#context, span: !isEvent || spans.events ? this.#span : undefined };
      return new ExecutionSpan(this.#telemetry, info, { ...parent, isEvent, event: inputs.rootValue });
    });
  }

  subscribed(): void {
    this.#isSubscribed = true;
    if (this.#info?.subscriptions !== undefined) this.#info.subscriptions.value += 1;
    this.#finish();
  }

  ended(): void {
    if (this.#isSubscribed && this.#info?.subscriptions !== undefined) this.#info.subscriptions.value -= 1;
    this.#finish();
  }

  /** Ends the span of the request. */
  #finish(): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    const info = this.#info;
    if (info !== undefined) info.active.value -= 1;
    const ended = performance.now();
    safely(() => this.#record(ended));
    safely(() => this.#span.end(ended));
  }

  #record(ended: number): void {
    const { metrics, errorType: bound } = this.#telemetry;
    const { errors, started, client } = this.#operation;
    if (client !== undefined) this.#span.setAttributes(clientAttributes(client));
    const type = errors.length === 0 ? undefined : errorType(errors);
    if (type !== undefined && this.#span.isRecording()) recordErrors(this.#span, type, errors);
    const attributes = this.#info?.metricAttributes ?? NO_ATTRIBUTES;
    metrics.requestDuration.record(
      (ended - started) / 1000,
      type === undefined ? attributes : { ...attributes, 'error.type': bound(type) },
      this.#context,
    );
  }
}

function clientAttributes({ name, version }: NonNullable<ObservedOperation['client']>): Attributes {
  const attributes: Attributes = { 'graphql.client.name': name };
  if (version !== undefined) attributes['graphql.client.version'] = version;
  return attributes;
}

/** The place of an execution. */
interface Place {
  readonly context: Context;
  /** The span of the operation; undefined if the execution gets no span. */
  readonly span: Span | undefined;
  /** Whether this is the execution of an event of a subscription. */
  readonly isEvent: boolean;
  readonly event: unknown;
}

/**
 * The span and the metrics of one execution. An event of a subscription begins a trace, which is linked to
 * the subscription and, within one process, to the span that published the event.
 */
class ExecutionSpan implements ExecutionObserver {
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

/** The parts of spans and metrics that are equal for all requests with one operation. */
interface OperationInfo {
  readonly type: string;
  readonly spanName: string;
  readonly spanAttributes: Attributes;
  /** The attributes of spans of an execution, or of an event. */
  readonly executionAttributes: Attributes;
  /** The active requests with the type. */
  readonly active: Count;
  /** The attributes of metrics that may have the name. */
  readonly metricAttributes: Attributes;
  readonly executionMetricAttributes: Attributes;
  /** Like `metricAttributes`, for metrics of subscriptions only. */
  readonly nameAttributes: Attributes;
  /** The active subscriptions with the name; undefined for queries and mutations. */
  readonly subscriptions: Count | undefined;
}

/** Returns the function that creates the info of an operation once. */
export function createOperationInfo(telemetry: Telemetry): (prepared: PreparedOperation) => OperationInfo {
  const known = new WeakMap<object, OperationInfo>();
  return (prepared) => {
    return getOrCreate(known, prepared.operation, () => createInfo(prepared, telemetry));
  };
}

function createInfo(prepared: PreparedOperation, telemetry: Telemetry): OperationInfo {
  const { metrics, settings } = telemetry;
  const type = prepared.operation.operation;
  const name = prepared.operation.name?.value;
  const bounded = telemetry.operationName(name);
  const typeAttributes = { 'graphql.operation.type': type };
  const nameAttributes = bounded === undefined ? {} : { 'graphql.operation.name': bounded };
  const identity: Attributes = { ...typeAttributes };
  if (name !== undefined) identity['graphql.operation.name'] = name;
  const spanAttributes: Attributes = {
    'graphql.processing.type': 'request',
    ...identity,
    'graphql.document.hash': documentHash(prepared.source),
  };
  if (settings.contents !== false) spanAttributes['graphql.document'] = documentText(prepared.source);
  const metricAttributes = { ...typeAttributes, ...nameAttributes };
  const executionAttributes = { 'graphql.processing.type': 'execute', ...identity };
  return {
    type,
    spanName: bounded === undefined || bounded !== name ? type : `${type} ${name}`,
    spanAttributes,
    executionAttributes,
    active: metrics.activeRequests.of(typeAttributes),
    metricAttributes,
    executionMetricAttributes: { 'graphql.processing.type': 'execute', ...metricAttributes },
    nameAttributes,
    subscriptions: type === 'subscription' ? metrics.activeSubscriptions.of(nameAttributes) : undefined,
  };
}

/** Characters of a document or of a variable in a span. */
const MAX_LENGTH = 4096;
/** Variables of one operation in a span. */
const MAX_VARIABLES = 50;

/** Returns `sha256:` and the digest of a document's text. */
const documentHash = (source: string): string =>
  `sha256:${createHash('sha256').update(source).digest('hex')}`;

/** Comments, strings and numbers that are not part of a name. */
const VALUES = /#[^\n\r]*|"""(?:\\"""|[\s\S])*?"""|"(?:\\.|[^"\\\n\r])*"|(?<![\w$@])-?\d[\w.+-]*/g;

/** Returns the text of a document without its strings and numbers, which may contain personal data. */
const documentText = (source: string): string =>
  source
    .replace(VALUES, (value) => (value[0] === '#' ? '' : value[0] === '"' ? '"*"' : '0'))
    .slice(0, MAX_LENGTH);

function variableAttributes(
  variables: Readonly<Record<string, unknown>> | undefined,
  allowed: true | readonly string[],
): Attributes {
  const attributes: Attributes = {};
  const names = Object.keys(variables ?? {}).filter((name) => allowed === true || allowed.includes(name));
  for (const name of names.slice(0, MAX_VARIABLES)) {
    attributes[`graphql.variables.${name}`] = formatVariable(variables?.[name]);
  }
  return attributes;
}

/** Formats a variable as JSON. Files of uploads, and other values without JSON, become the name of their type. */
function formatVariable(value: unknown): string {
  try {
    return (JSON.stringify(value) ?? typeof value).slice(0, MAX_LENGTH);
  } catch {
    return typeof value;
  }
}
