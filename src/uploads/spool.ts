import { close, read, writev } from 'node:fs';
import type { Budget } from './budget.ts';
import { openNameless } from './temp.ts';

/** Where a spool may put its bytes. */
export interface SpoolSettings {
  readonly memoryPerFile: number;
  readonly budget: Budget;
  readonly tempDir: string;
}

/** Unwritten bytes beyond which the sender is asked to wait. */
const HIGH_WATER = 512 * 1024;
/** Pieces kept in memory; a body that trickles in costs more for its Buffers than for its bytes. */
const MAX_PIECES = 256;

type State = 'memory' | 'opening' | 'disk';

/**
 * The bytes of one file: in memory while they are few, then in a nameless temporary file. Can be read at any position
 * while it still grows, by any number of readers.
 */
export class Spool {
  /** Bytes received. */
  size = 0;
  /** Whether all has been received and is safe. */
  complete = false;
  /** Why the content is not to be had. */
  error: Error | undefined;
  /** Called when there is room again after `write` answered false. */
  onRoom: () => void = () => {};

  readonly #settings: SpoolSettings;
  /** What is not on disk, in order; the first piece begins at `#flushed`. */
  #pieces: Buffer[] = [];
  #flushed = 0;
  #reserved = 0;
  #state: State = 'memory';
  #fd = -1;
  /** System calls that use the descriptor now: closing under them would hit whoever gets its number next. */
  #busy = 0;
  #writing = false;
  #finish: (() => void) | undefined;
  #released = false;
  #waiting: (() => void)[] = [];

  constructor(settings: SpoolSettings) {
    this.#settings = settings;
  }

  /** Takes a piece over; false when the sender should wait for `onRoom`. */
  write(piece: Buffer): boolean {
    if (this.error !== undefined) return true;
    this.size += piece.length;
    this.#pieces.push(piece);
    if (this.#state === 'memory' && !this.#fits(piece.length)) this.#spill();
    else if (this.#state === 'disk') this.#flush();
    this.#wake();
    return this.#state === 'memory' || this.size - this.#flushed < HIGH_WATER;
  }

  /** No more will come; `finished` is called when everything is stored, or has failed. */
  end(finished: () => void): void {
    this.#finish = finished;
    this.#settle();
  }

  /** Makes the content unavailable; readers fail with the error. */
  fail(error: Error): void {
    if (this.error !== undefined) return;
    this.error = error;
    this.#pieces = [];
    this.#wake();
    this.onRoom();
    this.#settle();
  }

  /** Gives up memory and descriptor; readers fail. */
  release(): void {
    if (this.#released) return;
    this.#released = true;
    this.fail(new Error('The upload is gone: it can be read until the response ends'));
    this.#settings.budget.give(this.#reserved);
    this.#reserved = 0;
    this.#closeWhenIdle();
  }

  /** The bytes in memory at a position up to the end of their piece; undefined when they are elsewhere. */
  peek(position: number): Buffer | undefined {
    let start = this.#flushed;
    for (const piece of this.#pieces) {
      const end = start + piece.length;
      if (position >= start && position < end)
        return position === start ? piece : piece.subarray(position - start);
      start = end;
    }
    return undefined;
  }

  /** Reads what is on disk at a position. */
  readAt(position: number, into: Buffer, done: (error: Error | null, bytes: number) => void): void {
    this.#busy++;
    const length = Math.min(into.length, this.#flushed - position);
    read(this.#fd, into, 0, length, position, (error, bytes) => {
      this.#busy--;
      this.#closeWhenIdle();
      done(
        error ?? (bytes === 0 ? new Error('The temporary file is shorter than what was written') : null),
        bytes,
      );
    });
  }

  /** Calls back once something has changed: more bytes, the end, or a failure. */
  wait(changed: () => void): void {
    this.#waiting.push(changed);
  }

  #fits(bytes: number): boolean {
    const { memoryPerFile, budget } = this.#settings;
    if (this.size > memoryPerFile || this.#pieces.length > MAX_PIECES || !budget.take(bytes)) return false;
    this.#reserved += bytes;
    return true;
  }

  #spill(): void {
    this.#state = 'opening';
    this.#busy++;
    openNameless(this.#settings.tempDir, (error, fd) => {
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
    if (this.#writing || this.#pieces.length === 0 || this.error !== undefined) return;
    this.#writing = true;
    this.#busy++;
    writev(this.#fd, this.#pieces.slice(), this.#flushed, (error, bytes) => {
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
    this.#settings.budget.give(this.#reserved);
    this.#reserved = 0;
    dropBytes(this.#pieces, bytes);
    this.#flush();
    this.onRoom();
    this.#settle();
  }

  #settle(): void {
    if (this.#finish === undefined) return;
    if (this.error === undefined && this.#state !== 'memory' && this.#flushed < this.size) return;
    const finish = this.#finish;
    this.#finish = undefined;
    this.complete = this.error === undefined;
    this.#wake();
    finish();
  }

  #wake(): void {
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

/** Removes bytes from the front of a list of pieces; a write may end inside one. */
function dropBytes(pieces: Buffer[], bytes: number): void {
  let left = bytes;
  let whole = 0;
  while (whole < pieces.length && left >= (pieces[whole] as Buffer).length) {
    left -= (pieces[whole] as Buffer).length;
    whole++;
  }
  pieces.splice(0, whole);
  if (left > 0) pieces[0] = (pieces[0] as Buffer).subarray(left);
}
