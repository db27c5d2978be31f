import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { MeterProvider, TracerProvider } from '@opentelemetry/api';
import type {
  MeterSource,
  OpenTelemetryInstrumentation,
  OpenTelemetryOptions,
  TracerSource,
} from '../../types/otel.ts';
import { createSubscribers, type Subscribers } from './channels.ts';
import { resolveOpenTelemetryOptions } from './options.ts';
import { SCOPE, Telemetry, VERSION } from './telemetry.ts';

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
  #telemetry: Telemetry;
  #subscribers: Subscribers;
  #tracers: TracerProvider | undefined;
  #meters: MeterProvider | undefined;
  #isEnabled = false;

  constructor(options: OpenTelemetryOptions = {}) {
    const settings = resolveOpenTelemetryOptions(options);
    this.#options = { ...options, enabled: settings.enabled };
    this.#telemetry = new Telemetry(settings);
    this.#subscribers = createSubscribers(this.#telemetry);
    if (settings.enabled) this.enable();
  }

  enable(): void {
    if (this.#isEnabled) return;
    this.#isEnabled = true;
    for (const [channel, subscriber] of this.#subscribers) subscribe(channel, subscriber);
  }

  disable(): void {
    if (!this.#isEnabled) return;
    this.#isEnabled = false;
    for (const [channel, subscriber] of this.#subscribers) unsubscribe(channel, subscriber);
  }

  setTracerProvider(provider: TracerSource): void {
    this.#tracers = provider as TracerProvider;
    this.#telemetry.setTracerProvider(this.#tracers);
  }

  setMeterProvider(provider: MeterSource): void {
    this.#meters = provider as MeterProvider;
    this.#telemetry.setMeterProvider(this.#meters);
  }

  setConfig(options: OpenTelemetryOptions): void {
    const settings = resolveOpenTelemetryOptions(options);
    const wasEnabled = this.#isEnabled;
    this.disable();
    this.#options = { ...options, enabled: settings.enabled };
    this.#telemetry = new Telemetry(settings);
    if (this.#tracers !== undefined) this.#telemetry.setTracerProvider(this.#tracers);
    if (this.#meters !== undefined) this.#telemetry.setMeterProvider(this.#meters);
    this.#subscribers = createSubscribers(this.#telemetry);
    if (wasEnabled) this.enable();
  }

  getConfig(): OpenTelemetryOptions {
    return this.#options;
  }
}
