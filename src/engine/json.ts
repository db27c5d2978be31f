/** The first bytes of every response. Idle buffers keep them, so that an execution starts writing after them. */
export const RESPONSE_START: Buffer = Buffer.from('{"data":');

/** A working buffer with two views of the same memory. */
export interface PooledBuffer {
  readonly buf: Buffer;
  /** Reads and writes four bytes at any offset. */
  readonly view: DataView;
  /** Reads four bytes at offsets that are multiples of four, which is cheaper. Omits up to three bytes at the end. */
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

/** Adds the views to a buffer. Its offset must be a multiple of four, as it is for memory that is not shared. */
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
function reserve(sink: Sink, bytes: number): void {
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

/** For longer strings a native write followed by a scan of the bytes is faster than a loop over the characters. */
const LONG_STRING = 40;

/**
 * Bytes of the longest UTF-8 character. A write that stops for lack of space has still filled more bytes than
 * `length`.
 */
const MAX_CHARACTER = 4;

const QUOTE = 34;
const BACKSLASH = 92;

/** The escape of each byte: 0 if it needs none, the letter after the backslash, or UNICODE. */
const ESCAPES = new Uint8Array(256);
/** The escape is `\u` and four digits. */
const UNICODE = 1;
ESCAPES.fill(UNICODE, 0, 32);
for (const [character, letter] of ['\bb', '\tt', '\nn', '\ff', '\rr', '""', '\\\\']) {
  ESCAPES[(character as string).charCodeAt(0)] = (letter as string).charCodeAt(0);
}

/** Writes a long string as JSON: one native write of its UTF-8, then escapes where bytes need them. */
function writeLongString(sink: Sink, text: string): void {
  const { length } = text;
  reserve(sink, length + 2 + MAX_CHARACTER);
  const start = sink.pos + 1;
  const end = start + length;
  const bytes = sink.buf.write(text, start);
  // One byte per character: the text is ASCII.
  if (bytes === length) finish(sink, text, firstSpecial(sink, start, end), end);
  else writeNonAscii(sink, text, bytes);
}

/** Finishes a text that is not ASCII, of which the first write has stored `written` bytes. */
function writeNonAscii(sink: Sink, text: string, written: number): void {
  // A lone surrogate has no UTF-8 form; JSON.stringify escapes it. The compile target has no ES2024.
  if (!(text as string & { isWellFormed(): boolean }).isWellFormed()) {
    writeJson(sink, JSON.stringify(text));
    return;
  }
  let bytes = written;
  if (sink.pos + 1 + bytes + MAX_CHARACTER > sink.buf.length) {
    reserve(sink, Buffer.byteLength(text) + 2);
    bytes = sink.buf.write(text, sink.pos + 1);
  }
  const start = sink.pos + 1;
  finish(sink, text, firstSpecialNonAscii(sink, start, start + bytes), start + bytes);
}

/** Adds the quotes around a text that ends at `end`, and the escapes from the first special byte on. */
function finish(sink: Sink, text: string, special: number, end: number): void {
  const last = special === end ? end : escapeInPlace(sink, special, end);
  if (last < 0) {
    writeJson(sink, JSON.stringify(text));
    return;
  }
  const { buf, pos } = sink;
  buf[pos] = QUOTE;
  buf[last] = QUOTE;
  sink.pos = last + 1;
}

/** The offset of the first byte of an ASCII text that needs an escape, or `end`. Tests 16 bytes at a time. */
function firstSpecial({ buf, buffer }: Sink, start: number, end: number): number {
  const { words } = buffer;
  let at = start;
  for (; (at & 3) !== 0 && at < end; at++) if (ESCAPES[buf[at] as number] !== 0) return at;
  let word = at >> 2;
  for (const last = (end >> 2) - 4; word <= last; word += 4) {
    const a = words[word] as number;
    const b = words[word + 1] as number;
    const c = words[word + 2] as number;
    const d = words[word + 3] as number;
    // A subtraction sets the highest bit of a byte below its subtrahend; a borrow can only cause a false
    // positive. The XOR moves quotes (0x22) next to the control characters, so that one subtraction finds
    // both.
    const found =
      ((a ^ 0x02020202) - 0x21212121) |
      ((a ^ 0x5c5c5c5c) - 0x01010101) |
      ((b ^ 0x02020202) - 0x21212121) |
      ((b ^ 0x5c5c5c5c) - 0x01010101) |
      ((c ^ 0x02020202) - 0x21212121) |
      ((c ^ 0x5c5c5c5c) - 0x01010101) |
      ((d ^ 0x02020202) - 0x21212121) |
      ((d ^ 0x5c5c5c5c) - 0x01010101);
    if ((found & 0x80808080) !== 0) break;
  }
  for (at = word << 2; at < end && ESCAPES[buf[at] as number] === 0; at++);
  return at;
}

/** Like `firstSpecial`, for text with non-ASCII characters: bytes whose highest bit is set need no escape. */
function firstSpecialNonAscii({ buf, buffer }: Sink, start: number, end: number): number {
  const { words } = buffer;
  let at = start;
  for (; (at & 3) !== 0 && at < end; at++) if (ESCAPES[buf[at] as number] !== 0) return at;
  let word = at >> 2;
  for (const last = end >> 2; word < last; word++) {
    const four = words[word] as number;
    const found = ((four ^ 0x02020202) - 0x21212121) | ((four ^ 0x5c5c5c5c) - 0x01010101);
    if ((found & ~four & 0x80808080) !== 0) break;
  }
  for (at = word << 2; at < end && ESCAPES[buf[at] as number] === 0; at++);
  return at;
}

/** Inserts escapes between `start` and `end`: returns the new end, or -1 if a byte needs a `\u` escape. */
function escapeInPlace(sink: Sink, start: number, end: number): number {
  const { pos } = sink;
  const length = end - start;
  // `reserve` copies only the bytes before `pos` into a larger buffer.
  sink.pos = end;
  reserve(sink, length + 1);
  sink.pos = pos;
  const { buf } = sink;
  buf.copyWithin(start + length, start, end);
  let to = start;
  for (let from = start + length; from < end + length; from++) {
    const byte = buf[from] as number;
    const letter = ESCAPES[byte] as number;
    if (letter === 0) buf[to++] = byte;
    else if (letter === UNICODE) return -1;
    else {
      buf[to++] = BACKSLASH;
      buf[to++] = letter;
    }
  }
  return to;
}

/** The highest five bits of a surrogate: one half of a character outside the basic multilingual plane. */
const SURROGATES = 0xd800;

/** 1 for an ASCII character that needs no escape in a JSON string. */
const UNESCAPED = new Uint8Array(128).fill(1, 32, 127);
UNESCAPED[QUOTE] = 0;
UNESCAPED[BACKSLASH] = 0;

/** Writes a string as JSON, quoted and escaped as JSON.stringify does. */
export function writeString(sink: Sink, text: string): void {
  const length = text.length;
  if (length > LONG_STRING) {
    writeLongString(sink, text);
    return;
  }
  let pos = sink.pos;
  // A UTF-16 unit needs at most three bytes. The comparison saves a call of `reserve` for each string.
  if (pos + length * 3 + 2 > sink.buf.length) reserve(sink, length * 3 + 2);
  const buf = sink.buf;
  buf[pos++] = QUOTE;
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i);
    if (code < 128 && UNESCAPED[code] === 1) buf[pos++] = code;
    else if (code === QUOTE || code === BACKSLASH) {
      buf[pos++] = BACKSLASH;
      buf[pos++] = code;
    } else if (code > 127 && (code & 0xf800) !== SURROGATES) pos = writeUnit(buf, pos, code);
    else {
      writeJson(sink, JSON.stringify(text));
      return;
    }
  }
  buf[pos++] = QUOTE;
  sink.pos = pos;
}

/** Writes a character of two or three UTF-8 bytes; returns the offset after it. */
function writeUnit(buf: Buffer, pos: number, code: number): number {
  let at = pos;
  if (code < 0x800) buf[at++] = 0xc0 | (code >> 6);
  else {
    buf[at++] = 0xe0 | (code >> 12);
    buf[at++] = 0x80 | ((code >> 6) & 0x3f);
  }
  buf[at++] = 0x80 | (code & 0x3f);
  return at;
}

const MINUS = 45;
const POINT = 46;
const ZERO = 48;

/** Writes a 32-bit integer. */
export function writeInt(sink: Sink, value: number): void {
  reserve(sink, 11);
  const buf = sink.buf;
  let pos = sink.pos;
  // No bitwise operators from here on: 2147483648 does not fit into 32 bits.
  let rest = value;
  if (rest < 0) {
    buf[pos++] = MINUS;
    rest = -rest;
  }
  let end = pos + 1;
  for (let bound = 10; bound <= rest; bound *= 10) end++;
  sink.pos = end;
  do {
    const tens = Math.floor(rest / 10);
    buf[--end] = ZERO + rest - tens * 10;
    rest = tens;
  } while (end > pos);
}

/** Writes a finite number. */
export function writeNumber(sink: Sink, value: number): void {
  if (isInt(value)) writeInt(sink, value);
  else if (!writeDecimal(sink, value)) writeAscii(sink, String(value));
}

/**
 * Writes a number with at most two decimal places; returns false for any other. Decimals of up to 15 digits
 * are distinct as doubles, so no shorter decimal exists and JavaScript prints the same digits.
 */
function writeDecimal(sink: Sink, value: number): boolean {
  const hundredths = Math.round(value * 100);
  if (!isInt(hundredths) || hundredths / 100 !== value) return false;
  const whole = Math.trunc(value);
  const rest = Math.abs(hundredths - whole * 100);
  // The whole part of -0.5 has no sign.
  if (value < 0 && whole === 0) writeByte(sink, MINUS);
  writeInt(sink, whole);
  reserve(sink, 3);
  const { buf } = sink;
  const tenths = Math.floor(rest / 10);
  buf[sink.pos++] = POINT;
  buf[sink.pos++] = ZERO + tenths;
  if (rest > tenths * 10) buf[sink.pos++] = ZERO + rest - tenths * 10;
  return true;
}

/** Writes short ASCII text, such as the digits of a number. */
function writeAscii(sink: Sink, text: string): void {
  const length = text.length;
  let pos = sink.pos;
  reserve(sink, length);
  const buf = sink.buf;
  for (let i = 0; i < length; i++) buf[pos++] = text.charCodeAt(i);
  sink.pos = pos;
}

/** Returns true for a 32-bit integer. */
export function isInt(value: unknown): value is number {
  return typeof value === 'number' && (value | 0) === value;
}
