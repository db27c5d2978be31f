import { type Sink, viewOf } from './writer.ts';

/** What every answer begins with; idle buffers keep it written, so that an execution starts behind it. */
export const OPENING: Buffer = Buffer.from('{"data":');

/** A working buffer. */
export type Page = Pick<Sink, 'buf' | 'view'>;

/** Working buffers that rest between executions. The bytes of an answer are copied out before its buffer comes back. */
export interface BufferPool {
  /** A buffer for about so many bytes; it grows where they are not enough. */
  take(expected: number): Page;
  give(page: Page): void;
  /** Bytes at rest. */
  idleBytes(): number;
}

/** From so many bytes on an answer takes its working buffer along instead of being copied out. */
export const LONG_ANSWER: number = 16 * 1024;

const FIRST_SIZE = 8 * 1024;
const MAX_KEPT_SIZE = 1024 * 1024;
const MAX_IDLE_BYTES = 4 * 1024 * 1024;
const MAX_IDLE_COUNT = 64;

/** A pool bounded in count and in bytes; what does not fit is left to the garbage collector. */
export function createPool(): BufferPool {
  const idle: Page[] = [];
  let bytes = 0;
  return {
    take(expected) {
      if (expected >= LONG_ANSWER) return fresh(expected + (expected >> 3));
      const page = idle.pop();
      if (page === undefined) return fresh(FIRST_SIZE);
      bytes -= page.buf.length;
      return page;
    },
    give(page) {
      const { length } = page.buf;
      if (idle.length === MAX_IDLE_COUNT || length > MAX_KEPT_SIZE) return;
      if (bytes + length > MAX_IDLE_BYTES) return;
      bytes += length;
      idle.push(page);
    },
    idleBytes: () => bytes,
  };
}

function fresh(bytes: number): Page {
  const buf = Buffer.allocUnsafeSlow(bytes);
  OPENING.copy(buf);
  return { buf, view: viewOf(buf) };
}
