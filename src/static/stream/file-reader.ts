import { fstat, read, readSync } from 'node:fs';
import { toError } from '../../http/reply/http-error.ts';
import type { CircuitBreaker } from '../cache/circuit-breaker.ts';
import type { OpenFileVersion } from '../disk/file-version.ts';
import { type OpenFile, statOnLoop } from '../disk/open-version.ts';
import { inThread, runInThread } from '../disk/thread-share.ts';
import type { BufferPool } from './buffer-pool.ts';

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
export class FileReader {
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
