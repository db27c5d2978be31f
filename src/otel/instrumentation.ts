import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type MeterProvider, metrics, type TracerProvider, trace } from '@opentelemetry/api';
import type {
  MeterSource,
  OpenTelemetryInstrumentation,
  OpenTelemetryOptions,
  TracerSource,
} from '../../types/otel.ts';
import { VERSION } from '../diagnostics/version.ts';
import { createSubscribers, type Subscribers } from './channels.ts';
import { Metrics } from './metrics.ts';
import { type OpenTelemetrySettings, resolveOpenTelemetryOptions } from './options.ts';
import { Telemetry } from './telemetry.ts';

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
