import { createHash, type Hash } from 'node:crypto';
import {
  close,
  closeSync,
  constants,
  fstat,
  fstatSync,
  open,
  openSync,
  read,
  readSync,
  type Stats,
} from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { basename, dirname } from 'node:path';
import { setImmediate } from 'node:timers';
import type { ByteRange } from '../http/conditions.ts';
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
import { type CircuitBreaker, fillBody } from './check.ts';
import type { StaticSettings } from './options.ts';
import {
  failResponse,
  isAborted,
  isFinished,
  restoreHead,
  sendOutOfResources,
  setResponseHeaders,
} from './reply.ts';
import { etagForCoding, type Representation } from './representation.ts';
import { type RequestContext, type RequestTriple, type StreamPlan, sendPlanned } from './respond.ts';
import { isNotFoundError, isStaleError } from './root.ts';
import { inThread, runInThread, type ThreadShare, type ThreadsOf } from './threads.ts';
import {
  etagOfFile,
  type FileVersion,
  hashRanges,
  type OpenFileVersion,
  sameContent,
  sameVersion,
} from './version.ts';

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
function streamResponse(
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

// The only file that uses the package `send`, for the framing of a single body that takes several reads:
// `send` computes the range of the stream, sets Content-Length and Content-Range, and starts the response.
// The rest is replaced: `send` would stat the path again, later than our check, and would stream from a
// second descriptor. Its preconditions, ranges, ETag and dates are switched off because they have been
// evaluated before.

type Send = typeof import('send');

// The members of a request that `send` reads. Without headers it finds neither conditions nor a range.
const REQUEST = { method: 'GET', headers: {} } as IncomingMessage;

// Loading `send` takes longer than loading the rest of `espalier/static`, and most responses come from
// memory.
let send: Send | undefined;

/**
 * Starts a response with the whole file or one range of it through `send`, which calls `stream` for the body.
 */
function startWithSend(request: RequestTriple, plan: StreamPlan, file: OpenFile, stream: () => void): void {
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

/** A range of the file, and the bytes that precede it in the response. */
export interface Section extends ByteRange {
  readonly before: Buffer | undefined;
}

/** The body of a streamed response. */
export interface StreamedBody {
  readonly sections: readonly Section[];
  /** The last bytes of a multipart body. */
  readonly tail: Buffer | undefined;
}

/** Arguments of a stream in addition to the file, the body and the response. */
interface StreamOptions {
  readonly breaker: CircuitBreaker;
  readonly buffers: BufferPool;
  readonly verifier: ContentVerifier;
  /** Called instead of sending anything, when reading failed (`error`) or the file has changed (undefined). */
  readonly onNothingSent: (error: Error | undefined) => void;
}

/**
 * Reads a file and writes it to a response, one buffer at a time, so that a slow client costs one buffer. Closes the file in
 * every case. Before the last bytes are sent, another `fstat` confirms the version. If the bytes have changed, the connection
 * is destroyed, so that the client does not accept a mixture of two versions as a complete response.
 */
class FileStream {
  readonly #file: OpenFile;
  readonly #body: StreamedBody;
  readonly #res: ServerResponse;
  readonly #options: StreamOptions;
  readonly #writer: ResponseWriter;
  readonly #reader: FileReader;
  #sectionIndex = 0;
  #position: number;
  #isStopped = false;
  /** Middleware that collects the body sends the headers later. */
  #hasWritten = false;

  constructor(file: OpenFile, body: StreamedBody, res: ServerResponse, options: StreamOptions) {
    this.#file = file;
    this.#body = body;
    this.#res = res;
    this.#options = options;
    this.#position = body.sections[0]?.start ?? 0;
    this.#writer = new ResponseWriter(res, (error) => this.#onWritten(error));
    const { canReuseChunks } = this.#writer;
    const isWanted = this.#isWanted;
    this.#reader = new FileReader(file, { ...options, canReuseChunks, isHttp2: isHttp2(res), isWanted });
  }

  start(): void {
    this.#res.once('close', this.#stop);
    if (isAborted(this.#res)) this.#stop();
    else this.#startSection(this.#body.sections[0] as Section);
  }

  readonly #isWanted = (): boolean => !this.#isStopped;

  readonly #stop = (): void => {
    if (this.#isStopped) return;
    this.#isStopped = true;
    if (!this.#reader.isBusy) this.#release();
  };

  #release(): void {
    this.#reader.releaseMemory();
    this.#file.close();
  }

  /** A stale handle means that the file was replaced on the server of a network file system. */
  #fail(cause: Error | undefined): void {
    const error = isStaleError(cause) ? undefined : cause;
    if (this.#hasWritten || this.#res.headersSent) {
      destroyIncomplete(this.#res, error);
      this.#stop();
      return;
    }
    this.#res.off('close', this.#stop);
    this.#stop();
    this.#options.onNothingSent(error);
  }

  #startSection({ start, before }: Section): void {
    this.#position = start;
    if (before === undefined || this.#sectionIndex === 0) this.#readNext();
    else this.#write(() => this.#writer.write(before));
  }

  #onWritten(error: Error | null | undefined): void {
    if (error) this.#stop();
    else this.#readNext();
  }

  #readNext(): void {
    if (!this.#reader.mayReadOnLoop()) this.#readOn();
    else {
      // Another transfer may use this memory meanwhile, while it is in the CPU's cache.
      this.#reader.releaseMemory();
      turnBudget.run(this.#readOn);
    }
  }

  readonly #readOn = (): void => {
    if (this.#isStopped) return;
    const section = this.#body.sections[this.#sectionIndex] as Section;
    if (this.#position <= section.end) {
      this.#readChunk(section);
      return;
    }
    this.#sectionIndex++;
    const nextSection = this.#body.sections[this.#sectionIndex];
    if (nextSection !== undefined) this.#startSection(nextSection);
  };

  #readChunk(section: Section): void {
    this.#reader.read(this.#position, section.end - this.#position + 1, (error, bytes) => {
      if (this.#isStopped) this.#release();
      else if (error !== null) this.#fail(error);
      // The file was truncated and ends before the promised length.
      else if (bytes.length === 0) this.#fail(undefined);
      else this.#onRead(section, bytes);
    });
  }

  #onRead(section: Section, bytes: Buffer): void {
    this.#position += bytes.length;
    const isLast = this.#position > section.end && this.#sectionIndex === this.#body.sections.length - 1;
    if (isLast) {
      this.#confirmVersion(bytes);
      return;
    }
    this.#options.verifier.record(bytes);
    this.#write(() => this.#writer.write(bytes));
  }

  /** The bytes before the first section are written together with its first chunk. Middleware may have replaced `write`. */
  #write(write: () => void): void {
    const isFirst = !this.#hasWritten;
    const before = isFirst ? this.#body.sections[0]?.before : undefined;
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
    this.#reader.readVersion((error, current) => {
      if (this.#isStopped) this.#release();
      else if (current === undefined) this.#fail(error ?? undefined);
      else if (sameContent(this.#file.version, current)) this.#finish(lastBytes);
      else this.#confirmContent(lastBytes, current);
    });
  }

  /** Completes the response although the version has changed, if the promised bytes are unchanged. */
  #confirmContent(lastBytes: Buffer, current: OpenFileVersion): void {
    const { verifier } = this.#options;
    verifier.record(lastBytes);
    const settle = (proceed: () => void): void => {
      if (this.#isStopped) this.#release();
      else proceed();
    };
    const verify = (): Promise<boolean> =>
      verifier.verify(this.#file.fd, current, this.#body.sections, this.#isWanted);
    this.#reader.hold(verify).then(
      (isSame) => settle(() => (isSame ? this.#finish(lastBytes) : this.#fail(undefined))),
      (error: Error) => settle(() => this.#fail(error)),
    );
  }

  #finish(lastBytes: Buffer): void {
    const { tail } = this.#body;
    this.#write(() => {
      if (tail !== undefined) this.#res.write(lastBytes);
      this.#res.end(tail ?? lastBytes, this.#stop);
    });
  }
}

/** Receives the result of `fs.read`. */
type Done = (error: Error | null, bytesRead: number) => void;

/** Receives the bytes that were read: none at the end of the file. */
type OnRead = (error: Error | null, bytes: Buffer) => void;

interface ReaderOptions {
  readonly breaker: CircuitBreaker;
  readonly buffers: BufferPool;
  /** Whether memory may be reused when its bytes are written. */
  readonly canReuseChunks: boolean;
  /** Whether small chunks are read. */
  readonly isHttp2: boolean;
  /** Whether an operation that waits for a thread should still start. */
  readonly isWanted: () => boolean;
}

/**
 * Reads the chunks of one open file, one operation at a time. A chunk of a local file may be read on the event loop,
 * where a copy from the kernel's memory costs less than a thread pool operation and its wake-ups.
 */
class FileReader {
  readonly #file: OpenFile;
  readonly #options: ReaderOptions;
  #memory: Buffer | undefined;
  #isBusy = false;

  constructor(file: OpenFile, options: ReaderOptions) {
    this.#file = file;
    this.#options = options;
  }

  /** Whether an operation on the descriptor is running, during which it must stay open. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Not if middleware takes the chunks: it may request the next one before its `write` returns. */
  mayReadOnLoop(): boolean {
    const { breaker, canReuseChunks } = this.#options;
    return canReuseChunks && this.#file.isLocal && breaker.allows(performance.now());
  }

  /** Reads at most `most` bytes into memory that belongs to the reader until `releaseMemory`. */
  read(position: number, most: number, onRead: OnRead): void {
    const memory = this.#acquireMemory();
    const length = Math.min(memory.length, most);
    const done = (error: Error | null, bytesRead: number): void =>
      onRead(error, bytesRead === memory.length ? memory : memory.subarray(0, bytesRead));
    if (this.mayReadOnLoop()) this.#readOnLoop(memory, length, position, done);
    else this.#readInPool(memory, length, position, done);
  }

  releaseMemory(): void {
    if (this.#memory !== undefined) this.#options.buffers.release(this.#memory);
    this.#memory = undefined;
  }

  #acquireMemory(): Buffer {
    const { buffers, canReuseChunks, isHttp2 } = this.#options;
    this.#memory ??= isHttp2 ? buffers.acquireSmall() : buffers.acquire();
    return canReuseChunks ? this.#memory : Buffer.allocUnsafeSlow(this.#memory.length);
  }

  #readOnLoop(memory: Buffer, length: number, position: number, done: Done): void {
    const startedAt = performance.now();
    let bytesRead = 0;
    let failure: Error | null = null;
    try {
      bytesRead = readSync(this.#file.fd, memory, 0, length, position);
    } catch (error) {
      failure = toError(error);
    }
    this.#options.breaker.record(startedAt, performance.now());
    done(failure, bytesRead);
  }

  #readInPool(memory: Buffer, length: number, position: number, done: Done): void {
    this.#runInPool((release) => {
      read(this.#file.fd, memory, 0, length, position, (error, bytesRead) => {
        release();
        done(error, bytesRead);
      });
    });
  }

  /** Reads the current version of the file. */
  readVersion(onVersion: (error: Error | null, version: OpenFileVersion | undefined) => void): void {
    const { fd, isLocal } = this.#file;
    if (isLocal) {
      statOnLoop(fd, onVersion);
      return;
    }
    this.#runInPool((release) => {
      fstat(fd, { bigint: true }, (error, stats) => {
        release();
        onVersion(error, stats);
      });
    });
  }

  #runInPool(start: (release: () => void) => void): void {
    const { threads } = this.#file;
    runInThread(threads, this.#options.isWanted, () => {
      this.#isBusy = true;
      start(() => {
        this.#isBusy = false;
        threads?.release();
      });
    });
  }

  /** Runs asynchronous work on the file, which uses one thread at a time. */
  async hold<T>(work: () => Promise<T>): Promise<T> {
    this.#isBusy = true;
    try {
      return await inThread(this.#file.threads, work);
    } finally {
      this.#isBusy = false;
    }
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

const KIB = 1024;
// Large buffers need fewer calls of the thread pool and are used while few transfers run. Then medium buffers
// are used until the capacity is reached, and small buffers beyond it.
const LARGE = 512 * KIB;
const MEDIUM = 256 * KIB;
const SMALL = 64 * KIB;

/**
 * Read buffers for transfers. At most `capacity` bytes are in use or kept for reuse, and a quarter of it when
 * no transfer runs: a new buffer costs more than reading into it, because the kernel has to clear its pages
 * first.
 */
export class BufferPool {
  readonly #capacity: number;
  readonly #large: Buffer[] = [];
  readonly #medium: Buffer[] = [];
  #bytesInUse = 0;
  #bytesIdle = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Returns a buffer for one transfer, which must release it. */
  acquire(): Buffer {
    const size = this.#nextSize();
    if (size === SMALL) return this.acquireSmall();
    this.#bytesInUse += size;
    const buffer = (size === LARGE ? this.#large : this.#medium).pop();
    if (buffer === undefined) return Buffer.allocUnsafeSlow(size);
    this.#bytesIdle -= size;
    return buffer;
  }

  /** Returns a small buffer, which need not be released. */
  acquireSmall(): Buffer {
    return Buffer.allocUnsafeSlow(SMALL);
  }

  release(buffer: Buffer): void {
    if (buffer.length === SMALL) return;
    this.#bytesInUse -= buffer.length;
    if (this.#bytesInUse + this.#bytesIdle + buffer.length > this.#capacity) return;
    this.#bytesIdle += buffer.length;
    (buffer.length === LARGE ? this.#large : this.#medium).push(buffer);
    if (this.#bytesInUse === 0) this.#trim();
  }

  #trim(): void {
    while (this.#bytesIdle > this.#capacity / 4) {
      const buffer = this.#medium.pop() ?? this.#large.pop();
      this.#bytesIdle -= buffer?.length ?? this.#bytesIdle;
    }
  }

  #nextSize(): number {
    if (this.#bytesInUse + LARGE <= this.#capacity / 2) return LARGE;
    return this.#bytesInUse + MEDIUM <= this.#capacity ? MEDIUM : SMALL;
  }
}

// Milliseconds after a write during which another one is likely, for example to a log file.
const RECENT = 60_000;

/**
 * Decides whether a response may be completed after its file changed during the transfer. A new stat alone
 * does not show whether the bytes changed: data may have been appended, or only permissions, owner, name or
 * times may have changed. So the part of the file that the response promised is read again and compared.
 *
 * - A response with a content ETag: with the ETag.
 * - Any other response: with a hash of the bytes that were sent. It is computed if ETags come from the
 *   content, and for files that were modified recently. Without it, only changes that leave size and mtime
 *   alone are accepted.
 */
class ContentVerifier {
  readonly #representation: Representation;
  readonly #hasContentEtag: boolean;
  readonly #sent: Hash | undefined;

  constructor(representation: Representation, etag: StaticSettings['etag']) {
    this.#representation = representation;
    this.#hasContentEtag = etag === 'content' && representation.tag !== undefined;
    const needsHash = etag === 'content' || wasModifiedRecently(representation);
    if (!this.#hasContentEtag && needsHash) this.#sent = createHash('sha1');
  }

  /** Records bytes of the file that are sent. */
  record(bytes: Buffer): void {
    this.#sent?.update(bytes);
  }

  /** Whether `ranges` of the file still have the bytes that the response promised and sent. */
  async verify(
    fd: number,
    current: OpenFileVersion,
    ranges: readonly ByteRange[],
    isWanted: () => boolean,
  ): Promise<boolean> {
    const { version, metadata, tag } = this.#representation;
    if (current.size < version.size) return false;
    if (this.#hasContentEtag) {
      const etag = await etagOfFile(fd, metadata.size, isWanted);
      return etag !== undefined && etagForCoding(etag, metadata.coding) === tag;
    }
    if (this.#sent !== undefined) {
      const hash = await hashRanges(fd, ranges, isWanted);
      return hash?.digest().equals(this.#sent.digest()) === true;
    }
    return current.mtimeNs === version.mtimeNs && current.size === version.size;
  }
}

function wasModifiedRecently({ version }: Representation): boolean {
  return Math.abs(Date.now() - Number(version.mtimeNs / 1_000_000n)) < RECENT;
}

/** An open file of a known version. */
class OpenFile {
  readonly fd: number;
  readonly version: OpenFileVersion;
  /** The threads for operations on the file, if its file system may hang. */
  readonly threads: ThreadShare | undefined;
  readonly #close: (fd: number, threads: ThreadShare | undefined) => void;
  #isClosed = false;

  constructor(
    fd: number,
    version: OpenFileVersion,
    close: (fd: number, threads: ThreadShare | undefined) => void,
    threads?: ThreadShare,
  ) {
    this.fd = fd;
    this.version = version;
    this.#close = close;
    this.threads = threads;
  }

  /** Whether the file is on a local disk, where `fstat` and `close` take microseconds. */
  get isLocal(): boolean {
    return this.#close === closeOnLoop;
  }

  /** Closes the file once: the number of the descriptor may belong to another file afterwards. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#close(this.fd, this.threads);
  }
}

/** A file that was found inside the root. */
interface KnownFile {
  readonly realPath: string;
  readonly version: FileVersion;
}

const FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/**
 * Opens a file in the thread pool, and checks that it still has the expected version. The callback receives
 * neither an error nor a file when the version differs.
 */
function openVersion(
  file: KnownFile,
  threads: ThreadShare | undefined,
  done: (error: unknown, file?: OpenFile) => void,
): void {
  if (threads === undefined) {
    openInPool(file, threads, done);
    return;
  }
  threads.run(() =>
    openInPool(file, threads, (error, opened) => {
      threads.release();
      done(error, opened);
    }),
  );
}

function openInPool(
  { realPath, version }: KnownFile,
  threads: ThreadShare | undefined,
  done: (error: unknown, file?: OpenFile) => void,
): void {
  open(realPath, FLAGS, (openError, fd) => {
    if (openError !== null) {
      done(openError);
      return;
    }
    fstat(fd, { bigint: true }, (error, stats) => {
      if (error === null && sameVersion(version, stats)) {
        done(undefined, new OpenFile(fd, stats, closeInPool, threads));
        return;
      }
      closeInPool(fd, threads);
      done(error ?? undefined);
    });
  });
}

/** Opens a file on the event loop. Returns undefined when the version differs. */
function openVersionSync({ realPath, version }: KnownFile): OpenFile | undefined {
  const fd = openSync(realPath, FLAGS);
  try {
    const stats = fstatSync(fd, { bigint: true });
    if (sameVersion(version, stats)) return new OpenFile(fd, stats, closeOnLoop);
  } catch (error) {
    closeOnLoop(fd);
    throw error;
  }
  closeOnLoop(fd);
  return undefined;
}

/** Fills a buffer with the start of a file on the event loop. Returns false when the file changed meanwhile. */
function readVersionSync({ fd, version }: OpenFile, body: Buffer): boolean {
  let filled = 0;
  while (filled < body.length) {
    const bytesRead = readSync(fd, body, filled, body.length - filled, filled);
    if (bytesRead === 0) return false;
    filled += bytesRead;
  }
  return sameContent(version, fstatSync(fd, { bigint: true }));
}

/**
 * Stats an open file on the event loop. It fails when the kernel has shut the file system down after a failure of
 * its disk.
 */
function statOnLoop(
  fd: number,
  done: (error: Error | null, version: OpenFileVersion | undefined) => void,
): void {
  let stats: OpenFileVersion | undefined;
  let failure: Error | null = null;
  try {
    stats = fstatSync(fd, { bigint: true });
  } catch (error) {
    failure = toError(error);
  }
  done(failure, stats);
}

// Errors of `close` are ignored: the descriptor is freed even then.
function closeInPool(fd: number, threads: ThreadShare | undefined): void {
  if (threads === undefined) close(fd, () => {});
  else threads.run(() => close(fd, () => threads.release()));
}

function closeOnLoop(fd: number): void {
  try {
    closeSync(fd);
  } catch {}
}
