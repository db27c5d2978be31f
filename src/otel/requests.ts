import type { Attributes } from '@opentelemetry/api';
import type { ObservedRequest } from '../static/handler.ts';
import type { ObservedUpload } from '../uploads/receive.ts';
import { errorType, recordErrors } from './errors.ts';
import type { Count } from './metrics.ts';
import { safely, secondsSince, type Telemetry } from './telemetry.ts';
import { contextOf, parentOfRequest } from './trace-context.ts';

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
    let info = known.get(key);
    if (info === undefined) {
      const attributes = { 'http.response.status_code': status };
      const cache = { 'espalier.cache.name': 'files', 'espalier.cache.hit': isCached };
      const lookups = telemetry.metrics.cacheRequests.of(cache);
      info = { attributes, spanAttributes: { ...attributes, ...cache }, lookups };
      known.set(key, info);
    }
    return info;
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
