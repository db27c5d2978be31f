import type { IncomingMessage, ServerResponse } from 'node:http';
import type { NextFunction } from '../../types/connect.ts';
import { createChannel, type EventChannel, Observed } from '../diagnostics/channel.ts';

/** The end of a request for a file. */
interface StaticResult {
  /** The status of the response; undefined if the request was passed to `next`. */
  readonly status: number | undefined;
  /** Whether the client disconnected before it had the whole response. */
  readonly aborted: boolean;
}

/** Published when a request for a file arrives. Subscribers may observe how it ends. */
export class ObservedRequest extends Observed<StaticResult> {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** Whether the file was in the cache. Its file on disk may be checked all the same. */
  readonly isCached: boolean;

  constructor(req: IncomingMessage, res: ServerResponse, isCached: boolean) {
    super();
    this.req = req;
    this.res = res;
    this.isCached = isCached;
  }
}

export const staticRequests: EventChannel<ObservedRequest> = createChannel('static:request');

/** Publishes a request. Returns the `next` function to use for it. */
export function observeRequest(
  { req, res, next }: { req: IncomingMessage; res: ServerResponse; next: NextFunction },
  isCached: boolean,
): NextFunction {
  const observed = new ObservedRequest(req, res, isCached);
  staticRequests.publish(observed);
  const onClose = (): void => observed.end({ status: res.statusCode, aborted: !res.writableFinished });
  res.once('close', onClose);
  return (error) => {
    res.off('close', onClose);
    observed.end({ status: undefined, aborted: false });
    next(error);
  };
}
