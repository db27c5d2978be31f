import {
  type Attributes,
  type Context,
  context,
  diag,
  type Histogram,
  isSpanContextValid,
  type Link,
  type Meter,
  type MetricOptions,
  type Observable,
  type ObservableCallback,
  type ObservableResult,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  type TextMapGetter,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { readError } from '../diagnostics/logging.ts';
import { deprecatedUses, readAll } from '../diagnostics/registry.ts';
import { type GaugeKind, readGauges } from '../diagnostics/stats.ts';
import type { ObservedOperation } from '../execution/observed.ts';
import { getOrCreate } from '../options/values.ts';
import type { NameOption, OpenTelemetrySettings } from './instrumentation.ts';

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
    this.settings = settings;
    this.tracer = tracer;
    this.operationName = boundNames(settings.names);
    this.topic = boundNames(settings.names);
    this.errorType = boundNames(true);
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

/** The value of an attribute for names that are not allowed, as in the semantic conventions. */
const OTHER = '_OTHER';

/** The values of one attribute; further ones become `OTHER`. */
const MAX_NAMES = 100;

/** Longer names are not part of metrics. */
const MAX_LENGTH = 100;

/** Returns the value of an attribute for a name; undefined if the attribute is off or there is no name. */
type BoundName = (name: string | undefined) => string | undefined;

/**
 * Bounds the values of one attribute. The number of time series in memory, here and in each backend, is the
 * product of the numbers of values of their attributes.
 */
function boundNames(option: NameOption): BoundName {
  if (option === false) return () => undefined;
  const isOpen = option === true;
  const known = new Set(isOpen ? [] : option);
  return (name) => {
    if (name === undefined || known.has(name)) return name;
    if (!isOpen || known.size >= MAX_NAMES || name.length > MAX_LENGTH) return OTHER;
    known.add(name);
    return name;
  };
}

/** Upper bounds of durations in seconds, as for `http.server.request.duration`, and shorter ones. */
const DURATIONS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
];
const BYTES = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
const BUDGETS: readonly GaugeKind[] = ['documents', 'responses', 'files', 'uploads'];

const cacheAttributes = (name: 'documents' | 'responses', lookup: 'hit' | 'miss'): Attributes => ({
  'espalier.cache.name': name,
  'espalier.cache.hit': lookup === 'hit',
});

/** Observes the lookups in response caches, which count them. */
function observeResponses(result: ObservableResult): void {
  const { hits, misses } = readGauges('responses');
  if (hits !== undefined) result.observe(hits, cacheAttributes('responses', 'hit'));
  if (misses !== undefined) result.observe(misses, cacheAttributes('responses', 'miss'));
}

/** Observes the operations that used each deprecated part of the schemas. Their number is bounded by that of the parts. */
function observeDeprecated(result: ObservableResult): void {
  const counts = new Map<string, number>();
  for (const { coordinate, count } of readAll(deprecatedUses) ?? []) {
    counts.set(coordinate, (counts.get(coordinate) ?? 0) + count);
  }
  for (const [coordinate, count] of counts) result.observe(count, { 'graphql.coordinate': coordinate });
}

/** A number with the attributes that distinguish it. */
export interface Count {
  readonly attributes: Attributes;
  value: number;
}

class Counts {
  readonly #byKey = new Map<string, Count>();

  /** Returns the count of these attributes. */
  of(attributes: Attributes): Count {
    const key = JSON.stringify(attributes);
    return getOrCreate(this.#byKey, key, () => ({ attributes, value: 0 }));
  }

  readonly observe = (result: ObservableResult): void => {
    for (const { attributes, value } of this.#byKey.values()) result.observe(value, attributes);
  };
}

/**
 * The instruments. Counts are instruments with callbacks: an operation increments numbers, and the SDK reads
 * them when it exports.
 */
export class Metrics {
  readonly requestDuration: Histogram;
  readonly processingDuration: Histogram;
  readonly eventDuration: Histogram;
  readonly connectionDuration: Histogram;
  readonly fileDuration: Histogram;
  readonly uploadDuration: Histogram;
  readonly uploadBytes: Histogram;
  readonly publishDuration: Histogram;
  readonly activeRequests: Counts = new Counts();
  readonly activeSubscriptions: Counts = new Counts();
  readonly cacheRequests: Counts = new Counts();
  readonly documentHits: Count = this.cacheRequests.of(cacheAttributes('documents', 'hit'));
  readonly documentMisses: Count = this.cacheRequests.of(cacheAttributes('documents', 'miss'));
  readonly deliveries: Counts = new Counts();
  readonly #callbacks: (readonly [Observable, ObservableCallback])[] = [];

  constructor(meter: Meter) {
    const histogram = (name: string, description: string, unit = 's', bounds = DURATIONS): Histogram =>
      meter.createHistogram(name, { unit, description, advice: { explicitBucketBoundaries: bounds } });
    this.requestDuration = histogram('graphql.server.request.duration', 'Duration of GraphQL requests.');
    this.processingDuration = histogram(
      'graphql.server.processing.duration',
      'Duration of a phase of a GraphQL request.',
    );
    this.eventDuration = histogram(
      'graphql.server.subscription.event.duration',
      'Duration of processing one event of a subscription.',
    );
    this.connectionDuration = histogram(
      'espalier.connection.duration',
      'Duration of WebSockets and event streams.',
    );
    this.fileDuration = histogram('espalier.file.duration', 'Duration of responses with static files.');
    this.uploadDuration = histogram('espalier.upload.duration', 'Duration of the receipt of uploads.');
    this.uploadBytes = histogram('espalier.upload.size', 'Bytes of the files of one request.', 'By', BYTES);
    this.publishDuration = histogram(
      'messaging.client.operation.duration',
      'Duration of publishing an event.',
    );
    this.#createCounters(meter);
    this.#createGauges(meter);
    this.attach();
  }

  /** Lets the SDK read the counts. */
  attach(): void {
    for (const [instrument, callback] of this.#callbacks) instrument.addCallback(callback);
  }

  detach(): void {
    for (const [instrument, callback] of this.#callbacks) instrument.removeCallback(callback);
  }

  #createCounters(meter: Meter): void {
    const upDown = (name: string, options: MetricOptions, callback: ObservableCallback): void =>
      void this.#callbacks.push([meter.createObservableUpDownCounter(name, options), callback]);
    const counter = (name: string, options: MetricOptions, callback: ObservableCallback): void =>
      void this.#callbacks.push([meter.createObservableCounter(name, options), callback]);
    upDown(
      'graphql.server.active_requests',
      { unit: '{request}', description: 'Number of active GraphQL requests.' },
      this.activeRequests.observe,
    );
    upDown(
      'graphql.server.subscription.active',
      { unit: '{subscription}', description: 'Number of active GraphQL subscriptions.' },
      this.activeSubscriptions.observe,
    );
    upDown(
      'espalier.connection.active',
      { unit: '{connection}', description: 'Number of open WebSockets and event streams.' },
      (result) => result.observe(readGauges('live')['connections'] ?? 0),
    );
    upDown(
      'espalier.operation.active',
      { unit: '{operation}', description: 'Number of operations of WebSockets and event streams.' },
      (result) => result.observe(readGauges('live')['operations'] ?? 0),
    );
    counter(
      'espalier.cache.requests',
      { unit: '{request}', description: 'Number of lookups in a cache.' },
      (result) => {
        this.cacheRequests.observe(result);
        observeResponses(result);
      },
    );
    counter(
      'espalier.deprecated.operations',
      { unit: '{operation}', description: 'Number of operations that used a deprecated part of the schema.' },
      observeDeprecated,
    );
    counter(
      'messaging.client.consumed.messages',
      { unit: '{message}', description: 'Number of events that were delivered to streams.' },
      this.deliveries.observe,
    );
  }

  #createGauges(meter: Meter): void {
    for (const [name, member] of [
      ['espalier.budget.usage', 'bytes'],
      ['espalier.budget.limit', 'maxBytes'],
    ] as const) {
      const observe = (result: ObservableResult): void => {
        for (const kind of BUDGETS) {
          const value = readGauges(kind)[member];
          if (value !== undefined && Number.isFinite(value)) {
            result.observe(value, { 'espalier.budget.name': kind });
          }
        }
      };
      this.#callbacks.push([meter.createObservableGauge(name, { unit: 'By' }), observe]);
    }
  }
}

type Carrier = Readonly<Record<string, unknown>>;

/** Reads an object that a client has sent as JSON. */
const CLIENT_VALUES: TextMapGetter<Carrier> = {
  keys: (carrier) => Object.keys(carrier),
  get(carrier, key) {
    const value = Object.hasOwn(carrier, key) ? carrier[key] : undefined;
    return typeof value === 'string' ? value : undefined;
  },
};

/** The place of an operation's span in a trace. */
export interface Parent {
  readonly context: Context;
  readonly kind: SpanKind;
  readonly links: Link[];
}

/** The contexts of the upgrade requests of open sockets that had one. */
export type UpgradeContexts = WeakMap<object, Context>;

/**
 * Returns the parent of an operation. Over HTTP it is the active span, for example of
 * `@opentelemetry/instrumentation-http`; a trace context in `extensions` is then linked. Without an active
 * span, and over sockets, it is the first of these with a trace context: `extensions` of the operation, the
 * payload of `connection_init`, the headers of the request.
 */
export function parentOf(operation: ObservedOperation, upgrades: UpgradeContexts): Parent {
  const active = context.active();
  const { origin, request, socket } = operation;
  const extensions = origin?.extensions;
  if (socket === undefined) {
    if (hasSpan(active)) {
      return {
        context: active,
        kind: SpanKind.INTERNAL,
        links: linksTo(extract(active, extensions), active),
      };
    }
    const base = request === undefined ? active : propagation.extract(active, request.headers);
    return { context: extract(base, extensions), kind: SpanKind.SERVER, links: [] };
  }
  // The span that was active when the socket was opened may be active for all its messages.
  const opened = upgrades.get(socket) ?? trace.deleteSpan(active);
  const initialised = extract(opened, origin?.connectionParams);
  return { context: extract(initialised, extensions), kind: SpanKind.SERVER, links: [] };
}

/** Returns the parent of work for a request: the active span, or the span that the headers name. */
export function parentOfRequest(headers: Readonly<Record<string, unknown>>): Context {
  const active = context.active();
  return hasSpan(active) ? active : propagation.extract(active, headers);
}

/** Returns the context of a span below `parent`; `parent` without a span. */
export const contextOf = (span: Span | undefined, parent: Context): Context =>
  span === undefined ? parent : trace.setSpan(parent, span);

/** Returns the context that the headers of an upgrade name; undefined if they name none. */
export function upgradeContext(headers: Readonly<Record<string, unknown>>): Context | undefined {
  const base = trace.deleteSpan(context.active());
  const extracted = propagation.extract(base, headers);
  return extracted === base ? undefined : extracted;
}

const extract = (base: Context, carrier: Carrier | undefined): Context =>
  carrier === undefined ? base : propagation.extract(base, carrier, CLIENT_VALUES);

function hasSpan(active: Context): boolean {
  const span = trace.getSpan(active);
  return span !== undefined && isSpanContextValid(span.spanContext());
}

/** Returns a link to the span of a context, unless it is that of `base`. */
function linksTo(extracted: Context, base: Context): Link[] {
  if (extracted === base) return [];
  const remote = trace.getSpanContext(extracted);
  return remote === undefined || remote === trace.getSpanContext(base) ? [] : [{ context: remote }];
}

/** The events of one span; more errors are only counted. */
const MAX_EVENTS = 10;

/**
 * Returns the value of `error.type`: the code of the first error or, for an unexpected error, the name of its
 * class.
 */
export function errorType(errors: readonly unknown[]): string {
  const { code, name, originalError } = readError(errors[0]);
  return code ?? (originalError === undefined ? name : readError(originalError).name) ?? OTHER;
}

/** Sets the status of a span, and adds an event for each error. */
export function recordErrors(span: Span, type: string, errors: readonly unknown[]): void {
  span.setStatus({ code: SpanStatusCode.ERROR });
  span.setAttributes({ 'error.type': type, 'graphql.error.count': errors.length });
  for (const error of errors.slice(0, MAX_EVENTS)) span.addEvent('graphql.error', attributesOf(error));
}

function attributesOf(value: unknown): Attributes {
  const { message, code, path, locations, originalError } = readError(value);
  const attributes: Attributes = { 'graphql.error.message': message };
  if (path !== undefined) attributes['graphql.error.path'] = formatPath(path);
  if (locations !== undefined) attributes['graphql.error.locations'] = JSON.stringify(locations);
  if (code !== undefined) attributes['graphql.error.code'] = code;
  const original = readError(originalError);
  // A GraphQLError is not an exception: it is meant for the client.
  if (originalError !== undefined && original.name !== 'GraphQLError') {
    attributes['exception.type'] = original.name ?? OTHER;
    attributes['exception.message'] = original.message;
  }
  return attributes;
}

/** Formats a path as in `user.friends[0].name`. */
const formatPath = (path: readonly (string | number)[]): string =>
  path
    .map((key, index) => (typeof key === 'number' ? `[${key}]` : `${index === 0 ? '' : '.'}${key}`))
    .join('');
