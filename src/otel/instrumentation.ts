import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type MeterProvider, metrics, type TracerProvider, trace } from '@opentelemetry/api';
import type {
  MeterSource,
  OpenTelemetryInstrumentation,
  OpenTelemetryOptions,
  SpanKind,
  TracerSource,
} from '../../types/otel.ts';
import type { ObservedConnection, ParseEvent, ValidateEvent } from '../diagnostics/events.ts';
import { VERSION } from '../diagnostics/version.ts';
import type { ObservedOperation } from '../execution/observed.ts';
import {
  flag,
  isEither,
  isListOf,
  isOneOf,
  type Rule,
  type Rules,
  resolveOptions,
  rule,
} from '../options/rules.ts';
import { OTEL_OPTIONS } from '../options/scopes.ts';
import { isBoolean, isString } from '../options/values.ts';
import type { DeliveryEvent, ObservedPublish } from '../pubsub/pubsub.ts';
import type { ObservedUpload } from '../uploads/receipt.ts';
import { createOperationInfo, OperationSpan, Phases } from './operations.ts';
import { createFileObserver, createTopics, observeUpload } from './requests.ts';
import {
  Metrics,
  parentOf,
  safely,
  secondsSince,
  Telemetry,
  type UpgradeContexts,
  upgradeContext,
} from './telemetry.ts';

const SCOPE = 'espalier';

/**
 * Creates OpenTelemetry spans and metrics for GraphQL over HTTP, event streams and WebSockets, for uploads,
 * static files and pubsub. It subscribes to the diagnostics channels of espalier, and patches no module.
 *
 * @throws TypeError (code `ERR_OPTION`) for an unknown option or a wrong value
 * @example
 * registerInstrumentations({ instrumentations: [new HttpInstrumentation(), new EspalierInstrumentation()] });
 */
export class EspalierInstrumentation implements OpenTelemetryInstrumentation {
  readonly instrumentationName: string = SCOPE;
  readonly instrumentationVersion: string = VERSION;
  #options: OpenTelemetryOptions;
  #settings: OpenTelemetrySettings;
  #tracers: TracerProvider = trace;
  #meters: MeterProvider = metrics;
  /** The instruments; undefined before the first message. */
  #metrics: Metrics | undefined;
  /** Undefined while it is disabled. */
  #subscribers: Subscribers | undefined;

  constructor(options: OpenTelemetryOptions = {}) {
    this.#settings = resolveOpenTelemetryOptions(options);
    this.#options = { ...options, enabled: this.#settings.enabled };
    if (this.#settings.enabled) this.enable();
  }

  enable(): void {
    if (this.#subscribers !== undefined) return;
    this.#metrics?.attach();
    const tracer = this.#tracers.getTracer(SCOPE, VERSION);
    const findMetrics = (): Metrics => {
      this.#metrics ??= new Metrics(this.#meters.getMeter(SCOPE, VERSION));
      return this.#metrics;
    };
    this.#subscribers = createSubscribers(new Telemetry(this.#settings, tracer, findMetrics));
    for (const [channel, subscriber] of this.#subscribers) subscribe(channel, subscriber);
  }

  disable(): void {
    if (this.#subscribers === undefined) return;
    for (const [channel, subscriber] of this.#subscribers) unsubscribe(channel, subscriber);
    this.#subscribers = undefined;
    this.#metrics?.detach();
  }

  setTracerProvider(provider: TracerSource): void {
    this.#change(() => {
      this.#tracers = provider as TracerProvider;
    });
  }

  setMeterProvider(provider: MeterSource): void {
    this.#change(() => {
      this.#meters = provider as MeterProvider;
      this.#metrics = undefined;
    });
  }

  setConfig(options: OpenTelemetryOptions): void {
    const settings = resolveOpenTelemetryOptions(options);
    this.#change(() => {
      this.#options = { ...options, enabled: settings.enabled };
      this.#settings = settings;
    });
  }

  getConfig(): OpenTelemetryOptions {
    return this.#options;
  }

  /** Makes a change that the next messages observe. */
  #change(change: () => void): void {
    const wasEnabled = this.#subscribers !== undefined;
    this.disable();
    change();
    if (wasEnabled) this.enable();
  }
}

/** Names that are allowed: none, the first ones, or those of a list. */
export type NameOption = boolean | readonly string[];

type SpanSettings = Readonly<Record<SpanKind, boolean>>;

export interface OpenTelemetrySettings {
  readonly enabled: boolean;
  readonly names: NameOption;
  readonly contents: NameOption;
  readonly spans: SpanSettings;
}

const names: Rule<NameOption> = rule<NameOption>(
  false,
  isEither(isBoolean, isListOf(isString)),
  'a boolean, or a list of names',
);

const rules: Rules<Omit<OpenTelemetrySettings, 'spans'> & { spans: readonly SpanKind[] }> = {
  enabled: flag(true),
  names,
  contents: names,
  spans: rule<readonly SpanKind[]>(
    ['events', 'files', 'uploads', 'pubsub'],
    isListOf(isOneOf('phases', 'events', 'files', 'uploads', 'pubsub')),
    "a list of 'phases', 'events', 'files', 'uploads' and 'pubsub'",
  ),
};

/** Checks the options of `EspalierInstrumentation` and fills in the defaults. */
function resolveOpenTelemetryOptions(given: unknown): OpenTelemetrySettings {
  const { spans, ...settings } = resolveOptions(OTEL_OPTIONS, given, rules);
  const has = (kind: SpanKind): boolean => spans.includes(kind);
  return {
    ...settings,
    spans: {
      phases: has('phases'),
      events: has('events'),
      files: has('files'),
      uploads: has('uploads'),
      pubsub: has('pubsub'),
    },
  };
}

/** The functions that handle the messages of channels, by the name of the channel. */
type Subscribers = readonly (readonly [channel: string, subscriber: (message: unknown) => void])[];

/** Creates the functions that turn messages into spans and metrics. */
function createSubscribers(telemetry: Telemetry): Subscribers {
  const upgrades: UpgradeContexts = new WeakMap();
  const phases = new Phases(telemetry);
  const topics = createTopics(telemetry);
  return [
    on('graphql:operation', createOperationSubscriber(telemetry, phases, upgrades)),
    on<ParseEvent>('graphql:parse', (message) => phases.add('parse', message)),
    on<ValidateEvent>('graphql:validate', (message) => phases.add('validate', message)),
    on<ObservedConnection>('graphql:connection', (message) =>
      observeConnection(telemetry, message, upgrades),
    ),
    on('static:request', createFileObserver(telemetry)),
    on<ObservedUpload>('uploads:request', (message) => observeUpload(telemetry, message)),
    on<ObservedPublish>('pubsub:publish', topics.onPublish),
    on<DeliveryEvent>('pubsub:event', topics.onDelivery),
  ];
}

function on<Message>(name: string, subscriber: (message: Message) => void): Subscribers[number] {
  return [`espalier:${name}`, (message) => safely(() => subscriber(message as Message))];
}

function createOperationSubscriber(
  telemetry: Telemetry,
  phases: Phases,
  upgrades: UpgradeContexts,
): (operation: ObservedOperation) => void {
  const infoOf = createOperationInfo(telemetry);
  return (operation) => {
    const { prepared } = operation;
    const info = prepared === undefined ? undefined : infoOf(prepared);
    const span = new OperationSpan(telemetry, operation, { info, parent: parentOf(operation, upgrades) });
    operation.observe(span);
    phases.end(operation, span.context);
  };
}

/** Measures a connection, and keeps the trace context of its upgrade request for its operations. */
function observeConnection(
  { metrics }: Telemetry,
  message: ObservedConnection,
  upgrades: UpgradeContexts,
): void {
  const { protocol, websocket } = message.connection;
  const headers = websocket?.request?.headers;
  const context = headers === undefined ? undefined : upgradeContext(headers);
  if (websocket !== undefined && context !== undefined) upgrades.set(websocket, context);
  message.onEnd(() => {
    safely(() =>
      metrics.connectionDuration.record(secondsSince(message.started), { 'espalier.protocol': protocol }),
    );
  });
}
