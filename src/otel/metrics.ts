import type { Attributes, Histogram, Meter, ObservableResult } from '@opentelemetry/api';
import { type GaugeKind, readGauges } from '../diagnostics/gauges.ts';

/** Upper bounds of durations in seconds, as for `http.server.request.duration`, and shorter ones. */
const DURATIONS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
];
const ERRORS = [0, 1, 2, 5, 10];
const BYTES = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

/** Numbers with the attributes that distinguish them. */
class Counts {
  readonly #byKey = new Map<string, { readonly attributes: Attributes; value: number }>();

  /** `key` is equal for equal attributes. */
  add(key: string, attributes: Attributes, value: number): void {
    const entry = this.#byKey.get(key);
    if (entry === undefined) this.#byKey.set(key, { attributes, value });
    else entry.value += value;
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
  readonly deliveries: Counts = new Counts();

  constructor(meter: Meter) {
    const duration = (name: string, description: string): Histogram =>
      meter.createHistogram(name, {
        unit: 's',
        description,
        advice: { explicitBucketBoundaries: DURATIONS },
      });
    this.requestDuration = duration('graphql.server.request.duration', 'Duration of GraphQL requests.');
    this.processingDuration = duration(
      'graphql.server.processing.duration',
      'Duration of a phase of a GraphQL request.',
    );
    this.errorCount = meter.createHistogram('graphql.server.response.error_count', {
      unit: '{error}',
      description: 'Number of errors in a GraphQL response.',
      advice: { explicitBucketBoundaries: ERRORS },
    });
    this.eventDuration = duration(
      'graphql.server.subscription.event.duration',
      'Duration of processing one event of a subscription.',
    );
    this.connectionDuration = duration(
      'espalier.connection.duration',
      'Duration of WebSockets and event streams.',
    );
    this.fileDuration = duration('espalier.file.duration', 'Duration of responses with static files.');
    this.uploadDuration = duration('espalier.upload.duration', 'Duration of the receipt of uploads.');
    this.uploadBytes = meter.createHistogram('espalier.upload.size', {
      unit: 'By',
      description: 'Bytes of the files of one request.',
      advice: { explicitBucketBoundaries: BYTES },
    });
    this.publishDuration = duration(
      'messaging.client.operation.duration',
      'Duration of publishing an event.',
    );
    this.#countActive(meter);
    this.#readGauges(meter);
  }

  #countActive(meter: Meter): void {
    const upDown = (name: string, unit: string, description: string, counts: Counts): void =>
      meter.createObservableUpDownCounter(name, { unit, description }).addCallback(counts.observe);
    const counter = (name: string, unit: string, description: string, counts: Counts): void =>
      meter.createObservableCounter(name, { unit, description }).addCallback(counts.observe);
    upDown(
      'graphql.server.active_requests',
      '{request}',
      'Number of active GraphQL requests.',
      this.activeRequests,
    );
    upDown(
      'graphql.server.subscription.active',
      '{subscription}',
      'Number of active GraphQL subscriptions.',
      this.activeSubscriptions,
    );
    counter('espalier.cache.requests', '{request}', 'Number of lookups in a cache.', this.cacheRequests);
    counter(
      'messaging.client.consumed.messages',
      '{message}',
      'Number of events that were delivered to streams.',
      this.deliveries,
    );
  }

  #readGauges(meter: Meter): void {
    const gauge = (name: string, unit: string, kinds: readonly GaugeKind[], member: string): void =>
      meter.createObservableGauge(name, { unit }).addCallback((result) => {
        for (const kind of kinds) {
          const value = readGauges(kind)[member];
          if (value !== undefined && Number.isFinite(value)) {
            result.observe(value, { 'espalier.budget.name': kind });
          }
        }
      });
    gauge('espalier.budget.usage', 'By', BUDGETS, 'bytes');
    gauge('espalier.budget.limit', 'By', BUDGETS, 'maxBytes');
    meter
      .createObservableUpDownCounter('espalier.connection.active', {
        unit: '{connection}',
        description: 'Number of open WebSockets and event streams.',
      })
      .addCallback((result) => result.observe(readGauges('live')['connections'] ?? 0));
    meter
      .createObservableUpDownCounter('espalier.operation.active', {
        unit: '{operation}',
        description: 'Number of operations of WebSockets and event streams.',
      })
      .addCallback((result) => result.observe(readGauges('live')['operations'] ?? 0));
  }
}

const BUDGETS: readonly GaugeKind[] = ['documents', 'responses', 'files', 'uploads'];
