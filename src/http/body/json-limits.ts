import { HttpError } from '../reply/http-error.ts';

/** A JSON text up to this size is always parsed quickly. */
const SMALL_BYTES = 16 * 1024;
const MAX_LEVELS = 220;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const SPACE = 0x20;
const OPENING = 0x7b;
const CLOSING = 0x7d;

/**
 * Refuses JSON with too many or too deep values, which would block the event loop. Counting is ten times as
 * fast as parsing and allocates no values.
 *
 * @throws HttpError 400.
 */
export function assertJsonWithinLimits(bytes: Buffer, maxValues: number): void {
  if (bytes.length <= SMALL_BYTES) return;
  let values = 0;
  let level = 0;
  let opened = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] as number;
    if (byte <= SPACE) continue;
    // "[" and "{" differ in one bit, and so do "]" and "}".
    const bracket = byte | 0x20;
    if (bracket === CLOSING) {
      level -= 1;
      opened = false;
      continue;
    }
    if (opened || byte === COMMA) values += 1;
    opened = bracket === OPENING;
    if (opened) level += 1;
    else if (byte === QUOTE) at = endOfString(bytes, at);
    if (level > MAX_LEVELS) throw limitExceeded(`is nested deeper than ${MAX_LEVELS} levels`);
    if (values > maxValues) throw limitExceeded(`contains more than ${maxValues} values`);
  }
}

/** Like `assertJsonWithinLimits`, for a string. */
export function assertJsonTextWithinLimits(text: string, maxValues: number): void {
  if (text.length > SMALL_BYTES / 4) assertJsonWithinLimits(Buffer.from(text), maxValues);
}

const limitExceeded = (message: string): HttpError =>
  new HttpError(400, `The JSON of the request ${message}`, { code: 'LIMIT_JSON' });

/**
 * Returns the position of the closing quote of the string that begins at `start`; the text's length if there
 * is none.
 */
function endOfString(bytes: Buffer, start: number): number {
  for (let end = bytes.indexOf(QUOTE, start + 1); end !== -1; end = bytes.indexOf(QUOTE, end + 1)) {
    let first = end;
    while (bytes[first - 1] === BACKSLASH) first -= 1;
    // The quote is escaped only after an odd number of backslashes.
    if ((end - first) % 2 === 0) return end;
  }
  return bytes.length;
}
