// The only file that uses the package `send`, for the framing of a single body that takes several reads:
// `send` computes the range of the stream, sets Content-Length and Content-Range, and starts the response.
// The rest is replaced: `send` would stat the path again, later than our check, and would stream from a
// second descriptor. Its preconditions, ranges, ETag and dates are switched off because they have been
// evaluated before.
import type { Stats } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { basename, dirname } from 'node:path';
import { toError } from '../../http/reply/http-error.ts';
import type { OpenFile } from '../disk/open-version.ts';
import { isFinished, setResponseHeaders } from './headers.ts';
import type { RequestTriple, StreamPlan } from './request-context.ts';

type Send = typeof import('send');

// The members of a request that `send` reads. Without headers it finds neither conditions nor a range.
const REQUEST = { method: 'GET', headers: {} } as IncomingMessage;

// Loading `send` takes longer than loading the rest of `espalier/static`, and most responses come from
// memory.
let send: Send | undefined;

/**
 * Starts a response with the whole file or one range of it through `send`, which calls `stream` for the body.
 */
export function startWithSend(
  request: RequestTriple,
  plan: StreamPlan,
  file: OpenFile,
  stream: () => void,
): void {
  if (send !== undefined) {
    start(send, request, plan, file, stream);
    return;
  }
  const fail = (error: unknown): void => {
    file.close();
    request.next(toError(error));
  };
  import('send')
    .then((module) => {
      send = module.default;
      if (isFinished(request.res)) file.close();
      else start(send, request, plan, file, stream);
    })
    .catch(fail);
}

function start(
  createStream: Send,
  { res, next }: RequestTriple,
  plan: StreamPlan,
  file: OpenFile,
  stream: () => void,
): void {
  const { realPath, metadata } = plan.representation;
  const [range] = plan.sections;
  const sendStream = createStream(REQUEST, `/${encodeURIComponent(basename(realPath))}`, {
    root: dirname(realPath),
    dotfiles: 'allow',
    acceptRanges: false,
    cacheControl: false,
    etag: false,
    lastModified: false,
    ...(range === undefined ? {} : { start: range.start, end: range.end }),
  });
  sendStream.sendFile = (path) => {
    setResponseHeaders(res, plan.status, plan.headers);
    sendStream.send(path, { size: metadata.size } as Stats);
  };
  sendStream.stream = stream;
  sendStream.on('error', (error) => {
    file.close();
    next(error);
  });
  sendStream.pipe(res);
}
