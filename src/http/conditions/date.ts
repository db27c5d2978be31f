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
