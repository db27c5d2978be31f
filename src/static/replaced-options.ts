import { formatValue } from '../options/format-value.ts';
import { wrongOption } from '../options/resolve-options.ts';
import { isObject, isString, type Rules } from '../options/rules.ts';
import { STATIC_OPTIONS } from '../options/scopes.ts';
import type { ResolvedOptions } from './option-rules.ts';

const VIEW = 'a request selects a part of a file with the Range header';

/** Replacements for options of serve-static, send, sirv and @fastify/static, for error messages. */
export const REPLACED_OPTIONS: Readonly<Record<string, string>> = {
  start: VIEW,
  end: VIEW,
  hidden: "use dotfiles: 'allow'",
  from: 'pass the directory as the first argument',
  root: 'pass the directory as the first argument',
  highWaterMark: 'the size of read buffers adapts to the load',
  gzip: "use precompressed: ['gzip']",
  brotli: "use precompressed: ['br']",
  preCompressed: 'use "precompressed"',
  single: "use fallback: 'index.html'",
  ignores: 'only page navigations get the "fallback" page',
  onNoMatch: 'mount a handler after staticFiles',
  dev: 'leave it out: files are always current',
  prefix: "mount the middleware with app.use('/prefix', staticFiles(dir))",
  wildcard: 'leave it out: files that are added later are served',
  list: 'mount a directory listing after staticFiles',
  allowedPath: 'mount a middleware that checks the path before staticFiles',
};

// The conversions of option values in express.static and send; undefined if they reject a value too.
const toBoolean = (value: unknown): unknown => Boolean(value);
const unlessFalse = (value: unknown): unknown => value !== false;
const listOrFalse = (value: unknown): unknown => (value ? undefined : false);

/** Symbols, and objects without a primitive value, cannot be converted. */
function toNumber(value: unknown): number | undefined {
  try {
    return Number(value) || 0;
  } catch {
    return undefined;
  }
}

const CONVERSIONS: Readonly<Record<string, (value: unknown) => unknown>> = {
  acceptRanges: toBoolean,
  cacheControl: toBoolean,
  etag: toBoolean,
  lastModified: toBoolean,
  immutable: toBoolean,
  fallthrough: unlessFalse,
  redirect: unlessFalse,
  index: listOrFalse,
  extensions: listOrFalse,
  maxAge: (value) => (isString(value) ? 0 : toNumber(value)),
  setHeaders: (value) => (value ? undefined : 'no function'),
};

/**
 * Throws for a value that express.static accepts by conversion, such as `fallthrough: 0`. The message
 * contains the value that has the same meaning.
 */
export function rejectCoercedValues(given: unknown, rules: Rules<ResolvedOptions>): void {
  if (!isObject(given)) return;
  for (const name of Object.keys(CONVERSIONS) as (keyof ResolvedOptions)[]) {
    const value = given[name];
    const { accepts, accepted } = rules[name];
    if (value === undefined || accepts(value)) continue;
    const meaning = CONVERSIONS[name]?.(value);
    if (meaning === undefined) continue;
    const text = isString(meaning) ? meaning : formatValue(meaning);
    throw wrongOption(STATIC_OPTIONS, name, value, `${accepted}. express.static treats it as ${text}`);
  }
}
