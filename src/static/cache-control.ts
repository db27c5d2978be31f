import { validateHeaderValue } from 'node:http';
import { types } from 'node:util';
import type { CacheControlRule, StaticFilesOptions } from '../../types/static.ts';
import { assertSync, seconds, wrongReturnValue } from '../options/rules.ts';
import { STATIC_OPTIONS } from '../options/scopes.ts';
import { isFunction, isString } from '../options/values.ts';

// The names that build tools give to files with a hash of their content. A file that a pattern misses is revalidated, and one
// that it takes wrongly would be stale for a year: so a hash has to look like one, and not like a word or a date.

/** A word, a number or a size such as `1200x630`. */
const WORD = '(?:[A-Z]?[a-z]*\\d*|[A-Z]+\\d*|\\d+x\\d+)';
/** Eight characters of base64url that are not only words, numbers and sizes. */
const HASH = `(?=[\\w-]{8}\\.)(?!(?:${WORD}[-_])*${WORD}\\.)[\\w-]{8}`;

/** The files of each build tool that never change under their name, by their path below the root. */
const HASHED_FILES: ReadonlyMap<unknown, RegExp> = new Map([
  ['astro', /^\/_astro\//],
  ['next', /^\/_next\/static\//],
  // VitePress has a dot before the hash.
  ['vite', new RegExp(`^/assets/.*[-.]${HASH}\\.[\\w.]+$`)],
  // Hexadecimal digits, with a word such as `chunk` behind them, which is short: clients choose the paths.
  ['webpack', /[./-](?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,32}\.[\w.]{1,60}$/],
  // Eight characters of base32 from esbuild; the chunks of Rolldown are beside files of the application. Folders of languages are
  // above.
  [
    'angular',
    new RegExp(
      `/[^/]*-[A-Z2-7]{8}\\.m?(?:js|css)(?:\\.map)?$|/media/[^/]*-[A-Z2-7]{8}\\.\\w+$|/(?:chunk|main|polyfills|styles|scripts)-${HASH}\\.(?:js|css)(?:\\.map)?$`,
    ),
  ],
]);

/** The names that may have a hash, also one that looks like a word or a number, where `HASHED_FILES` leaves them out. */
const POSSIBLE_HASHES: ReadonlyMap<unknown, RegExp> = new Map([
  ['vite', /^\/assets\/.*[-.][\w-]{8}\.[\w.]+$/],
  ['webpack', /[./-][0-9a-f]{8,32}\.[\w.]{1,60}$/],
  ['angular', /\/[^/]*-[\w-]{8}\.(?:js|css)(?:\.map)?$/],
]);

const PAGE = /\.x?html?$/i;
const YEAR = 31_536_000;
const REVALIDATED = 'public, max-age=0';
const IMMUTABLE = `public, max-age=${YEAR}, immutable`;
const ACCEPTED_VALUE = "a duration such as '1h', 'immutable', a Cache-Control value, false";

/** The option `cacheControl` after checks. */
export interface CacheControlSettings {
  /** Returns the value for a file, given as its path below the root: undefined sends no header. */
  readonly cacheControl: (filePath: string) => string | undefined;
  /** Whether some file may be immutable. */
  readonly mayBeImmutable: boolean;
  /** Whether a name may have a hash although the file is not immutable. */
  readonly mayHaveHash: (filePath: string) => boolean;
}

type Given = StaticFilesOptions['cacheControl'];
type Value = string | false;
/** What a rule says about a file; undefined if it does not apply. */
type FileRule = (filePath: string) => Value | undefined;

export const ACCEPTED_CACHE_CONTROL: string = `a build tool (${[...HASHED_FILES.keys()].join(', ')}), a RegExp of immutable files, ${ACCEPTED_VALUE}, a function of the path, or a list of these`;

export const isCacheControlOption = (given: unknown): boolean =>
  [given]
    .flat()
    .every((rule) => isFunction(rule) || types.isRegExp(rule) || HASHED_FILES.has(rule) || isValue(rule));

/** Whether a value is `false`, a duration or a header. A single word that is no directive is a misspelt name, and a number has no unit. */
function isValue(value: unknown): value is Value {
  if (!isString(value)) return value === false;
  return (
    secondsOf(value) !== undefined ||
    (isHeader(value) && !/^(?:-?\d|(?!(?:public|private|immutable)$)\w+$)/i.test(value))
  );
}

export function isHeader(value: string): boolean {
  try {
    validateHeaderValue('Cache-Control', value);
    return value.trim() !== '';
  } catch {
    return false;
  }
}

/** The seconds of a duration, at most a year; undefined for another text. */
function secondsOf(text: string): number | undefined {
  const age = Number(seconds(0).read?.(text));
  return Number.isNaN(age) ? undefined : Math.min(Math.floor(age), YEAR);
}

export function resolveCacheControl(
  given: Given,
  { fallback }: Pick<StaticFilesOptions, 'fallback'>,
): CacheControlSettings {
  const rules: readonly CacheControlRule[] = [given ?? []].flat();
  // A page names the assets of its build, which the next deployment may remove.
  const isSinglePage = fallback !== undefined || rules.some((rule) => HASHED_FILES.has(rule));
  const fileRules = rules.map((rule) => fileRuleOf(rule, isSinglePage));
  const possible = rules.flatMap((rule) => POSSIBLE_HASHES.get(rule) ?? []);
  return {
    cacheControl: (filePath) => {
      for (const rule of fileRules) {
        const value = rule(filePath);
        if (value !== undefined) return value === false ? undefined : value;
      }
      return REVALIDATED;
    },
    mayBeImmutable: rules.some(
      (rule) => rule !== false && (!isString(rule) || HASHED_FILES.has(rule) || isImmutable(rule)),
    ),
    mayHaveHash: (filePath) => possible.some((pattern) => pattern.test(filePath)),
  };
}

function fileRuleOf(rule: CacheControlRule, isSinglePage: boolean): FileRule {
  if (types.isRegExp(rule)) {
    // The flags `g` and `y` would make `test` continue after the last match.
    const pattern = new RegExp(rule.source, rule.flags.replace(/[gy]/g, ''));
    return (filePath) => (pattern.test(filePath) ? IMMUTABLE : undefined);
  }
  const hashed = HASHED_FILES.get(rule);
  if (hashed !== undefined)
    return (filePath) => (hashed.test(filePath) && !PAGE.test(filePath) ? IMMUTABLE : undefined);
  if (typeof rule !== 'function') return valueRule(rule, isSinglePage);
  return (filePath) => {
    const value: unknown = assertSync(rule(filePath), STATIC_OPTIONS, 'cacheControl');
    if (value === undefined) return undefined;
    if (isValue(value)) return valueRule(value, false)(filePath);
    throw wrongReturnValue(STATIC_OPTIONS, 'cacheControl', value, `${ACCEPTED_VALUE}, or undefined`);
  };
}

function valueRule(value: Value, isSinglePage: boolean): FileRule {
  const age = value === false ? undefined : secondsOf(value);
  if (age === undefined) return () => (value === 'immutable' ? IMMUTABLE : value);
  const header = `public, max-age=${age}`;
  return (filePath) => (isSinglePage && PAGE.test(filePath) ? undefined : header);
}

/** Whether a `Cache-Control` value says that a file never changes under its name. */
export const isImmutable = (cacheControl: string | undefined): boolean =>
  cacheControl !== undefined && /\bimmutable\b/.test(cacheControl);
