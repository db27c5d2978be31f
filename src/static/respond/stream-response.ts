import type { CircuitBreaker } from '../cache/circuit-breaker.ts';
import type { OpenFile } from '../disk/open-version.ts';
import type { BufferPool } from '../stream/buffer-pool.ts';
import { ContentVerifier } from '../stream/content-verifier.ts';
import { FileStream } from '../stream/stream-file.ts';
import { restoreHead, setResponseHeaders } from './headers.ts';
import type { RequestContext, StreamPlan } from './request-context.ts';
import { startWithSend } from './send-adapter.ts';

// A body of one read is sent without `send`, whose objects would be a tenth of the cost.
const MAX_WITHOUT_SEND = 512 * 1024;

interface StreamServices {
  readonly breaker: CircuitBreaker;
  readonly buffers: BufferPool;
  /** Called if the file has changed before anything was sent. */
  readonly retry: () => void;
}

/**
 * Sends the headers and streams the body from an open file, which it closes in every case.
 */
export function streamResponse(
  request: RequestContext,
  plan: StreamPlan,
  file: OpenFile,
  { breaker, buffers, retry }: StreamServices,
): void {
  const { res, next } = request;
  const { settings } = request.context;
  const head = { status: res.statusCode, headers: res.getHeaders() };
  const verifier = new ContentVerifier(plan.representation, settings.etag);
  const onNothingSent = (error: Error | undefined): void => {
    restoreHead(res, head);
    if (error === undefined) retry();
    else next(error);
  };
  const stream = (): void =>
    new FileStream(file, plan, res, { breaker, buffers, verifier, onNothingSent }).start();
  try {
    if (plan.tail === undefined && lengthOf(plan) > MAX_WITHOUT_SEND)
      startWithSend(request, plan, file, stream);
    else {
      setResponseHeaders(res, plan.status, plan.headers);
      stream();
    }
  } catch (error) {
    file.close();
    next(error);
  }
}

/** Bytes of a body of one section. */
function lengthOf({ sections: [section] }: StreamPlan): number {
  return section === undefined ? 0 : section.end - section.start + 1;
}
