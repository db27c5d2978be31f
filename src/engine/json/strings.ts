import { reserve, type Sink, writeJson } from './buffer.ts';

/**
 * For longer strings a native write followed by a scan of the bytes is faster than a loop over the
 * characters.
 */
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

/** A method of ES2024, which the type definitions of the compile target do not contain. */
interface WellFormed {
  isWellFormed(): boolean;
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
  // A lone surrogate has no UTF-8 form; JSON.stringify escapes it.
  if (!(text as string & WellFormed).isWellFormed()) {
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
