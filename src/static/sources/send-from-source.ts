import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { StaticSource } from '../../../types/sources.ts';
import type { ByteRange } from '../../http/conditions/ranges.ts';
import { toError } from '../../http/reply/http-error.ts';
import { destroyIncomplete, isQueued, whenFirst } from '../../http/reply/response-state.ts';
import { isResourceError } from '../../http/reply/system-error.ts';
import { isNotFoundError } from '../disk/file-errors.ts';
import { isFinished, setResponseHeaders } from '../respond/headers.ts';
import type { RequestContext, StreamPlan } from '../respond/request-context.ts';
import { sendOutOfResources } from '../respond/send-status.ts';
import { isAborted } from '../stream/is-aborted.ts';
import { destroyBytes } from './checked-source.ts';
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
      else if (isResourceError(error)) sendOutOfResources(request, error);
      else request.next(toError(error));
    },
  );
}

async function start(source: StaticSource, { res }: RequestContext, plan: StreamPlan): Promise<void> {
  const chunks = bodyOf(source, plan, res);
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
  try {
    await pipeline(Readable.from(rest(), { objectMode: false }), res, { end: false });
    res.end();
  } catch (error) {
    // The client must not take the response for complete.
    if (!res.headersSent) throw error;
    destroyIncomplete(res, isAborted(res) || error instanceof ChangedError ? undefined : error);
  }
}

async function* bodyOf(
  source: StaticSource,
  { representation, sections, tail }: StreamPlan,
  res: ServerResponse,
): AsyncGenerator<Uint8Array, undefined> {
  const { path } = representation;
  for (const [index, { start, end, before }] of sections.entries()) {
    let remaining = end - start + 1;
    let prefix = before;
    if (remaining <= 0) continue;
    for await (const chunk of openFor(res, source, path, { start, end })) {
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

/** Opens a file for a response, and closes it when the client disconnects, also while the source sends nothing. */
async function* openFor(
  res: ServerResponse,
  source: StaticSource,
  path: string,
  range: ByteRange,
): AsyncGenerator<Uint8Array> {
  const bytes = await source.open(path, range);
  const destroy = (): void => destroyBytes(bytes);
  if (isAborted(res)) {
    destroy();
    return;
  }
  res.once('close', destroy);
  try {
    yield* chunksOf(bytes);
  } finally {
    res.off('close', destroy);
  }
}

async function verify(source: StaticSource, representation: StreamPlan['representation']): Promise<void> {
  if (!(representation instanceof SourceRepresentation)) return;
  if (versionOf(await source.stat(representation.path)) !== representation.sourceVersion)
    throw new ChangedError();
}
