import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, unlink } from 'node:fs/promises';
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
  #isInMemory = true;
  #file: FileHandle | undefined;
  #hasEnded = false;
  #error: Error | undefined;
  /** Those who need the content. The first is the response. */
  #holds = 1;
  #waiting: (() => void)[] = [];

  constructor(settings: SpoolSettings) {
    this.#settings = settings;
  }

  get isReleased(): boolean {
    return this.#holds <= 0;
  }

  /** Whether the whole file is there, and somebody besides the response needs it. */
  get isKept(): boolean {
    return this.complete && this.#holds > 1;
  }

  /** The error with which readers fail. */
  get error(): Error | undefined {
    // Most files have no reader when they are released, so the error is created when it is read.
    if (this.isReleased)
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
    if (this.#isInMemory && !this.#fitsInMemory(chunk.length)) this.#spill();
    this.#notify();
    return this.#isInMemory || this.size - this.#flushed < HIGH_WATER;
  }

  /** Marks the end of the file. Resolves when the file is stored. */
  async end(): Promise<void> {
    this.#hasEnded = true;
    if (this.#isInMemory) this.#complete();
    this.#notify();
    await this.arrival(Number.POSITIVE_INFINITY);
  }

  /** Discards the content; readers fail with the error. */
  fail(error: Error): void {
    if (this.error !== undefined) return;
    this.#error = error;
    this.#discard();
  }

  /** Keeps the content, also after `release`, until the returned function is called. */
  hold(): () => void {
    if (this.isReleased) return () => {};
    this.#holds++;
    return () => this.release();
  }

  /** Frees memory and descriptor when nobody holds them; readers fail. */
  release(): void {
    this.#holds--;
    if (this.#holds === 0) this.#discard();
  }

  /** Resolves when so many bytes have arrived, or the whole file is stored. Rejects if readers fail. */
  async arrival(bytes: number): Promise<void> {
    while (this.error === undefined && !this.complete && this.size < bytes) await this.#change();
    if (this.error !== undefined) throw this.error;
  }

  /** Reads at least one byte at a position, as soon as there is one. Resolves with null at the end of the file. */
  async read(position: number, most: number): Promise<Buffer | null> {
    if (position >= this.size) await this.arrival(position + 1);
    if (this.error !== undefined) throw this.error;
    if (position >= this.size) return null;
    const chunk = bytesAt(this.#chunks, position - this.#flushed);
    if (chunk !== undefined) return chunk;
    const into = Buffer.allocUnsafeSlow(Math.min(most, this.#flushed - position));
    const { bytesRead } = await (this.#file as FileHandle).read(into, 0, into.length, position);
    if (bytesRead === 0) throw new Error('The temporary file is shorter than what was written to it');
    return into.subarray(0, bytesRead);
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
    this.#isInMemory = false;
    void this.#keepOnDisk(tempDir);
  }

  /** Writes the chunks to a temporary file as they arrive, and closes it when the spool is released. */
  async #keepOnDisk(tempDir: string): Promise<void> {
    try {
      const file = await openUnlinkedTempFile(tempDir);
      this.#file = file;
      while (!this.isReleased) {
        if (this.#chunks.length > 0) await this.#flush(file);
        else {
          if (this.#hasEnded) this.#complete();
          await this.#change();
        }
      }
    } catch (error) {
      this.fail(error as Error);
    }
    // Waits for reads that are running.
    await this.#file?.close().catch(() => undefined);
  }

  async #flush(file: FileHandle): Promise<void> {
    const { bytesWritten } = await file.writev(this.#chunks.slice(), this.#flushed);
    if (this.error !== undefined) return;
    this.#flushed += bytesWritten;
    this.#freeMemory();
    dropBytes(this.#chunks, bytesWritten);
    this.onDrain();
  }

  #complete(): void {
    if (this.complete || this.error !== undefined) return;
    this.complete = true;
    this.#notify();
  }

  #discard(): void {
    this.#chunks = [];
    this.#freeMemory();
    this.#notify();
    this.onDrain();
  }

  /** Resolves at the next change: more bytes, the end, a failure, or the release. */
  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  #notify(): void {
    for (const changed of this.#waiting.splice(0)) changed();
  }
}

const noMemory = (): Error =>
  Object.assign(new Error('The memory for uploads is used up (option "memoryBytes")'), { code: 'ENOMEM' });

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
  const reader = new Readable({
    highWaterMark,
    encoding,
    read(size) {
      spool.read(position, Math.max(size, CHUNK)).then(
        (chunk) => {
          position += chunk?.length ?? 0;
          reader.push(chunk);
        },
        (error: Error) => void reader.destroy(error),
      );
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
  await spool.arrival(most);
  const all = Buffer.allocUnsafeSlow(Math.min(spool.size, most));
  for (let position = 0; position < all.length; ) {
    const piece = await spool.read(position, 4 * CHUNK);
    if (piece === null) break;
    position += piece.copy(all, position);
  }
  return all.buffer;
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

/** Opens a temporary file without a name, which the system deletes when it is closed, even after SIGKILL. */
export function openUnlinkedTempFile(directory: string): Promise<FileHandle> {
  if (process.platform === 'win32') return open(randomPath(directory), DELETE_ON_CLOSE, OWNER_ONLY);
  if (process.platform !== 'linux') return openThenUnlink(directory);
  // Some file systems do not support O_TMPFILE (NFS, old overlays).
  return open(directory, TMPFILE, OWNER_ONLY).catch(() => openThenUnlink(directory));
}

/** Used on other platforms. The file has an unguessable name, which exists only between two system calls. */
export async function openThenUnlink(directory: string): Promise<FileHandle> {
  const path = randomPath(directory);
  const file = await open(path, EXCLUSIVE, OWNER_ONLY);
  try {
    await unlink(path);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

function randomPath(directory: string): string {
  return join(directory, `espalier-${randomUUID()}`);
}
