import { fstat, fstatSync, read, readSync, type Stats } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { basename, dirname } from 'node:path';
import { setImmediate } from 'node:timers';
import { packages } from '../diagnostics/packages.ts';
import {
  destroyIncomplete,
  isHttp2,
  isQueued,
  isResourceError,
  mayReuseChunks,
  ResponseWriter,
  toError,
  whenFirst,
} from '../http/reply.ts';
import type { CircuitBreaker } from './check.ts';
import { type OpenVersion, openVersion, openVersionSync, readVersionSync } from './open-file.ts';
import {
  type FileRequest,
  failResponse,
  isClientGone,
  isFinished,
  type RequestTriple,
  sendOutOfResources,
} from './request.ts';
import { restoreHead, type Section, type StreamPlan, sendPlanned, setResponseHeaders } from './respond.ts';
import { isNotFoundError, isStaleError } from './root.ts';
import { type OpenFileVersion, sameContent } from './version.ts';

// Files up to this size are read on the event loop, if they may be checked there: one read from the kernel's memory
// costs less than a thread pool operation and its wake-ups.
const MAX_SYNC_BYTES = 512 * 1024;
// Files up to this size are read into new memory, which is not released.
const MAX_NEW_BYTES = 64 * 1024;

/** Memory for a whole file, which may have to be released after the response. */
interface BodyMemory {
  readonly body: Buffer;
  readonly release: (() => void) | undefined;
}

/** Sends bodies that are not in memory. Opens exactly the version that the headers describe. */
export class DiskSender {
  readonly breaker: CircuitBreaker;
  readonly buffers: BufferPool;

  constructor(breaker: CircuitBreaker, buffers: BufferPool) {
    this.breaker = breaker;
    this.buffers = buffers;
  }

  /** @param retry - called if the file has changed before anything was sent */
  send(request: FileRequest, plan: StreamPlan, retry: () => void): void {
    if (isQueued(request.res)) {
      whenFirst(request.res, () => this.send(request, plan, retry));
      return;
    }
    const { entry } = request;
    const now = performance.now();
    if (entry.isCheckedSync && this.breaker.allows(now)) {
      this.#sendSync(request, plan, now, retry);
      return;
    }
    openVersion(plan.representation, (error, opened) => {
      if (isFinished(request.res)) opened?.file.close();
      else if (opened !== undefined) this.#stream(request, plan, opened, retry);
      else settleFailure(request, error, retry);
    });
  }

  /**
   * Opens the file on the event loop, and reads it there if it is small: both take microseconds unless a disk
   * has to be read.
   */
  #sendSync(request: FileRequest, plan: StreamPlan, startedAt: number, retry: () => void): void {
    const { representation } = plan;
    let opened: OpenVersion | undefined;
    let memory: BodyMemory | undefined;
    let isRead = false;
    try {
      opened = openVersionSync(representation);
      memory = opened && this.#acquire(request.res, plan);
      if (opened !== undefined && memory !== undefined) isRead = readVersionSync(opened, memory.body);
      this.breaker.record(startedAt, performance.now());
      if (opened !== undefined && memory === undefined) {
        this.#stream(request, plan, opened, retry);
        return;
      }
    } catch (error) {
      memory?.release?.();
      opened?.file.close();
      settleFailure(request, error, retry);
      return;
    }
    opened?.file.close();
    if (memory !== undefined && isRead) sendRead(request, plan, memory);
    else {
      memory?.release?.();
      retry();
    }
  }

  /** Returns memory for a whole file; undefined if the file has to be streamed. */
  #acquire(res: ServerResponse, { representation, sections: [section] }: StreamPlan): BodyMemory | undefined {
    const { size } = representation.metadata;
    if (size <= MAX_NEW_BYTES) return { body: Buffer.allocUnsafeSlow(size), release: undefined };
    const isWhole = section?.start === 0 && section.end === size - 1;
    if (size > MAX_SYNC_BYTES || !isWhole || !mayReuseChunks(res)) return undefined;
    const { buffers } = this;
    const buffer = buffers.acquire();
    const release = (): void => buffers.release(buffer);
    if (size <= buffer.length) return { body: buffer.subarray(0, size), release };
    release();
    return undefined;
  }

  /** Sends the headers and streams the body from an open file, which is closed in every case. */
  #stream(request: FileRequest, plan: StreamPlan, opened: OpenVersion, retry: () => void): void {
    const { res, next } = request;
    const { status, headers, sections, tail } = plan;
    const head = { status: res.statusCode, headers: res.getHeaders() };
    const onNothingSent = (error: Error | undefined): void => {
      restoreHead(res, head);
      if (error === undefined) retry();
      else next(error);
    };
    const stream = (): void => new FileStream(opened, plan, res, this, onNothingSent).start();
    const [section] = sections;
    const takesSeveralReads =
      tail === undefined && section !== undefined && section.end - section.start >= MAX_WITHOUT_SEND;
    try {
      if (takesSeveralReads) startWithSend(request, plan, opened, stream);
      else {
        setResponseHeaders(res, status, headers);
        stream();
      }
    } catch (error) {
      opened.file.close();
      next(error);
    }
  }
}

function sendRead(request: FileRequest, plan: StreamPlan, { body, release }: BodyMemory): void {
  const { res } = request;
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
function settleFailure(request: FileRequest, error: unknown, retry: () => void): void {
  if (isResourceError(error)) sendOutOfResources(request, error);
  else if (error === undefined || isNotFoundError(error) || isStaleError(error)) retry();
  else request.next(toError(error));
}

// A body of one read is sent without `send`, whose objects would be a tenth of the cost.
const MAX_WITHOUT_SEND = 512 * 1024;

// The only file that uses the package `send`, for the framing of a single body that takes several reads:
// `send` computes the range of the stream, sets Content-Length and Content-Range, and starts the response.
// The rest is replaced: `send` would stat the path again, later than our check, and would stream from a
// second descriptor. Its preconditions, ranges, ETag and dates are switched off because they have been
// evaluated before.

// The members of a request that `send` reads. Without headers it finds neither conditions nor a range.
const REQUEST = { method: 'GET', headers: {} } as IncomingMessage;

/** Starts a response with the whole file or one range of it through `send`, which calls `stream` for the body. */
function startWithSend(
  { res, next }: RequestTriple,
  plan: StreamPlan,
  { file }: OpenVersion,
  stream: () => void,
): void {
  const { realPath, metadata } = plan.representation;
  const [range] = plan.sections;
  const sendStream = packages.send()(REQUEST, `/${encodeURIComponent(basename(realPath))}`, {
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

/**
 * Reads a file and writes it to a response, one buffer at a time, so that a slow client costs one buffer. Closes the file in
 * every case. Before the last bytes are sent, another `fstat` confirms the version. If the file has changed, the connection
 * is destroyed, so that the client does not accept a mixture of two versions as a complete response. A file that has
 * grown, such as a log, is sent with its old length. A chunk of a local file may be read on the event loop, where a copy
 * from the kernel's memory costs less than a thread pool operation and its wake-ups.
 */
class FileStream {
  readonly #opened: OpenVersion;
  readonly #plan: StreamPlan;
  readonly #res: ServerResponse;
  readonly #disk: DiskSender;
  /** Called instead of sending anything, when reading failed (`error`) or the file has changed (undefined). */
  readonly #onNothingSent: (error: Error | undefined) => void;
  readonly #writer: ResponseWriter;
  #sectionIndex = 0;
  #position: number;
  #memory: Buffer | undefined;
  /** Whether an operation on the descriptor is running, during which it must stay open. */
  #isBusy = false;
  #isStopped = false;
  /** Middleware that collects the body sends the headers later. */
  #hasWritten = false;

  constructor(
    opened: OpenVersion,
    plan: StreamPlan,
    res: ServerResponse,
    disk: DiskSender,
    onNothingSent: (error: Error | undefined) => void,
  ) {
    this.#opened = opened;
    this.#plan = plan;
    this.#res = res;
    this.#disk = disk;
    this.#onNothingSent = onNothingSent;
    this.#position = plan.sections[0]?.start ?? 0;
    this.#writer = new ResponseWriter(res, (error) => {
      if (error) this.#stop();
      else this.#readNext();
    });
  }

  start(): void {
    this.#res.once('close', this.#stop);
    if (isClientGone(this.#res)) this.#stop();
    else this.#startSection(this.#plan.sections[0] as Section);
  }

  readonly #stop = (): void => {
    if (this.#isStopped) return;
    this.#isStopped = true;
    if (!this.#isBusy) this.#release();
  };

  #release(): void {
    this.#releaseMemory();
    this.#opened.file.close();
  }

  #releaseMemory(): void {
    if (this.#memory !== undefined) this.#disk.buffers.release(this.#memory);
    this.#memory = undefined;
  }

  /** A stale handle means that the file was replaced on the server of a network file system. */
  #fail(cause: Error | null): void {
    const error = cause === null || isStaleError(cause) ? undefined : cause;
    if (this.#hasWritten || this.#res.headersSent) {
      destroyIncomplete(this.#res, error);
      this.#stop();
      return;
    }
    this.#res.off('close', this.#stop);
    this.#stop();
    this.#onNothingSent(error);
  }

  #startSection({ start, before }: Section): void {
    this.#position = start;
    if (before === undefined || this.#sectionIndex === 0) this.#readNext();
    else this.#write(() => this.#writer.write(before));
  }

  /** Not if middleware takes the chunks: it may request the next one before its `write` returns. */
  #mayReadOnLoop(): boolean {
    return (
      this.#writer.canReuseChunks && this.#opened.file.isLocal && this.#disk.breaker.allows(performance.now())
    );
  }

  #readNext(): void {
    if (!this.#mayReadOnLoop()) this.#readOn();
    else {
      // Another transfer may use this memory meanwhile, while it is in the CPU's cache.
      this.#releaseMemory();
      turnBudget.run(this.#readOn);
    }
  }

  readonly #readOn = (): void => {
    if (this.#isStopped) return;
    const { sections } = this.#plan;
    const section = sections[this.#sectionIndex] as Section;
    if (this.#position <= section.end) {
      this.#readChunk(section);
      return;
    }
    const nextSection = sections[++this.#sectionIndex];
    if (nextSection !== undefined) this.#startSection(nextSection);
  };

  #readChunk(section: Section): void {
    const { buffers, breaker } = this.#disk;
    this.#memory ??= isHttp2(this.#res) ? buffers.acquireSmall() : buffers.acquire();
    const memory = this.#writer.canReuseChunks ? this.#memory : Buffer.allocUnsafeSlow(this.#memory.length);
    const length = Math.min(memory.length, section.end - this.#position + 1);
    const done = (error: Error | null, bytesRead: number): void => {
      if (this.#isStopped) this.#release();
      // Without bytes, the file was truncated and ends before the promised length.
      else if (error !== null || bytesRead === 0) this.#fail(error);
      else this.#onRead(section, bytesRead === memory.length ? memory : memory.subarray(0, bytesRead));
    };
    if (!this.#mayReadOnLoop()) {
      this.#isBusy = true;
      read(this.#opened.file.fd, memory, 0, length, this.#position, (error, bytesRead) => {
        this.#isBusy = false;
        done(error, bytesRead);
      });
      return;
    }
    const startedAt = performance.now();
    const bytesRead = resultOf(() => readSync(this.#opened.file.fd, memory, 0, length, this.#position));
    breaker.record(startedAt, performance.now());
    if (bytesRead instanceof Error) done(bytesRead, 0);
    else done(null, bytesRead);
  }

  #onRead(section: Section, bytes: Buffer): void {
    this.#position += bytes.length;
    const isLast = this.#position > section.end && this.#sectionIndex === this.#plan.sections.length - 1;
    if (isLast) this.#confirmVersion(bytes);
    else this.#write(() => this.#writer.write(bytes));
  }

  /** The bytes before the first section are written together with its first chunk. Middleware may have replaced `write`. */
  #write(write: () => void): void {
    const isFirst = !this.#hasWritten;
    const before = isFirst ? this.#plan.sections[0]?.before : undefined;
    this.#hasWritten = true;
    try {
      if (before !== undefined) this.#res.write(before);
      write();
    } catch (error) {
      this.#hasWritten = !isFirst;
      this.#fail(toError(error));
    }
  }

  #confirmVersion(lastBytes: Buffer): void {
    const { file, version } = this.#opened;
    const done = (error: Error | null, current: OpenFileVersion | undefined): void => {
      if (this.#isStopped) this.#release();
      else if (current !== undefined && (current.size > version.size || sameContent(version, current)))
        this.#finish(lastBytes);
      else this.#fail(error);
    };
    if (!file.isLocal) {
      this.#isBusy = true;
      fstat(file.fd, { bigint: true }, (error, stats) => {
        this.#isBusy = false;
        done(error, stats);
      });
      return;
    }
    // It fails if the kernel has shut the file system down after a failure of its disk.
    const stats = resultOf(() => fstatSync(file.fd, { bigint: true }));
    if (stats instanceof Error) done(stats, undefined);
    else done(null, stats);
  }

  #finish(lastBytes: Buffer): void {
    const { tail } = this.#plan;
    this.#write(() => {
      if (tail !== undefined) this.#res.write(lastBytes);
      this.#res.end(tail ?? lastBytes, this.#stop);
    });
  }
}

function resultOf<T>(work: () => T): T | Error {
  try {
    return work();
  } catch (error) {
    return toError(error);
  }
}

// Chunks that are read in one turn of the event loop. Reading and writing 4 MiB take about 2 ms.
const CHUNKS_PER_TURN = 8;

/** Limits the work of transfers in one turn of the event loop, so that many fast clients do not delay other requests. */
class TurnBudget {
  #used = 0;
  readonly #waiting: (() => void)[] = [];

  /** Calls `readChunk` now, or in a later turn if the budget of this one is used. */
  run(readChunk: () => void): void {
    if (this.#used >= CHUNKS_PER_TURN) {
      this.#waiting.push(readChunk);
      return;
    }
    if (this.#used === 0) setImmediate(this.#startTurn);
    this.#used++;
    readChunk();
  }

  readonly #startTurn = (): void => {
    this.#used = 0;
    for (let count = Math.min(this.#waiting.length, CHUNKS_PER_TURN); count > 0; count--) {
      this.run(this.#waiting.shift() as () => void);
    }
  };
}

/** The budget of all middlewares of the process together: they share the event loop. */
const turnBudget: TurnBudget = new TurnBudget();

// Large buffers need fewer calls of the thread pool; small ones are used beyond the capacity and over HTTP/2.
const LARGE = 512 * 1024;
const SMALL = 64 * 1024;

/**
 * Read buffers for transfers. At most `capacity` bytes of large ones are in use or kept for reuse, and a quarter of it when no
 * transfer runs: a new buffer costs more than reading into it, because the kernel has to clear its pages first.
 */
export class BufferPool {
  readonly #capacity: number;
  readonly #idle: Buffer[] = [];
  #inUse = 0;

  constructor(capacity: number) {
    this.#capacity = Math.floor(capacity / LARGE);
  }

  /** Returns a buffer for one transfer, which must release it. */
  acquire(): Buffer {
    if (this.#inUse === this.#capacity) return this.acquireSmall();
    this.#inUse++;
    return this.#idle.pop() ?? Buffer.allocUnsafeSlow(LARGE);
  }

  /** Returns a small buffer, which need not be released. */
  acquireSmall(): Buffer {
    return Buffer.allocUnsafeSlow(SMALL);
  }

  release(buffer: Buffer): void {
    if (buffer.length === SMALL) return;
    this.#inUse--;
    this.#idle.push(buffer);
    const max = this.#inUse === 0 ? this.#capacity / 4 : this.#capacity - this.#inUse;
    if (this.#idle.length > max) this.#idle.length = Math.floor(max);
  }
}
