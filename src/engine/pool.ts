/** What every answer begins with; idle buffers keep it written, so that an execution starts behind it. */
export const OPENING: Buffer = Buffer.from('{"data":');

/** A working buffer, with its bytes as words. */
export interface Page {
  readonly buf: Buffer;
  /** To read and write four bytes anywhere. */
  readonly view: DataView;
  /** To read four bytes at multiples of four, which is cheaper; up to three bytes at the end are in none. */
  readonly words: Int32Array;
}

/** Working buffers that rest between executions. */
export interface BufferPool {
  /** A buffer for an answer of about so many bytes. */
  take(expected: number): Page;
  /** A larger one in place of a page that has been written up to `used` and is given back: room for `needed` bytes at least. */
  enlarge(page: Page, used: number, needed: number): Page;
  /** Takes back a buffer of which nobody holds a byte any more. */
  give(page: Page): void;
  /** Bytes at rest. */
  idleBytes(): number;
}

/** From so many bytes on an answer takes its working buffer along instead of being copied out. */
export const LONG_ANSWER: number = 16 * 1024;

const FIRST_SIZE = 8 * 1024;
/** Small buffers grow fast, so that little is copied; large ones do not, so that little is left unused. */
const LARGE = 256 * 1024;
const MAX_KEPT_SIZE = 1024 * 1024;
const MAX_IDLE_BYTES = 4 * 1024 * 1024;
const MAX_IDLE_COUNT = 64;

/** A pool bounded in count and in bytes; what has rested longest makes room, and is left to the garbage collector. */
export function createPool(): BufferPool {
  const idle: Page[] = [];
  let bytes = 0;

  /** The one used last, which is still in the processor's cache; much larger ones are for others. */
  function find(least: number, most: number): Page | undefined {
    for (let at = idle.length - 1; at >= 0; at--) {
      const { length } = (idle[at] as Page).buf;
      if (length >= least && length <= most) return remove(at);
    }
    return undefined;
  }

  function remove(at: number): Page {
    const page = (at === idle.length - 1 ? idle.pop() : idle.splice(at, 1)[0]) as Page;
    bytes -= page.buf.length;
    return page;
  }

  function give(page: Page): void {
    const { length } = page.buf;
    if (length > MAX_KEPT_SIZE) return;
    while (idle.length === MAX_IDLE_COUNT || bytes + length > MAX_IDLE_BYTES) remove(0);
    bytes += length;
    idle.push(page);
  }

  return {
    take: (expected) =>
      expected < LONG_ANSWER
        ? (find(FIRST_SIZE, FIRST_SIZE * 4) ?? fresh(FIRST_SIZE))
        : // An answer does not take along what it would leave empty by half.
          (find(expected, expected * 2) ?? fresh(expected + (expected >> 3))),
    enlarge(page, used, needed) {
      const { length } = page.buf;
      const larger = find(needed, needed * 4) ?? fresh(Math.max(needed, length * (length < LARGE ? 4 : 2)));
      page.buf.copy(larger.buf, 0, 0, used);
      give(page);
      return larger;
    },
    give,
    idleBytes: () => bytes,
  };
}

function fresh(bytes: number): Page {
  const page = pageOf(Buffer.allocUnsafeSlow(bytes));
  OPENING.copy(page.buf);
  return page;
}

/** A buffer that begins at a multiple of four bytes, as those do that share no memory. */
export function pageOf(buf: Buffer): Page {
  const { buffer, byteOffset, length } = buf;
  return {
    buf,
    view: new DataView(buffer, byteOffset, length),
    words: new Int32Array(buffer, byteOffset, length >> 2),
  };
}
