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
/** From here on a native write followed by a look at the bytes beats a loop over the characters. */
const LONG_TEXT = 40;
const LONG_JSON = 1000;
/** A UTF-8 character: text that is cut off for want of room has filled more bytes than it has characters all the same. */
const CHARACTER = 4;

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

/** As many bytes as characters: it is ASCII, and what is left to do is to look for what needs an escape. */
function writeLongText(sink: Sink, text: string): void {
  const { length } = text;
  reserve(sink, length + 2 + CHARACTER);
  const { pos } = sink;
  const end = pos + 1 + length;
  if (sink.buf.write(text, pos + 1) !== length) {
    writeJson(sink, JSON.stringify(text));
    return;
  }
  const special = firstSpecial(sink, pos + 1, end);
  const last = special === end ? end : escapeBehind(sink, special, end);
  if (last < 0) {
    writeJson(sink, JSON.stringify(text));
    return;
  }
  sink.buf[pos] = QUOTE;
  sink.buf[last] = QUOTE;
  sink.pos = last + 1;
}

/** The first ASCII byte that does not stand for itself, or one at most 15 in front of it: 16 are looked at together. */
function firstSpecial({ buf, page }: Sink, start: number, end: number): number {
  const { words } = page;
  let at = start;
  for (; (at & 3) !== 0 && at < end; at++) if (PLAIN[buf[at] as number] !== 1) return at;
  let word = at >> 2;
  for (const last = (end >> 2) - 4; word <= last; word += 4) {
    const a = words[word] as number;
    const b = words[word + 1] as number;
    const c = words[word + 2] as number;
    const d = words[word + 3] as number;
    // A subtraction sets the highest bit of a byte below its subtrahend; borrows only make us look too closely.
    // Quotes (0x22) are put right behind the control characters, so that one subtraction finds both.
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
  for (at = word << 2; at < end && PLAIN[buf[at] as number] === 1; at++);
  return at;
}

/** Moves the text from `start` to `end` out of the way and back with its escapes: its new end, or -1 for a control character. */
function escapeBehind(sink: Sink, start: number, end: number): number {
  const { pos } = sink;
  const away = end - pos;
  // What is written already has to come along where there is no room.
  sink.pos = end;
  reserve(sink, away);
  sink.pos = pos;
  const { buf } = sink;
  buf.copyWithin(start + away, start, end);
  let to = start;
  for (let from = start + away; from < end + away; from++) {
    const byte = buf[from] as number;
    if (byte === QUOTE || byte === BACKSLASH) buf[to++] = BACKSLASH;
    else if (byte < 32) return -1;
    buf[to++] = byte;
  }
  return to;
}

/** JSON text made elsewhere. A UTF-16 unit takes three bytes at most: counting them is worth it where much would be left empty. */
export function writeJson(sink: Sink, json: string): void {
  reserve(sink, json.length < LONG_JSON ? json.length * 3 : Buffer.byteLength(json));
  sink.pos += sink.buf.write(json, sink.pos, 'utf8');
}
