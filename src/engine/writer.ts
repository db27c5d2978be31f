import { LONG_TEXT, writeLongText } from './long-text.ts';
import type { BufferPool, Page } from './pool.ts';

/** Where JSON bytes go: a buffer that is exchanged for larger ones, and the position behind the last byte. */
export interface Sink {
  page: Page;
  /** The page's. */
  buf: Buffer;
  view: DataView;
  pos: number;
  readonly pool: BufferPool;
}

const QUOTE = 34;
const BACKSLASH = 92;
/** The highest five bits of UTF-16 units that are half a character. */
const SURROGATES = 0xd800;
const LONG_JSON = 1000;

/** 1 for an ASCII character that stands for itself in a JSON string. */
const PLAIN = new Uint8Array(128).fill(1, 32, 127);
PLAIN[QUOTE] = 0;
PLAIN[BACKSLASH] = 0;

/** Makes room for so many bytes. */
export function reserve(sink: Sink, bytes: number): void {
  if (sink.pos + bytes > sink.buf.length) grow(sink, bytes);
}

function grow(sink: Sink, bytes: number): void {
  hold(sink, sink.pool.enlarge(sink.page, sink.pos, sink.pos + bytes));
}

/** Writes into another page from now on. */
export function hold(sink: Sink, page: Page): void {
  sink.page = page;
  sink.buf = page.buf;
  sink.view = page.view;
}

/** One ASCII character. */
export function writeByte(sink: Sink, byte: number): void {
  if (sink.pos === sink.buf.length) grow(sink, 1);
  sink.buf[sink.pos++] = byte;
}

/** A string as JSON, quoted and escaped as JSON.stringify does. */
export function writeText(sink: Sink, text: string): void {
  const length = text.length;
  if (length > LONG_TEXT) {
    writeLongText(sink, text);
    return;
  }
  let pos = sink.pos;
  // A UTF-16 unit takes three bytes at most.
  if (pos + length * 3 + 2 > sink.buf.length) grow(sink, length * 3 + 2);
  const buf = sink.buf;
  buf[pos++] = QUOTE;
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i);
    if (code < 128 && PLAIN[code] === 1) buf[pos++] = code;
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

/** The UTF-8 of a character of two or three bytes; returns the position behind it. */
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

/** JSON text made elsewhere. A UTF-16 unit takes three bytes at most: counting them is worth it where much would be left empty. */
export function writeJson(sink: Sink, json: string): void {
  reserve(sink, json.length < LONG_JSON ? json.length * 3 : Buffer.byteLength(json));
  sink.pos += sink.buf.write(json, sink.pos, 'utf8');
}
