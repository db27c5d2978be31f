/** Where JSON bytes go: one growing buffer and the position behind the last byte. */
export interface Sink {
  buf: Buffer;
  pos: number;
}

const QUOTE = 34;
const BACKSLASH = 92;
const MINUS = 45;
const ZERO = 48;
/** Up to here a loop that copies and escapes beats any test followed by a native write. */
const LONG_TEXT = 200;
const NEEDS_ESCAPE = /[^ !#-[\]-~]/;

/** 1 for an ASCII character that stands for itself in a JSON string. */
const PLAIN = new Uint8Array(128).fill(1, 32, 127);
PLAIN[QUOTE] = 0;
PLAIN[BACKSLASH] = 0;

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

function writeLongText(sink: Sink, text: string): void {
  if (NEEDS_ESCAPE.test(text)) {
    writeJson(sink, JSON.stringify(text));
    return;
  }
  reserve(sink, text.length + 2);
  const { buf, pos } = sink;
  buf[pos] = QUOTE;
  buf.write(text, pos + 1, 'latin1');
  buf[pos + text.length + 1] = QUOTE;
  sink.pos = pos + text.length + 2;
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
