import { type Attributes, context, type Span, type SpanContext, SpanKind } from '@opentelemetry/api';
import { getOrCreate } from '../options/values.ts';
import type { DeliveryEvent, ObservedPublish } from '../pubsub/pubsub.ts';
import type { ObservedRequest } from '../static/handler.ts';
import type { ObservedUpload } from '../uploads/receipt.ts';
import {
  type Count,
  contextOf,
  errorType,
  parentOfRequest,
  recordErrors,
  safely,
  secondsSince,
  type Telemetry,
} from './telemetry.ts';

/** The parts of spans and metrics that are equal for all files with one status. */
interface FileInfo {
  readonly attributes: Attributes;
  readonly spanAttributes: Attributes;
  readonly lookups: Count;
}

/** Creates the spans and the metrics of requests for static files; none if one is passed to `next`. */
export function createFileObserver(telemetry: Telemetry): (message: ObservedRequest) => void {
  const { tracer, settings } = telemetry;
  const known = new Map<string, FileInfo>();
  const infoOf = (status: number, isCached: boolean): FileInfo => {
    const key = `${status} ${isCached}`;
    return getOrCreate(known, key, () => {
      const attributes = { 'http.response.status_code': status };
      const cache = { 'espalier.cache.name': 'files', 'espalier.cache.hit': isCached };
      const lookups = telemetry.metrics.cacheRequests.of(cache);
      return { attributes, spanAttributes: { ...attributes, ...cache }, lookups };
    });
  };
  return (message) => {
    const parent = parentOfRequest(message.req.headers);
    message.onEnd(({ status, aborted }) => {
      safely(() => {
        if (status === undefined) return;
        const { attributes, spanAttributes, lookups } = infoOf(status, message.isCached);
        lookups.value += 1;
        const options = { startTime: message.started, attributes: spanAttributes };
        const span = settings.spans.files ? tracer.startSpan('static file', options, parent) : undefined;
        const { fileDuration } = telemetry.metrics;
        fileDuration.record(secondsSince(message.started), attributes, contextOf(span, parent));
        if (aborted) span?.setAttribute('error.type', 'client_aborted');
        span?.end(performance.now());
      });
    });
  };
}

/** Creates the span and the metrics of the receipt of an upload. */
export function observeUpload(telemetry: Telemetry, message: ObservedUpload): void {
  const { tracer, metrics, settings } = telemetry;
  const parent = parentOfRequest(message.req.headers);
  message.onEnd(({ files, bytes, error }) => {
    safely(() => {
      const type = error === undefined ? undefined : errorType([error]);
      const attributes: Attributes =
        type === undefined ? {} : { 'error.type': telemetry.errorType(type) as string };
      const counts = { 'espalier.upload.files': files, 'espalier.upload.size': bytes };
      const options = { startTime: message.started, attributes: counts };
      const span = settings.spans.uploads ? tracer.startSpan('GraphQL Upload', options, parent) : undefined;
      const context = contextOf(span, parent);
      metrics.uploadDuration.record(secondsSince(message.started), attributes, context);
      metrics.uploadBytes.record(bytes, attributes, context);
      if (span !== undefined && type !== undefined) recordErrors(span, type, [error]);
      span?.end(performance.now());
    });
  });
}

/** The spans that published events of this process, by payload. Only payloads that are objects have one. */
const publishers = new WeakMap<object, SpanContext>();

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** Returns the span that has published an event. */
export const publisherOf = (event: unknown): SpanContext | undefined =>
  isObject(event) ? publishers.get(event) : undefined;

/** The functions for the messages of pubsub. */
interface Topics {
  readonly onPublish: (message: ObservedPublish) => void;
  readonly onDelivery: (message: DeliveryEvent) => void;
}

/** The parts of spans and metrics that are equal for all events of one topic. */
interface TopicInfo {
  readonly spanName: string;
  readonly attributes: Attributes;
  readonly destination: Attributes;
  /** The events that were delivered; undefined before the first one. */
  delivered: Count | undefined;
}

/** Creates the functions for the messages of pubsub, with the attributes of each topic. */
export function createTopics(telemetry: Telemetry): Topics {
  /** By bounded name. */
  const known = new Map<string | undefined, TopicInfo>();
  const infoOf = (topic: string): TopicInfo => {
    const name = telemetry.topic(topic);
    return getOrCreate(known, name, () => createInfo(name, name === topic));
  };
  return {
    onPublish: (message) => observePublish(telemetry, message, infoOf(message.topic)),
    onDelivery: ({ topic, streams }) => {
      const info = infoOf(topic);
      info.delivered ??= telemetry.metrics.deliveries.of(info.destination);
      info.delivered.value += streams;
    },
  };
}

function createInfo(name: string | undefined, isAllowed: boolean): TopicInfo {
  const destination: Attributes = name === undefined ? {} : { 'messaging.destination.name': name };
  return {
    spanName: isAllowed ? `publish ${name}` : 'publish',
    attributes: {
      'messaging.system': 'espalier',
      'messaging.operation.name': 'publish',
      'messaging.operation.type': 'send',
      ...destination,
    },
    destination,
    delivered: undefined,
  };
}

/** Creates the span and the metrics of a published event, by the conventions for messaging. */
function observePublish(
  telemetry: Telemetry,
  message: ObservedPublish,
  { spanName, attributes }: TopicInfo,
): void {
  const { tracer, metrics, settings } = telemetry;
  const parent = context.active();
  let span: Span | undefined;
  if (settings.spans.pubsub) {
    span = tracer.startSpan(spanName, { kind: SpanKind.PRODUCER, attributes }, parent);
    if (isObject(message.payload)) publishers.set(message.payload, span.spanContext());
  }
  message.onEnd(({ error }) => {
    safely(() => {
      const type = error === undefined ? undefined : errorType([error]);
      if (span !== undefined && type !== undefined) recordErrors(span, type, [error]);
      span?.end();
      metrics.publishDuration.record(
        secondsSince(message.started),
        type === undefined
          ? attributes
          : { ...attributes, 'error.type': telemetry.errorType(type) as string },
        contextOf(span, parent),
      );
    });
  });
}
