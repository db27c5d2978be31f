/** Where JSON bytes go: one growing buffer and the position behind the last byte. */
export interface Sink {
  buf: Buffer;
  pos: number;
}

const QUOTE = 34;
const BACKSLASH = 92;
const MINUS = 45;
const ZERO = 48;
/** From here on a native write followed by a look at the bytes beats a loop over the characters. */
const LONG_TEXT = 40;

/** 1 for an ASCII character that stands for itself in a JSON string. */
const PLAIN = new Uint8Array(128).fill(1, 32, 127);
PLAIN[QUOTE] = 0;
PLAIN[BACKSLASH] = 0;

/** How many escapes a byte needs; control characters and what is not ASCII need some of another kind. */
const OTHERS = 2 ** 30;
const ESCAPES = new Int32Array(256).fill(OTHERS, 0, 32);
ESCAPES[QUOTE] = 1;
ESCAPES[BACKSLASH] = 1;

/** Makes room for so many bytes. */
export function reserve(sink: Sink, bytes: number): void {
  if (sink.pos + bytes > sink.buf.length) grow(sink, bytes);
}

function grow(sink: Sink, bytes: number): void {
  const larger = Buffer.allocUnsafeSlow(Math.max(sink.buf.length * 2, sink.pos + bytes));
  sink.buf.copy(larger, 0, 0, sink.pos);
  sink.buf = larger;
}

/** One ASCII character. */
export function writeByte(sink: Sink, byte: number): void {
  if (sink.pos === sink.buf.length) grow(sink, 1);
  sink.buf[sink.pos++] = byte;
}

/** Short bytes prepared at compile time. */
export function writeBytes(sink: Sink, bytes: Buffer): void {
  const length = bytes.length;
  let pos = sink.pos;
  if (pos + length > sink.buf.length) grow(sink, length);
  const buf = sink.buf;
  for (let i = 0; i < length; i++) buf[pos++] = bytes[i] as number;
  sink.pos = pos;
}

/** A key and a string in one go. */
export function writeKeyText(sink: Sink, key: Buffer, text: string): void {
  const length = text.length;
  if (length > LONG_TEXT) {
    writeBytes(sink, key);
    writeLongText(sink, text);
    return;
  }
  const count = key.length;
  let pos = sink.pos;
  const start = pos + count;
  if (start + length * 2 + 2 > sink.buf.length) grow(sink, count + length * 2 + 2);
  const buf = sink.buf;
  for (let i = 0; i < count; i++) buf[pos++] = key[i] as number;
  buf[pos++] = QUOTE;
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i);
    if (code < 128 && PLAIN[code] === 1) buf[pos++] = code;
    else if (code === QUOTE || code === BACKSLASH) {
      buf[pos++] = BACKSLASH;
      buf[pos++] = code;
    } else {
      sink.pos = start;
      writeJson(sink, JSON.stringify(text));
      return;
    }
  }
  buf[pos++] = QUOTE;
  sink.pos = pos;
}

/** A string as JSON, quoted and escaped as JSON.stringify does. */
export function writeText(sink: Sink, text: string): void {
  const length = text.length;
  if (length > LONG_TEXT) {
    writeLongText(sink, text);
    return;
  }
  let pos = sink.pos;
  if (pos + length * 2 + 2 > sink.buf.length) grow(sink, length * 2 + 2);
  const buf = sink.buf;
  buf[pos++] = QUOTE;
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i);
    if (code < 128 && PLAIN[code] === 1) buf[pos++] = code;
    else if (code === QUOTE || code === BACKSLASH) {
      buf[pos++] = BACKSLASH;
      buf[pos++] = code;
    } else {
      writeJson(sink, JSON.stringify(text));
      return;
    }
  }
  buf[pos++] = QUOTE;
  sink.pos = pos;
}

/** As many bytes as characters: it is ASCII, and what is left to do is to escape in place. */
function writeLongText(sink: Sink, text: string): void {
  const { length } = text;
  reserve(sink, length * 2 + 2);
  const { buf, pos } = sink;
  const end = pos + 1 + length;
  let escapes = OTHERS;
  if (buf.write(text, pos + 1) === length) {
    escapes = 0;
    for (let i = pos + 1; i < end; i++) escapes += ESCAPES[buf[i] as number] as number;
  }
  if (escapes >= OTHERS) {
    writeJson(sink, JSON.stringify(text));
    return;
  }
  if (escapes > 0) escapeInPlace(buf, end, escapes);
  buf[pos] = QUOTE;
  buf[end + escapes] = QUOTE;
  sink.pos = end + escapes + 1;
}

/** Moves the text that ends at `end` apart, from behind, to put so many backslashes in. */
function escapeInPlace(buf: Buffer, end: number, escapes: number): void {
  let to = end + escapes;
  for (let from = end - 1; to > from + 1; from--) {
    const byte = buf[from] as number;
    buf[--to] = byte;
    if (byte === QUOTE || byte === BACKSLASH) buf[--to] = BACKSLASH;
  }
}

/** JSON text made elsewhere. A UTF-16 unit takes three bytes at most. */
export function writeJson(sink: Sink, json: string): void {
  reserve(sink, json.length * 3);
  sink.pos += sink.buf.write(json, sink.pos, 'utf8');
}

/** A 32-bit integer. */
export function writeInt(sink: Sink, value: number): void {
  if (sink.pos + 11 > sink.buf.length) grow(sink, 11);
  const buf = sink.buf;
  let pos = sink.pos;
  // Not a bitwise number from here on: -2147483648 has no positive twin in 32 bits.
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

/** Short ASCII text, such as a number's. */
export function writeAscii(sink: Sink, text: string): void {
  const length = text.length;
  let pos = sink.pos;
  if (pos + length > sink.buf.length) grow(sink, length);
  const buf = sink.buf;
  for (let i = 0; i < length; i++) buf[pos++] = text.charCodeAt(i);
  sink.pos = pos;
}

export const NULL: Buffer = Buffer.from('null');
export const TRUE: Buffer = Buffer.from('true');
export const FALSE: Buffer = Buffer.from('false');

/** True for a 32-bit integer. */
export function isInt(value: unknown): value is number {
  return typeof value === 'number' && (value | 0) === value;
}
