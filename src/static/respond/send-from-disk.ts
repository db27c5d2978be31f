import type { ServerResponse } from 'node:http';
import { toError } from '../../http/reply/http-error.ts';
import { isQueued, whenFirst } from '../../http/reply/response-state.ts';
import { mayReuseChunks } from '../../http/reply/response-writer.ts';
import { isResourceError } from '../../http/reply/system-error.ts';
import type { CircuitBreaker } from '../cache/circuit-breaker.ts';
import { fillBody } from '../cache/fill-body.ts';
import { isNotFoundError, isStaleError } from '../disk/file-errors.ts';
import { type OpenFile, openVersion, openVersionSync, readVersionSync } from '../disk/open-version.ts';
import type { ThreadsOf } from '../disk/thread-share.ts';
import type { BufferPool } from '../stream/buffer-pool.ts';
import { failResponse, isFinished } from './headers.ts';
import type { RequestContext, StreamPlan } from './request-context.ts';
import { sendPlanned } from './send-body.ts';
import { sendOutOfResources } from './send-status.ts';
import { streamResponse } from './stream-response.ts';

// Files up to this size are read on the event loop, if they may be checked there: one read from the kernel's memory
// costs less than a thread pool operation and its wake-ups.
const MAX_SYNC_BYTES = 512 * 1024;
// Files up to this size are read into new memory, and kept there if the cache has room.
const MAX_KEPT_BYTES = 64 * 1024;

/** Memory for a whole file, which may have to be released after the response. */
interface BodyMemory {
  readonly body: Buffer;
  readonly release: (() => void) | undefined;
}

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
    let memory: BodyMemory | undefined;
    let isRead = false;
    try {
      file = openVersionSync(representation);
      memory = file && this.#acquire(request.res, plan);
      if (file !== undefined && memory !== undefined) isRead = readVersionSync(file, memory.body);
      this.#disk.breaker.record(startedAt, performance.now());
      if (file !== undefined && memory === undefined) {
        this.#stream(request, plan, file, retry);
        return;
      }
    } catch (error) {
      memory?.release?.();
      file?.close();
      settleFailure(request, error, retry);
      return;
    }
    file?.close();
    if (memory !== undefined && isRead) sendRead(request, plan, memory);
    else {
      memory?.release?.();
      retry();
    }
  }

  /** Returns memory for a whole file; undefined if the file has to be streamed. */
  #acquire(res: ServerResponse, { representation, sections: [section] }: StreamPlan): BodyMemory | undefined {
    const { size } = representation.metadata;
    if (size <= MAX_KEPT_BYTES) return { body: Buffer.allocUnsafeSlow(size), release: undefined };
    const isWhole = section?.start === 0 && section.end === size - 1;
    if (size > MAX_SYNC_BYTES || !isWhole || !mayReuseChunks(res)) return undefined;
    const { buffers } = this.#disk;
    const buffer = buffers.acquire();
    const release = (): void => buffers.release(buffer);
    if (size <= buffer.length) return { body: buffer.subarray(0, size), release };
    release();
    return undefined;
  }

  #stream(request: RequestContext, plan: StreamPlan, file: OpenFile, retry: () => void): void {
    const { entry, context } = request;
    const { representation } = plan;
    fillBody(context.cache, entry, { representation, threads: file.threads }, context.settings.cache);
    const { breaker, buffers } = this.#disk;
    streamResponse(request, plan, file, { breaker, buffers, retry });
  }
}

/** Sends a body that was read on the event loop. */
function sendRead(request: RequestContext, plan: StreamPlan, { body, release }: BodyMemory): void {
  const { entry, context, res } = request;
  const { representation } = plan;
  if (body.length <= MAX_KEPT_BYTES) context.cache.keepBody(entry, representation, body);
  else fillBody(context.cache, entry, { representation, threads: undefined }, context.settings.cache);
  let isSent = false;
  try {
    sendPlanned(request, plan, body);
    isSent = true;
  } catch (error) {
    // Middleware that has replaced a method of the response has thrown.
    failResponse(request, error);
  }
  if (release === undefined) return;
  // The next body is read into memory that is still in the CPU's cache if the kernel has taken all bytes of this one.
  if (isSent && res.writableLength === 0) release();
  else res.once('close', release);
}

/** Continues after a failed open; undefined as `error` means that the file has changed. */
function settleFailure(request: RequestContext, error: unknown, retry: () => void): void {
  if (isResourceError(error)) sendOutOfResources(request, error);
  else if (error === undefined || isNotFoundError(error) || isStaleError(error)) retry();
  else request.next(toError(error));
}
