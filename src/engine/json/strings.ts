import { LONG_STRING, writeLongString } from './long-strings.ts';
import { reserve, type Sink, writeJson } from './sink.ts';

const QUOTE = 34;
const BACKSLASH = 92;
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
