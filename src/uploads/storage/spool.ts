import { close, read, writev } from 'node:fs';
import { bytesAt, dropBytes } from './chunks.ts';
import { openUnlinkedTempFile } from './temp-file.ts';

/** The storage of a spool. */
export interface SpoolSettings {
  readonly memoryPerFile: number;
  /** The bytes of memory that all requests of one handler may still use. */
  readonly budget: { left: number };
  readonly tempDir: string;
}

/** With more unwritten bytes than this, `write` returns false and the sender should wait. */
const HIGH_WATER = 512 * 1024;
/** The maximum number of chunks in memory, because Buffers of single bytes take more memory than their bytes. */
const MAX_CHUNKS = 256;

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

  /** Frees memory and descriptor; readers fail. */
  release(): void {
    if (this.#released) return;
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
    const { memoryPerFile, budget } = this.#settings;
    if (this.size > memoryPerFile || this.#chunks.length > MAX_CHUNKS || bytes > budget.left) return false;
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
    this.#state = 'opening';
    this.#busy++;
    openUnlinkedTempFile(this.#settings.tempDir, (error, fd) => {
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
    this.#notifyReaders();
    finish();
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

const truncated = (): Error => new Error('The temporary file is shorter than what was written to it');
