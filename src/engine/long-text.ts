import { reserve, type Sink, writeJson } from './writer.ts';

/** From here on a native write followed by a look at the bytes beats a loop over the characters. */
export const LONG_TEXT = 40;

/** A UTF-8 character: text that is cut off for want of room has filled more bytes than it has characters all the same. */
const CHARACTER = 4;

const QUOTE = 34;
const BACKSLASH = 92;

/** For each byte: 0 when it stands for itself in a JSON string, the letter behind the backslash, or UNICODE. */
const ESCAPES = new Uint8Array(256);
/** The escape has six characters. */
const UNICODE = 1;
ESCAPES.fill(UNICODE, 0, 32);
for (const [character, letter] of ['\bb', '\tt', '\nn', '\ff', '\rr', '""', '\\\\']) {
  ESCAPES[(character as string).charCodeAt(0)] = (letter as string).charCodeAt(0);
}

/** Since ES2024. */
interface WellFormed {
  isWellFormed(): boolean;
}

/** A long string as JSON: its UTF-8 in one native write, then escapes where its bytes need them. */
export function writeLongText(sink: Sink, text: string): void {
  const { length } = text;
  reserve(sink, length + 2 + CHARACTER);
  const start = sink.pos + 1;
  const end = start + length;
  const bytes = sink.buf.write(text, start);
  // As many bytes as characters: it is ASCII.
  if (bytes === length) finish(sink, text, firstSpecial(sink, start, end), end);
  else writeOther(sink, text, bytes);
}

/** Text that is not ASCII, of which so many bytes have been written already. */
function writeOther(sink: Sink, text: string, written: number): void {
  // Half a character has no UTF-8, but an escape.
  if (!(text as string & WellFormed).isWellFormed()) {
    writeJson(sink, JSON.stringify(text));
    return;
  }
  let bytes = written;
  if (sink.pos + 1 + bytes + CHARACTER > sink.buf.length) {
    reserve(sink, Buffer.byteLength(text) + 2);
    bytes = sink.buf.write(text, sink.pos + 1);
  }
  const start = sink.pos + 1;
  finish(sink, text, firstSpecialOfOther(sink, start, start + bytes), start + bytes);
}

/** Puts the quotes around a text that has been written up to `end`, and escapes from the first special byte on. */
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

/** The first ASCII byte that does not stand for itself, or one at most 15 in front of it: 16 are looked at together. */
function firstSpecial({ buf, page }: Sink, start: number, end: number): number {
  const { words } = page;
  let at = start;
  for (; (at & 3) !== 0 && at < end; at++) if (ESCAPES[buf[at] as number] !== 0) return at;
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
  for (at = word << 2; at < end && ESCAPES[buf[at] as number] === 0; at++);
  return at;
}

/** The same among bytes of other characters, whose highest bit is set. */
function firstSpecialOfOther({ buf, page }: Sink, start: number, end: number): number {
  const { words } = page;
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

/** Moves the text from `start` to `end` out of the way and back with its escapes: its new end, or -1 where one has no letter. */
function escapeInPlace(sink: Sink, start: number, end: number): number {
  const { pos } = sink;
  const away = end - start;
  // What is written already has to come along where there is no room.
  sink.pos = end;
  reserve(sink, away + 1);
  sink.pos = pos;
  const { buf } = sink;
  buf.copyWithin(start + away, start, end);
  let to = start;
  for (let from = start + away; from < end + away; from++) {
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
