/**
 * The first bytes of every response. Idle buffers keep them, so that an execution starts writing after them.
 */
export const RESPONSE_START: Buffer = Buffer.from('{"data":');

/** A working buffer with two views of the same memory. */
export interface PooledBuffer {
  readonly buf: Buffer;
  /** Reads and writes four bytes at any offset. */
  readonly view: DataView;
  /**
   * Reads four bytes at offsets that are multiples of four, which is cheaper. Omits up to three bytes at the
   * end.
   */
  readonly words: Int32Array;
}

/** Keeps working buffers between executions. */
export interface BufferPool {
  /** Returns a buffer for a response of about `expectedBytes`. */
  take(expectedBytes: number): PooledBuffer;
  /**
   * Replaces a buffer with one of at least `neededBytes`: copies the first `usedBytes` and takes back the old
   * buffer.
   */
  enlarge(buffer: PooledBuffer, usedBytes: number, neededBytes: number): PooledBuffer;
  /** Takes back a buffer that has no other reader or writer. */
  give(buffer: PooledBuffer): void;
  /** The size of all idle buffers. */
  idleBytes(): number;
}

/** A response from this size keeps its working buffer; shorter responses are copied out of it. */
export const LONG_RESPONSE: number = 16 * 1024;

const INITIAL_SIZE = 8 * 1024;
/** Smaller buffers grow by a factor of four to avoid copies; larger ones double to avoid unused memory. */
const LARGE = 256 * 1024;
const MAX_KEPT_SIZE = 1024 * 1024;
const MAX_IDLE_BYTES = 4 * 1024 * 1024;
const MAX_IDLE_COUNT = 64;

/**
 * Creates a pool that is bounded in count and bytes. The buffer that has been idle longest is dropped first.
 * `initialSize` is the size of buffers for short responses.
 */
export function createBufferPool(initialSize: number = INITIAL_SIZE): BufferPool {
  const idle: PooledBuffer[] = [];
  let bytes = 0;

  /** Prefers the buffer used last, which is probably still in the CPU cache. */
  function find(minBytes: number, maxBytes: number): PooledBuffer | undefined {
    for (let index = idle.length - 1; index >= 0; index--) {
      const { length } = (idle[index] as PooledBuffer).buf;
      if (length >= minBytes && length <= maxBytes) return remove(index);
    }
    return undefined;
  }

  function remove(index: number): PooledBuffer {
    const removed = (index === idle.length - 1 ? idle.pop() : idle.splice(index, 1)[0]) as PooledBuffer;
    bytes -= removed.buf.length;
    return removed;
  }

  function give(buffer: PooledBuffer): void {
    const { length } = buffer.buf;
    if (length > MAX_KEPT_SIZE) return;
    while (idle.length === MAX_IDLE_COUNT || bytes + length > MAX_IDLE_BYTES) remove(0);
    bytes += length;
    idle.push(buffer);
  }

  return {
    take: (expectedBytes) =>
      expectedBytes < LONG_RESPONSE
        ? (find(initialSize, initialSize * 4) ?? allocate(initialSize))
        : // A long response keeps its buffer, so the buffer may not be much larger than the response.
          (find(expectedBytes, expectedBytes * 2) ?? allocate(expectedBytes + (expectedBytes >> 3))),
    enlarge(buffer, usedBytes, neededBytes) {
      const { length } = buffer.buf;
      const larger =
        find(neededBytes, neededBytes * 4) ??
        allocate(Math.max(neededBytes, length * (length < LARGE ? 4 : 2)));
      buffer.buf.copy(larger.buf, 0, 0, usedBytes);
      give(buffer);
      return larger;
    },
    give,
    idleBytes: () => bytes,
  };
}

function allocate(bytes: number): PooledBuffer {
  const pooled = withViews(Buffer.allocUnsafeSlow(bytes));
  RESPONSE_START.copy(pooled.buf);
  return pooled;
}

/**
 * Adds the views to a buffer. Its offset must be a multiple of four, as it is for memory that is not shared.
 */
export function withViews(buf: Buffer): PooledBuffer {
  const { buffer, byteOffset, length } = buf;
  return {
    buf,
    view: new DataView(buffer, byteOffset, length),
    words: new Int32Array(buffer, byteOffset, length >> 2),
  };
}

/**
 * Receives JSON bytes: a buffer that is replaced by a larger one when it is full, and the offset after the
 * last byte.
 */
export interface Sink {
  buffer: PooledBuffer;
  /** `buffer.buf`, without the extra property access. */
  buf: Buffer;
  /** `buffer.view`. */
  view: DataView;
  pos: number;
  readonly pool: BufferPool;
}

const LONG_JSON = 1000;

/** Ensures space for this many bytes. */
export function reserve(sink: Sink, bytes: number): void {
  if (sink.pos + bytes > sink.buf.length) grow(sink, bytes);
}

function grow(sink: Sink, bytes: number): void {
  useBuffer(sink, sink.pool.enlarge(sink.buffer, sink.pos, sink.pos + bytes));
}

/** Replaces the buffer of a sink. */
export function useBuffer(sink: Sink, buffer: PooledBuffer): void {
  sink.buffer = buffer;
  sink.buf = buffer.buf;
  sink.view = buffer.view;
}

/** Writes one ASCII character. */
export function writeByte(sink: Sink, byte: number): void {
  if (sink.pos === sink.buf.length) grow(sink, 1);
  sink.buf[sink.pos++] = byte;
}

/**
 * Writes text that is JSON already. A UTF-16 unit needs at most three bytes of UTF-8; long text is measured
 * exactly, because three times its length would waste memory.
 */
export function writeJson(sink: Sink, json: string): void {
  reserve(sink, json.length < LONG_JSON ? json.length * 3 : Buffer.byteLength(json));
  sink.pos += sink.buf.write(json, sink.pos, 'utf8');
}

/** ASCII text that is known at compile time, stored as words of four bytes. */
export class StaticText {
  readonly length: number;
  readonly words: readonly number[];

  constructor(text: string) {
    const bytes = Buffer.from(text);
    const padded = Buffer.concat([bytes, Buffer.alloc(3)]);
    this.length = bytes.length;
    this.words = Array.from({ length: Math.ceil(bytes.length / 4) }, (_, index) =>
      padded.readInt32LE(index * 4),
    );
  }
}

/** Writes static text. It also writes up to three bytes of padding, which the next text overwrites. */
export function writeStatic(sink: Sink, { words, length }: StaticText): void {
  reserve(sink, length + 3);
  const { view, pos } = sink;
  for (let i = 0, at = pos; i < words.length; i++, at += 4) view.setInt32(at, words[i] as number, true);
  sink.pos = pos + length;
}

export const NULL: StaticText = new StaticText('null');
export const TRUE: StaticText = new StaticText('true');
export const FALSE: StaticText = new StaticText('false');
