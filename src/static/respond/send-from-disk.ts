import { toError } from '../../http/reply/http-error.ts';
import { isQueued, whenFirst } from '../../http/reply/response-state.ts';
import type { CircuitBreaker } from '../cache/circuit-breaker.ts';
import { fillBody } from '../cache/fill-body.ts';
import { isNotFoundError, isResourceError, isStaleError } from '../disk/file-errors.ts';
import { type OpenFile, openVersion, openVersionSync, readVersionSync } from '../disk/open-version.ts';
import type { ThreadsOf } from '../disk/thread-share.ts';
import type { BufferPool } from '../stream/buffer-pool.ts';
import { isFinished } from './headers.ts';
import type { RequestContext, StreamPlan } from './request-context.ts';
import { sendPlanned } from './send-body.ts';
import { sendUnavailable } from './send-status.ts';
import { streamResponse } from './stream-response.ts';

// Bodies up to this size are read on the event loop, if the file may be checked there.
const MAX_SYNC_BYTES = 64 * 1024;

/** The parts of a handler that only the files of a directory need. */
interface DiskServices {
  readonly breaker: CircuitBreaker;
  readonly buffers: BufferPool;
  readonly threadsOf: ThreadsOf;
}

/** Sends bodies that are not in memory. Opens exactly the version that the headers describe. */
export class DiskSender {
  readonly #disk: DiskServices;

  constructor(disk: DiskServices) {
    this.#disk = disk;
  }

  /** @param retry - called if the file has changed before anything was sent */
  send(request: RequestContext, plan: StreamPlan, retry: () => void): void {
    if (isQueued(request.res)) {
      whenFirst(request.res, () => this.send(request, plan, retry));
      return;
    }
    const { entry } = request;
    const now = performance.now();
    if (entry.isCheckedSync && this.#disk.breaker.allows(now)) {
      this.#sendSync(request, plan, now, retry);
      return;
    }
    const { representation } = plan;
    const threads = this.#disk.threadsOf(entry.urlPath, representation.version.dev);
    openVersion(representation, threads, (error, file) => {
      if (isFinished(request.res)) file?.close();
      else if (file !== undefined) this.#stream(request, plan, file, retry);
      else settleFailure(request, error, retry);
    });
  }

  /**
   * Opens the file on the event loop, and reads it there if it is small: both take microseconds unless a disk
   * has to be read.
   */
  #sendSync(request: RequestContext, plan: StreamPlan, startedAt: number, retry: () => void): void {
    const { representation } = plan;
    let file: OpenFile | undefined;
    let body: Buffer | undefined;
    try {
      file = openVersionSync(representation);
      const isSmall = representation.metadata.size <= MAX_SYNC_BYTES;
      if (file !== undefined && isSmall) body = readVersionSync(file);
      this.#disk.breaker.record(startedAt, performance.now());
      if (file !== undefined && !isSmall) {
        this.#stream(request, plan, file, retry);
        return;
      }
    } catch (error) {
      file?.close();
      settleFailure(request, error, retry);
      return;
    }
    file?.close();
    if (body === undefined) retry();
    else {
      request.context.cache.keepBody(request.entry, representation, body);
      sendPlanned(request, plan, body);
    }
  }

  #stream(request: RequestContext, plan: StreamPlan, file: OpenFile, retry: () => void): void {
    const { entry, context } = request;
    const { representation } = plan;
    fillBody(context.cache, entry, { representation, threads: file.threads }, context.settings.cache);
    streamResponse(request, plan, file, { buffers: this.#disk.buffers, retry });
  }
}

/** Continues after a failed open; undefined as `error` means that the file has changed. */
function settleFailure(request: RequestContext, error: unknown, retry: () => void): void {
  if (isResourceError(error)) sendUnavailable(request);
  else if (error === undefined || isNotFoundError(error) || isStaleError(error)) retry();
  else request.next(toError(error));
}
