import { validateHeaderValue } from 'node:http';
import type { StaticFilesOptions } from '../../types/static.ts';
import { assertSync, wrongReturnValue } from '../options/resolve-options.ts';
import { STATIC_OPTIONS } from '../options/scopes.ts';

/**
 * Returns the `Cache-Control` value for a file, given as its path below the root; undefined sends no header.
 */
export type FileCacheControl = (filePath: string) => string | undefined;

export const ACCEPTED_CACHE_CONTROL =
  'a boolean, a Cache-Control value, or a function that returns one of these or undefined';

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
// The strings that the package `ms` accepts.
const DURATION = /^(-?\d*\.?\d+) *(ms|s|m|h|d|w|y)$/i;

/**
 * Converts a `maxAge` option to milliseconds, at least 0 and at most a year; undefined for an invalid value.
 * Null is 0, as in serve-static.
 */
export function parseMaxAge(value: unknown): number | undefined {
  if (value === null) return 0;
  const age =
    typeof value === 'number' ? value : typeof value === 'string' ? parseDuration(value) : Number.NaN;
  return Number.isNaN(age) ? undefined : Math.min(Math.max(age, 0), YEAR);
}

function parseDuration(text: string): number {
  const match = DURATION.exec(abbreviateUnit(text.trim()));
  return Number(match?.[1]) * (UNITS[match?.[2]?.toLowerCase() ?? ''] ?? Number.NaN);
}

/** Turns `2 days` and `30 min` into `2 d` and `30 m`; a number without a unit is in milliseconds. */
function abbreviateUnit(text: string): string {
  if (/^-?\d*\.?\d+$/.test(text)) return `${text}ms`;
  return text
    .replace(/milliseconds?$|msecs?$/i, 'ms')
    .replace(/seconds?$|secs?$/i, 's')
    .replace(/minutes?$|mins?$/i, 'm')
    .replace(/hours?$|hrs?$/i, 'h')
    .replace(/days?$/i, 'd')
    .replace(/weeks?$/i, 'w')
    .replace(/years?$|yrs?$/i, 'y');
}

/** Whether a value is a boolean or may be sent as a header. */
export function isCacheControl(value: unknown): value is string | boolean {
  if (typeof value === 'boolean') return true;
  if (typeof value !== 'string' || value.trim() === '') return false;
  try {
    validateHeaderValue('Cache-Control', value);
    return true;
  } catch {
    return false;
  }
}

/** Combines the options `cacheControl`, `maxAge` and `immutable` into one function of the file. */
export function cacheControlFor(
  option: NonNullable<StaticFilesOptions['cacheControl']>,
  maxAge: StaticFilesOptions['maxAge'],
  immutable: NonNullable<StaticFilesOptions['immutable']>,
): FileCacheControl {
  if (option === false) return () => undefined;
  if (typeof option === 'string') return () => option;
  const byAge = cacheControlByAge(maxAge, immutable);
  if (option === true) return byAge;
  return (filePath) => {
    const value = assertSync(option(filePath), STATIC_OPTIONS, 'cacheControl');
    if (value === undefined || value === true) return byAge(filePath);
    if (value === false) return undefined;
    if (isCacheControl(value)) return value;
    throw wrongReturnValue(STATIC_OPTIONS, 'cacheControl', value, ACCEPTED_CACHE_CONTROL);
  };
}

/** Builds the possible header values once, so that loading a file only selects one of them. */
function cacheControlByAge(
  maxAge: StaticFilesOptions['maxAge'],
  immutable: NonNullable<StaticFilesOptions['immutable']>,
): FileCacheControl {
  const mutableValue = `public, max-age=${seconds(parseMaxAge(maxAge) ?? 0)}`;
  if (immutable === false) return () => mutableValue;
  if (immutable === true) {
    const value = `public, max-age=${seconds(parseMaxAge(maxAge) ?? YEAR)}, immutable`;
    return () => value;
  }
  const immutableValue = `public, max-age=${seconds(YEAR)}, immutable`;
  const isImmutable =
    typeof immutable === 'function'
      ? (filePath: string) => assertSync(immutable(filePath), STATIC_OPTIONS, 'immutable')
      : statelessMatcher(immutable);
  return (filePath) => (isImmutable(filePath) ? immutableValue : mutableValue);
}

/** Removes the flags `g` and `y`, which would make `test` continue after the last match. */
function statelessMatcher(pattern: RegExp): (filePath: string) => boolean {
  const stateless = new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, ''));
  return (filePath) => stateless.test(filePath);
}

function seconds(milliseconds: number): number {
  // By convention a year in Cache-Control has 365 days.
  return Math.min(Math.floor(milliseconds / 1000), 31_536_000);
}
