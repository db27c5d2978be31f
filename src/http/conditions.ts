import type { IncomingHttpHeaders } from 'node:http';

/** The validators of the representation that a 200 response would carry. */
export interface Validators {
  readonly tag: string | undefined;
  /** Milliseconds since the epoch, rounded down to whole seconds. */
  readonly modified: number | undefined;
}

/** The result of the preconditions: the normal response, 304, or 412. */
type PreconditionResult = 'proceed' | 'not-modified' | 'failed';

/** Evaluates preconditions (RFC 9110 §13.2.2, steps 1 to 4) of a GET or HEAD whose response would be 200. */
export function checkPreconditions(headers: IncomingHttpHeaders, current: Validators): PreconditionResult {
  const match = headers['if-match'];
  const unmodified = headers['if-unmodified-since'];
  if (match !== undefined) {
    if (!matches(match, current)) return 'failed';
  } else if (unmodified !== undefined && unchangedSince(unmodified, current) === false) return 'failed';

  const none = headers['if-none-match'];
  if (none !== undefined) return noneMatches(none, current) ? 'proceed' : 'not-modified';
  const since = headers['if-modified-since'];
  if (since !== undefined && unchangedSince(since, current)) return 'not-modified';
  return 'proceed';
}

/** Whether `If-Range` permits a partial response: an equal strong tag, or an equal date (RFC 9110 §13.1.5). */
export function rangeIsCurrent(ifRange: string | undefined, current: Validators): boolean {
  if (ifRange === undefined) return true;
  if (ifRange.includes('"')) return current.tag !== undefined && strongMatch(ifRange.trim(), current.tag);
  const date = parseHttpDate(ifRange.trim());
  return date !== undefined && date === current.modified;
}

function matches(list: string, current: Validators): boolean {
  if (list.trim() === '*') return true;
  return current.tag !== undefined && listMatchesStrongly(list, current.tag);
}

function noneMatches(list: string, current: Validators): boolean {
  if (list.trim() === '*') return false;
  return current.tag === undefined || !listMatchesWeakly(list, current.tag);
}

/** Compares a date. Undefined for a malformed or incomparable date: the precondition is ignored (§13.1.3, §13.1.4). */
function unchangedSince(text: string, current: Validators): boolean | undefined {
  const date = parseHttpDate(text.trim());
  if (date === undefined || current.modified === undefined) return undefined;
  return current.modified <= date;
}

/** Returns the opaque part of a tag, without the weak prefix. */
function opaque(tag: string): string {
  return tag.startsWith('W/') ? tag.slice(2) : tag;
}

/** Whether two tags are the same and both strong (RFC 9110 §8.8.3.2). */
function strongMatch(a: string, b: string): boolean {
  return a === b && !a.startsWith('W/');
}

/** Whether an `If-Match` list names `tag`: strong comparison. */
export function listMatchesStrongly(list: string, tag: string): boolean {
  if (tag.startsWith('W/')) return false;
  return hasTag(list, (text, weak) => !weak && text === tag);
}

/** Whether an `If-None-Match` list names `tag`: weak comparison. */
export function listMatchesWeakly(list: string, tag: string): boolean {
  if (list === tag) return true;
  const wanted = opaque(tag);
  return hasTag(list, (text) => text === wanted);
}

/**
 * Whether a tag of a list (RFC 9110 §8.8.3), without its weak prefix, passes a test. Reads from quote to quote, since tags
 * may contain commas. Linear in the length of the list, however malformed it is.
 */
function hasTag(list: string, test: (text: string, weak: boolean) => boolean): boolean {
  let open = list.indexOf('"');
  while (open >= 0) {
    const close = list.indexOf('"', open + 1);
    if (close < 0) return false;
    const text = list.slice(open, close + 1);
    if (test(text, list.slice(open - 2, open) === 'W/')) return true;
    open = list.indexOf('"', close + 1);
  }
  return false;
}

const MONTHS = 'JanFebMarAprMayJunJulAugSepOctNovDec';
const TIME = '(\\d\\d):(\\d\\d):(\\d\\d)';
// RFC 9110 §5.6.7: the fixed format, and the two obsolete formats that a recipient must still accept.
const FIXED = new RegExp(`^[A-Z][a-z]{2}, (\\d\\d) ([A-Z][a-z]{2}) (\\d{4}) ${TIME} GMT$`);
const RFC_850 = new RegExp(`^[A-Z][a-z]{5,8}, (\\d\\d)-([A-Z][a-z]{2})-(\\d\\d) ${TIME} GMT$`);
const ASCTIME = new RegExp(`^[A-Z][a-z]{2} ([A-Z][a-z]{2}) ([ \\d]\\d) ${TIME} (\\d{4})$`);

let last = { time: Number.NaN, text: '' };

/** Formats a time in milliseconds in the fixed format. Files that were deployed together share one string. */
export function formatHttpDate(time: number): string {
  if (time !== last.time) last = { time, text: new Date(time).toUTCString() };
  return last.text;
}

const SECOND = 1000;
const YEAR_0 = Date.parse('0000-01-01');
const YEAR_10000 = Date.UTC(10_000, 0);

/**
 * Rounds a time of modification, in milliseconds, down to a second. A time in the future becomes the present: caches
 * must not get a `Last-Modified` that is later than `Date` (RFC 9110 §8.8.2.1).
 *
 * @returns undefined for NaN and for years without four digits
 */
export function toLastModified(time: number): number | undefined {
  if (!(time >= YEAR_0 && time < YEAR_10000)) return undefined;
  return Math.floor(Math.min(time, Date.now()) / SECOND) * SECOND;
}

/** Returns the milliseconds of an HTTP date; undefined for any other text. */
export function parseHttpDate(text: string): number | undefined {
  let match = FIXED.exec(text);
  if (match !== null) return toTime(Number(match[3]), match[2], match[1], match.slice(4));
  match = RFC_850.exec(text);
  if (match !== null) return toTime(fullYear(Number(match[3])), match[2], match[1], match.slice(4));
  match = ASCTIME.exec(text);
  if (match !== null) return toTime(Number(match[6]), match[1], match[2], match.slice(3, 6));
  return undefined;
}

function toTime(year: number, month = '', day = '', time: readonly string[] = []): number | undefined {
  const index = MONTHS.indexOf(month);
  if (index < 0 || index % 3 !== 0) return undefined;
  const [hours, minutes, seconds] = time.map(Number) as [number, number, number];
  if (Number(day) < 1 || Number(day) > 31 || hours > 23 || minutes > 59 || seconds > 60) return undefined;
  return Date.UTC(year, index / 3, Number(day), hours, minutes, seconds);
}

/** A two-digit year more than 50 years in the future belongs to the past century. */
function fullYear(short: number): number {
  const now = new Date().getUTCFullYear();
  const year = now - (now % 100) + short;
  return year > now + 50 ? year - 100 : year;
}

/** Bytes `start` to `end`, both included. */
export interface ByteRange {
  start: number;
  end: number;
}

const MAX_RANGES = 16;
const SPEC = /^(?:(\d+)-(\d*)|-(\d+))$/;

/**
 * Parses a `Range` header for a representation of `size` bytes (RFC 9110 §14.1.2); merges overlapping and
 * adjacent ranges. Returns undefined for another unit, bad syntax or more than 16 ranges: the header is
 * ignored. Returns an empty list when no range is satisfiable: the status is 416.
 */
export function parseRanges(header: string, size: number): ByteRange[] | undefined {
  if (header.slice(0, 6).toLowerCase() !== 'bytes=') return undefined;
  const specs = header.slice(6).split(',', 4 * MAX_RANGES + 1);
  const ranges: ByteRange[] = [];
  let requested = 0;
  for (const part of specs) {
    const spec = part.trim();
    if (spec === '') continue;
    const range = parseSpec(spec, size);
    if (range === undefined || ++requested > MAX_RANGES) return undefined;
    if (range !== 'unsatisfiable') ranges.push(range);
  }
  return requested === 0 ? undefined : merge(ranges);
}

function parseSpec(spec: string, size: number): ByteRange | 'unsatisfiable' | undefined {
  const match = SPEC.exec(spec);
  if (match === null) return undefined;
  if (match[3] !== undefined) {
    const suffix = Number(match[3]);
    if (suffix === 0) return 'unsatisfiable';
    // Content-Range cannot express zero bytes: a suffix of an empty file is the whole file.
    return size === 0 ? undefined : { start: Math.max(0, size - suffix), end: size - 1 };
  }
  const start = Number(match[1]);
  const last = match[2] === '' ? Number.POSITIVE_INFINITY : Number(match[2]);
  if (last < start) return undefined;
  return start >= size ? 'unsatisfiable' : { start, end: Math.min(last, size - 1) };
}

/** Compares all pairs of ranges, which is cheap for at most 16 ranges. Keeps the requested order. */
function merge(ranges: ByteRange[]): ByteRange[] {
  const merged: ByteRange[] = [];
  for (const range of ranges) {
    let grown = range;
    for (let i = merged.length - 1; i >= 0; i--) {
      const other = merged[i] as ByteRange;
      if (grown.start > other.end + 1 || other.start > grown.end + 1) continue;
      grown = { start: Math.min(grown.start, other.start), end: Math.max(grown.end, other.end) };
      merged.splice(i, 1);
      i = merged.length;
    }
    merged.push(grown);
  }
  return merged;
}
