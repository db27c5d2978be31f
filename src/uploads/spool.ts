import { randomUUID } from 'node:crypto';
import { close, constants, open, read, unlink, writev } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { UploadedFile } from '../../types/uploads.ts';

/** The storage of a spool. */
export interface SpoolSettings {
  readonly memoryBytesPerFile: number;
  /** The bytes of memory that all requests of one handler may still use. */
  readonly budget: { left: number };
  /** Undefined: files are never written to disk. */
  readonly tempDir: string | undefined;
}

/** With more unwritten bytes than this, `write` returns false and the sender should wait. */
const HIGH_WATER = 512 * 1024;
/** The maximum number of chunks in memory, because Buffers of single bytes take more memory than their bytes. */
const MAX_CHUNKS = 256;
/** Bytes of a chunk, on average, below which chunks that stay in memory are joined. */
const SMALL_CHUNK = 4096;

/**
 * The bytes of one file: in memory up to a limit, then in an unlinked temporary file. Any number of readers can read at any
 * position while the file is still being written.
 */
export class Spool {
  /** Bytes received. */
  size = 0;
  /** Whether the whole file has been received and stored. */
  complete = false;
  /** Called when the sender can continue after `write` returned false. */
  onDrain: () => void = () => {};

  readonly #settings: SpoolSettings;
  /** Chunks that are not on disk, in order; the first begins at position `#flushed`. */
  #chunks: Buffer[] = [];
  #flushed = 0;
  #reserved = 0;
  #state: 'memory' | 'opening' | 'disk' = 'memory';
  #fd = -1;
  /** Running system calls on the descriptor. It stays open for them: a new file could get the same number. */
  #busy = 0;
  #writing = false;
  #finish: (() => void) | undefined;
  #error: Error | undefined;
  #released = false;
  #holds = 0;
  #isReleasedLater = false;
  #waiting: (() => void)[] = [];

  constructor(settings: SpoolSettings) {
    this.#settings = settings;
  }

  /** The error with which readers fail. */
  get error(): Error | undefined {
    // Most files have no reader when they are released, so the error is created when it is read.
    if (this.#released)
      this.#error ??= new Error(
        'The upload can only be read until the response ends; read it, or save it with saveTo, in the resolver',
      );
    return this.#error;
  }

  /** Appends a chunk, which must not change afterwards. Returns false when the sender should wait for `onDrain`. */
  write(chunk: Buffer): boolean {
    if (this.error !== undefined) return true;
    this.size += chunk.length;
    this.#chunks.push(chunk);
    if (this.#state === 'memory' && !this.#fitsInMemory(chunk.length)) this.#spill();
    else if (this.#state === 'disk') this.#flush();
    this.#notifyReaders();
    return this.#state === 'memory' || this.size - this.#flushed < HIGH_WATER;
  }

  /** Marks the end of the file. Calls `finished` when the file is stored or has failed. */
  end(finished: () => void): void {
    this.#finish = finished;
    this.#finishIfStored();
  }

  /** Discards the content; readers fail with the error. */
  fail(error: Error): void {
    if (this.error !== undefined) return;
    this.#error = error;
    this.#discard();
  }

  /** Keeps the content, also after `release`, until the returned function is called. */
  hold(): () => void {
    this.#holds++;
    return () => {
      this.#holds--;
      if (this.#isReleasedLater) this.release();
    };
  }

  /** Frees memory and descriptor; readers fail. */
  release(): void {
    this.#isReleasedLater = this.#holds > 0;
    if (this.#released || this.#isReleasedLater) return;
    this.#released = true;
    this.#discard();
    this.#freeMemory();
    this.#closeWhenIdle();
  }

  /** The bytes in memory from a position to the end of their chunk; undefined when they are on disk. */
  peek(position: number): Buffer | undefined {
    return bytesAt(this.#chunks, position - this.#flushed);
  }

  /** Reads bytes on disk at a position. */
  readAt(position: number, into: Buffer, done: (error: Error | null, bytes: number) => void): void {
    this.#busy++;
    const length = Math.min(into.length, this.#flushed - position);
    read(this.#fd, into, 0, length, position, (error, bytes) => {
      this.#busy--;
      this.#closeWhenIdle();
      done(error ?? (bytes === 0 ? truncated() : null), bytes);
    });
  }

  /** Calls `changed` at the next change: more bytes, the end, or a failure. */
  wait(changed: () => void): void {
    this.#waiting.push(changed);
  }

  #fitsInMemory(bytes: number): boolean {
    const { memoryBytesPerFile, budget, tempDir } = this.#settings;
    if (this.size > memoryBytesPerFile || bytes > budget.left) return false;
    if (this.#chunks.length > MAX_CHUNKS) {
      if (tempDir !== undefined) return false;
      // Large chunks cost no more than their bytes.
      if (this.size < this.#chunks.length * SMALL_CHUNK) this.#chunks = [Buffer.concat(this.#chunks)];
    }
    budget.left -= bytes;
    this.#reserved += bytes;
    return true;
  }

  #discard(): void {
    this.#chunks = [];
    this.#notifyReaders();
    this.onDrain();
    this.#finishIfStored();
  }

  #freeMemory(): void {
    this.#settings.budget.left += this.#reserved;
    this.#reserved = 0;
  }

  #spill(): void {
    const { tempDir } = this.#settings;
    if (tempDir === undefined) {
      this.fail(noMemory());
      return;
    }
    this.#state = 'opening';
    this.#busy++;
    openUnlinkedTempFile(tempDir, (error, fd) => {
      this.#busy--;
      if (error === null) {
        this.#fd = fd;
        this.#state = 'disk';
        this.#flush();
      } else this.fail(error);
      this.#closeWhenIdle();
    });
  }

  #flush(): void {
    if (this.#writing || this.#chunks.length === 0 || this.error !== undefined) return;
    this.#writing = true;
    this.#busy++;
    writev(this.#fd, this.#chunks.slice(), this.#flushed, (error, bytes) => {
      this.#writing = false;
      this.#busy--;
      if (error !== null) this.fail(error);
      else this.#written(bytes);
      this.#closeWhenIdle();
    });
  }

  #written(bytes: number): void {
    this.#flushed += bytes;
    if (this.error !== undefined) return;
    this.#freeMemory();
    dropBytes(this.#chunks, bytes);
    this.#flush();
    this.onDrain();
    this.#finishIfStored();
  }

  #finishIfStored(): void {
    if (this.#finish === undefined) return;
    if (this.error === undefined && this.#state !== 'memory' && this.#flushed < this.size) return;
    const finish = this.#finish;
    this.#finish = undefined;
    this.complete = this.error === undefined;
    finish();
    this.#notifyReaders();
  }

  #notifyReaders(): void {
    if (this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const changed of waiting) changed();
  }

  #closeWhenIdle(): void {
    if (!this.#released || this.#busy > 0 || this.#fd === -1) return;
    const fd = this.#fd;
    this.#fd = -1;
    close(fd, () => {});
  }
}

const noMemory = (): Error =>
  Object.assign(new Error('The memory for uploads is used up (option "memoryBytes")'), { code: 'ENOMEM' });
const truncated = (): Error => new Error('The temporary file is shorter than what was written to it');

const CHUNK = 64 * 1024;

type ReadOptions = NonNullable<Parameters<UploadedFile['createReadStream']>[0]>;

/**
 * Creates a stream of a spool from its first byte. Streams are independent and wait for bytes that have not
 * arrived. `unwatched` gets an error that no other listener of the stream gets.
 */
export function readSpool(
  spool: Spool,
  { encoding, highWaterMark = CHUNK }: ReadOptions = {},
  unwatched?: (error: Error) => void,
): Readable {
  let position = 0;
  const deliver = (reader: Readable, chunk: Buffer): void => {
    position += chunk.length;
    reader.push(chunk);
  };
  const advance = (reader: Readable, size: number): void => {
    if (reader.destroyed) return;
    if (spool.error !== undefined) {
      reader.destroy(spool.error);
      return;
    }
    if (position === spool.size) {
      if (spool.complete) reader.push(null);
      else spool.wait(() => advance(reader, size));
      return;
    }
    const piece = spool.peek(position);
    if (piece !== undefined) {
      deliver(reader, piece);
      return;
    }
    const into = Buffer.allocUnsafeSlow(Math.min(Math.max(size, CHUNK), spool.size - position));
    spool.readAt(position, into, (error, bytes) => {
      if (error !== null) reader.destroy(error);
      else if (!reader.destroyed) deliver(reader, bytes === into.length ? into : into.subarray(0, bytes));
    });
  };
  const reader = new Readable({
    highWaterMark,
    encoding,
    read(size) {
      advance(this, size);
    },
  });
  // A resolver may abandon a stream without listeners; the error at the end of the response must not end the
  // process.
  reader.on('error', (error) => {
    if (reader.listenerCount('error') === 1) unwatched?.(error);
  });
  return reader;
}

/** Reads the content, or its first bytes, into new memory. */
export async function readAll(spool: Spool, most: number = Number.POSITIVE_INFINITY): Promise<ArrayBuffer> {
  while (!spool.complete && spool.error === undefined && spool.size < most) {
    await new Promise<void>((resolve) => spool.wait(resolve));
  }
  if (spool.error !== undefined) throw spool.error;
  const all = Buffer.allocUnsafeSlow(Math.min(spool.size, most));
  for (let position = 0; position < all.length; ) {
    const piece = spool.peek(position);
    position += piece === undefined ? await readOnce(spool, position, all) : piece.copy(all, position);
  }
  return all.buffer;
}

function readOnce(spool: Spool, position: number, all: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    if (spool.error !== undefined) throw spool.error;
    spool.readAt(position, all.subarray(position), (error, bytes) => {
      if (error !== null) reject(error);
      else resolve(bytes);
    });
  });
}

/** Returns the bytes from a position to the end of their chunk; undefined when no chunk contains it. */
function bytesAt(chunks: readonly Buffer[], position: number): Buffer | undefined {
  let start = 0;
  for (const chunk of chunks) {
    const end = start + chunk.length;
    if (position >= start && position < end) {
      return position === start ? chunk : chunk.subarray(position - start);
    }
    start = end;
  }
  return undefined;
}

/** Removes bytes from the start of a list of chunks; a write may end inside a chunk. */
function dropBytes(chunks: Buffer[], bytes: number): void {
  let left = bytes;
  let whole = 0;
  while (whole < chunks.length && left >= (chunks[whole] as Buffer).length) {
    left -= (chunks[whole] as Buffer).length;
    whole++;
  }
  chunks.splice(0, whole);
  if (left > 0) chunks[0] = (chunks[0] as Buffer).subarray(left);
}

/** Linux's `__O_TMPFILE`, for which Node has no constant; the kernel requires it together with O_DIRECTORY. */
const TMPFILE = 0o20000000 | constants.O_DIRECTORY | constants.O_RDWR;
/** libuv's UV_FS_O_TEMPORARY: Windows deletes the file when its last handle closes, however the process ends. */
const DELETE_ON_CLOSE = 0x40 | constants.O_RDWR | constants.O_CREAT | constants.O_EXCL;
const EXCLUSIVE = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL;
const OWNER_ONLY = 0o600;

type OnOpened = (error: Error | null, fd: number) => void;

/** Opens a temporary file without a name, which the system deletes when it is closed, even after SIGKILL. */
export function openUnlinkedTempFile(directory: string, opened: OnOpened): void {
  if (process.platform === 'win32') open(randomPath(directory), DELETE_ON_CLOSE, OWNER_ONLY, opened);
  else if (process.platform === 'linux') openTmpfile(directory, opened);
  else openThenUnlink(directory, opened);
}

function openTmpfile(directory: string, opened: OnOpened): void {
  open(directory, TMPFILE, OWNER_ONLY, (error, fd) => {
    // Some file systems do not support O_TMPFILE (NFS, old overlays).
    if (error !== null) openThenUnlink(directory, opened);
    else opened(null, fd);
  });
}

/** Used on other platforms. The file has an unguessable name, which exists only between two system calls. */
export function openThenUnlink(directory: string, opened: OnOpened): void {
  const path = randomPath(directory);
  open(path, EXCLUSIVE, OWNER_ONLY, (error, fd) => {
    if (error !== null) opened(error, -1);
    else unlink(path, () => opened(null, fd));
  });
}

function randomPath(directory: string): string {
  return join(directory, `espalier-${randomUUID()}`);
}
