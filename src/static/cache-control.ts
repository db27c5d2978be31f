import type { StaticFilesOptions } from '../../types/static.ts';
import { assertSync } from '../options/assert-sync.ts';
import { STATIC_OPTIONS } from '../options/scopes.ts';

/** The `Cache-Control` value of a path below the mount; undefined: none is sent. */
export type CacheControl = (path: string) => string | undefined;

const YEAR = 365.25 * 24 * 60 * 60 * 1000;
const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
  y: YEAR,
};
const DURATION = /^(\d+(?:\.\d+)?) ?(ms|s|m|h|d|w|y)$/i;

/** Milliseconds of a `maxAge`, at most a year; undefined when it is none. */
export function parseMaxAge(value: unknown): number | undefined {
  if (typeof value === 'number') return value >= 0 ? Math.min(value, YEAR) : undefined;
  if (typeof value !== 'string') return undefined;
  const match = DURATION.exec(longNames(value.trim()));
  const unit = UNITS[match?.[2]?.toLowerCase() ?? ''];
  return unit === undefined ? undefined : Math.min(Number(match?.[1]) * unit, YEAR);
}

/** `2 days` and `30 min` as well as `2d` and `30m`; a bare number is milliseconds. */
function longNames(text: string): string {
  if (/^\d+(\.\d+)?$/.test(text)) return `${text}ms`;
  return text
    .replace(/milliseconds?$|msecs?$/i, 'ms')
    .replace(/seconds?$|secs?$/i, 's')
    .replace(/minutes?$|mins?$/i, 'm')
    .replace(/hours?$|hrs?$/i, 'h')
    .replace(/days?$/i, 'd')
    .replace(/weeks?$/i, 'w')
    .replace(/years?$|yrs?$/i, 'y');
}

/** Chooses the header's value once per kind of file. */
export function cacheControlFor(
  enabled: boolean,
  maxAge: StaticFilesOptions['maxAge'],
  immutable: NonNullable<StaticFilesOptions['immutable']>,
): CacheControl {
  if (!enabled) return () => undefined;
  const ordinary = `public, max-age=${seconds(parseMaxAge(maxAge) ?? 0)}`;
  if (immutable === false) return () => ordinary;
  if (immutable === true) {
    const all = `public, max-age=${seconds(parseMaxAge(maxAge) ?? YEAR)}, immutable`;
    return () => all;
  }
  const hashed = `public, max-age=${seconds(YEAR)}, immutable`;
  const test =
    typeof immutable === 'function'
      ? (path: string) => assertSync(immutable(path), STATIC_OPTIONS, 'immutable')
      : matcher(immutable);
  return (path) => (test(path) ? hashed : ordinary);
}

/** Without the flags that make a RegExp remember where it stopped. */
function matcher(pattern: RegExp): (path: string) => boolean {
  const stateless = new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, ''));
  return (path) => stateless.test(path);
}

function seconds(milliseconds: number): number {
  // A year of 365 days is what "for ever" is written as.
  return Math.min(Math.floor(milliseconds / 1000), 31_536_000);
}
