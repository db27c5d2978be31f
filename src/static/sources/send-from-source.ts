import { pipeline, Readable } from 'node:stream';
import type { StaticSource } from '../../../types/sources.ts';
import { toError } from '../../http/reply/http-error.ts';
import { isQueued, whenFirst } from '../../http/reply/response-state.ts';
import { isNotFoundError, isResourceError } from '../disk/file-errors.ts';
import { isFinished, setResponseHeaders } from '../respond/headers.ts';
import type { RequestContext, StreamPlan } from '../respond/request-context.ts';
import { sendUnavailable } from '../respond/send-status.ts';
import { chunksOf } from './read-bytes.ts';
import { versionOf } from './resolve-source-file.ts';
import { SourceRepresentation } from './source-representation.ts';

class ChangedError extends Error {}

/**
 * Streams a body from a source. It sends the headers after it has read the first bytes. The last bytes are
 * sent only if the file has not changed meanwhile, otherwise the connection is destroyed.
 *
 * @param retry - called if the file has changed before anything was sent
 */
export function sendFromSource(
  source: StaticSource,
  request: RequestContext,
  plan: StreamPlan,
  retry: () => void,
): void {
  const { res } = request;
  if (isQueued(res)) {
    whenFirst(res, () => sendFromSource(source, request, plan, retry));
    return;
  }
  start(source, request, plan).then(
    () => {},
    (error: unknown) => {
      if (isFinished(res)) return;
      if (error instanceof ChangedError || isNotFoundError(error)) retry();
      else if (isResourceError(error)) sendUnavailable(request);
      else request.next(toError(error));
    },
  );
}

async function start(source: StaticSource, { res }: RequestContext, plan: StreamPlan): Promise<void> {
  const chunks = bodyOf(source, plan);
  const first = await chunks.next();
  if (isFinished(res)) {
    await chunks.return(undefined);
    return;
  }
  setResponseHeaders(res, plan.status, plan.headers);
  const rest = async function* (): AsyncGenerator<Uint8Array> {
    try {
      if (first.done !== true) yield first.value;
      yield* chunks;
    } finally {
      await chunks.return(undefined);
    }
  };
  // An error destroys the response, so that the client does not take it for complete.
  pipeline(Readable.from(rest(), { objectMode: false }), res, () => {});
}

async function* bodyOf(
  source: StaticSource,
  { representation, sections, tail }: StreamPlan,
): AsyncGenerator<Uint8Array, undefined> {
  const { path } = representation;
  for (const [index, { start, end, before }] of sections.entries()) {
    let remaining = end - start + 1;
    let prefix = before;
    if (remaining <= 0) continue;
    for await (const chunk of chunksOf(await source.open(path, { start, end }))) {
      remaining -= chunk.length;
      if (remaining < 0) throw new ChangedError();
      if (remaining === 0 && index === sections.length - 1) await verify(source, representation);
      if (prefix !== undefined) yield prefix;
      prefix = undefined;
      yield chunk;
    }
    if (remaining > 0) throw new ChangedError();
  }
  if (tail !== undefined) yield tail;
  return undefined;
}

async function verify(source: StaticSource, representation: StreamPlan['representation']): Promise<void> {
  if (!(representation instanceof SourceRepresentation)) return;
  if (versionOf(await source.stat(representation.path)) !== representation.sourceVersion)
    throw new ChangedError();
}
