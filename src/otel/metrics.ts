import type {
  Attributes,
  Histogram,
  Meter,
  MetricOptions,
  Observable,
  ObservableCallback,
  ObservableResult,
} from '@opentelemetry/api';
import { type GaugeKind, readGauges } from '../diagnostics/gauges.ts';

/** Upper bounds of durations in seconds, as for `http.server.request.duration`, and shorter ones. */
const DURATIONS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
];
const ERRORS = [0, 1, 2, 5, 10];
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

/** A number with the attributes that distinguish it. */
export interface Count {
  readonly attributes: Attributes;
  value: number;
}

/** The counts of one instrument. */
class Counts {
  readonly #byKey = new Map<string, Count>();

  /** Returns the count of these attributes. */
  of(attributes: Attributes): Count {
    const key = JSON.stringify(attributes);
    let count = this.#byKey.get(key);
    if (count === undefined) {
      count = { attributes, value: 0 };
      this.#byKey.set(key, count);
    }
    return count;
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
  readonly errorCount: Histogram;
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
    this.errorCount = histogram(
      'graphql.server.response.error_count',
      'Number of errors in a GraphQL response.',
      '{error}',
      ERRORS,
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
