import type { BufferPool, PooledBuffer } from './buffer-pool.ts';

/** Receives JSON bytes: a buffer that is replaced by a larger one when it is full, and the offset after the last byte. */
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
 * Writes text that is JSON already. A UTF-16 unit needs at most three bytes of UTF-8; long text is measured exactly,
 * because three times its length would waste memory.
 */
export function writeJson(sink: Sink, json: string): void {
  reserve(sink, json.length < LONG_JSON ? json.length * 3 : Buffer.byteLength(json));
  sink.pos += sink.buf.write(json, sink.pos, 'utf8');
}
