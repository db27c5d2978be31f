import type { OpenFile } from '../file/open-version.ts';
import { setResponseHeaders } from './headers.ts';
import type { RequestContext } from './request-context.ts';
import { streamWithSend } from './send-adapter.ts';
import type { StreamPlan } from './send-body.ts';
import { streamFile } from './stream-file.ts';

/** Sends the headers and streams the body from an open file, which it closes in every case. */
export function streamResponse(request: RequestContext, plan: StreamPlan, file: OpenFile): void {
  try {
    if (plan.tail === undefined) streamWithSend(request, plan, file);
    else {
      setResponseHeaders(request.res, plan.status, plan.headers);
      streamFile(file, plan, request.res, request.context.buffers);
    }
  } catch (error) {
    file.close();
    request.next(error);
  }
}
