import { type Attributes, context, type Span, SpanKind } from '@opentelemetry/api';
import type { ObservedPublish } from '../pubsub/observed-publish.ts';
import type { ObservedRequest } from '../static/observed-request.ts';
import type { ObservedUpload } from '../uploads/observed-upload.ts';
import { errorType, recordErrors } from './errors.ts';
import { rememberPublisher } from './publishers.ts';
import { safely, secondsSince, type Telemetry } from './telemetry.ts';
import { parentOfRequest } from './trace-context.ts';

/** Creates the span and the metrics of a request for a static file; none if it is passed to `next`. */
export function observeFile({ tracer, metrics, settings }: Telemetry, message: ObservedRequest): void {
  const parent = parentOfRequest(message.req.headers);
  const cache: Attributes = { 'espalier.cache.name': 'files', 'espalier.cache.hit': message.isCached };
  message.onEnd(({ status, aborted }) => {
    safely(() => {
      if (status === undefined) return;
      const attributes: Attributes = { 'http.response.status_code': status };
      metrics.fileDuration.record(secondsSince(message.started), attributes);
      metrics.cacheRequests.add(`files ${message.isCached}`, cache, 1);
      if (!settings.spans.files) return;
      const options = { startTime: message.started, attributes: { ...attributes, ...cache } };
      const span = tracer.startSpan('static file', options, parent);
      if (aborted) span.setAttribute('error.type', 'client_aborted');
      span.end(performance.now());
    });
  });
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
      metrics.uploadDuration.record(secondsSince(message.started), attributes);
      metrics.uploadBytes.record(bytes, attributes);
      if (!settings.spans.uploads) return;
      const counts = { 'espalier.upload.files': files, 'espalier.upload.size': bytes };
      const options = { startTime: message.started, attributes: counts };
      const span = tracer.startSpan('GraphQL Upload', options, parent);
      if (type !== undefined) recordErrors(span, type, [error]);
      span.end(performance.now());
    });
  });
}

/** Creates the span and the metrics of a published event, by the conventions for messaging. */
export function observePublish(telemetry: Telemetry, message: ObservedPublish): void {
  const { tracer, metrics, settings } = telemetry;
  const topic = telemetry.topic(message.topic);
  const attributes = publishAttributes(topic);
  const name = topic === message.topic ? `publish ${topic}` : 'publish';
  let span: Span | undefined;
  if (settings.spans.pubsub) {
    span = tracer.startSpan(name, { kind: SpanKind.PRODUCER, attributes }, context.active());
    rememberPublisher(message.payload, span.spanContext());
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
      );
    });
  });
}

/** The attributes of a topic; none if topics are not part of metrics. */
export const topicAttributes = (topic: string | undefined): Attributes =>
  topic === undefined ? {} : { 'messaging.destination.name': topic };

const publishAttributes = (topic: string | undefined): Attributes => ({
  'messaging.system': 'espalier',
  'messaging.operation.name': 'publish',
  'messaging.operation.type': 'send',
  ...topicAttributes(topic),
});
