import { types } from 'node:util';
import type { Precompressed, StaticCacheOptions, StaticFilesOptions } from '../../types/static.ts';
import {
  type Filled,
  isBoolean,
  isCount,
  isFunction,
  isListOf,
  isObject,
  isOneOf,
  isString,
  type Rules,
  rule,
  settle,
} from '../options/settle.ts';
import { type CacheControl, cacheControlFor, parseMaxAge } from './cache-control.ts';

/** What `staticFiles` decided from its options, once. */
export interface Settings {
  readonly html: boolean;
  /** Names for `dir/`; empty when directories are not pages. */
  readonly index: readonly string[];
  readonly redirect: boolean;
  readonly fallback: string | undefined;
  readonly fallthrough: boolean;
  readonly dotfiles: 'ignore' | 'deny' | 'allow';
  readonly follow: boolean;
  readonly etag: 'content' | 'stat' | 'none';
  readonly lastModified: boolean;
  readonly acceptRanges: boolean;
  readonly cacheControl: CacheControl;
  readonly extensions: readonly string[];
  readonly precompressed: readonly Precompressed[];
  readonly cache: Readonly<Filled<StaticCacheOptions>>;
  readonly setHeaders: StaticFilesOptions['setHeaders'];
  /** Whether names that Windows reads differently are refused. */
  readonly windows: boolean;
  /** Largest file whose bytes are hashed before its first answer; above it, in the background. */
  readonly hashAtOnce: number;
}

type Given = { [K in keyof StaticFilesOptions]-?: StaticFilesOptions[K] | undefined };

const MIB = 1 << 20;
const CACHE: Readonly<Filled<StaticCacheOptions>> = {
  maxBytes: 64 * MIB,
  maxFileBytes: MIB / 4,
  maxEntries: 4096,
  revalidateAfter: 0,
};
const CODINGS: readonly Precompressed[] = ['br', 'zstd', 'gzip'];

const isName = (value: unknown): boolean => isString(value) && /^[^/\\\0]+$/.test(value as string);
const isNames = isListOf(isName);
const isCodings = isListOf(isOneOf(...CODINGS));
const either =
  (...tests: readonly ((value: unknown) => boolean)[]): ((value: unknown) => boolean) =>
  (value) =>
    tests.some((test) => test(value));

const RULES: Rules<Given> = {
  html: rule(false, isBoolean, 'a boolean'),
  index: rule('index.html', either(isName, isNames), 'a file name, or a list of file names'),
  fallback: rule(undefined, isString, 'the path of a file below the root'),
  fallthrough: rule(true, isBoolean, 'a boolean'),
  dotfiles: rule('ignore', isOneOf('ignore', 'deny', 'allow'), "'ignore', 'deny' or 'allow'"),
  symlinks: rule('inside', isOneOf('inside', 'follow'), "'inside' or 'follow'"),
  etag: rule('content', isOneOf('content', 'stat', true, false), "'content', 'stat' or a boolean"),
  lastModified: rule(true, isBoolean, 'a boolean'),
  acceptRanges: rule(true, isBoolean, 'a boolean'),
  cacheControl: rule(true, isBoolean, 'a boolean'),
  maxAge: rule(undefined, (v) => parseMaxAge(v) !== undefined, "milliseconds, or a string such as '1d'"),
  immutable: rule(false, either(isBoolean, isFunction, types.isRegExp), 'a boolean, a RegExp or a function'),
  extensions: rule(false, either(isOneOf(false), isNames), "false, or a list such as ['html']"),
  redirect: rule(true, isBoolean, 'a boolean'),
  precompressed: rule(false, either(isBoolean, isCodings), "a boolean, or a list of 'br', 'zstd', 'gzip'"),
  cache: rule(undefined, either(isOneOf(false), isObject), 'false, or an object'),
  setHeaders: rule(undefined, isFunction, 'a function'),
};

const CACHE_RULES: Rules<Filled<StaticCacheOptions>> = {
  maxBytes: rule(CACHE.maxBytes, isCount, 'bytes, a whole number'),
  maxFileBytes: rule(CACHE.maxFileBytes, isCount, 'bytes, a whole number'),
  maxEntries: rule(CACHE.maxEntries, isCount, 'a whole number'),
  revalidateAfter: rule(CACHE.revalidateAfter, isCount, 'milliseconds, a whole number'),
};

/** Settles the options of `staticFiles`; a bare boolean is `{ html }`. */
export function settleStatic(given: boolean | StaticFilesOptions | undefined): Settings {
  const options = settle('staticFiles', 'static-files', isBoolean(given) ? { html: given } : given, RULES);
  const { html, index } = options;
  return {
    html: html === true,
    index: html !== true ? [] : typeof index === 'string' ? [index] : (index ?? []),
    redirect: options.redirect === true,
    fallback: options.fallback === undefined ? undefined : `/${options.fallback.replace(/^\.?\/+/, '')}`,
    fallthrough: options.fallthrough === true,
    dotfiles: options.dotfiles ?? 'ignore',
    follow: options.symlinks === 'follow',
    etag: options.etag === false ? 'none' : options.etag === 'stat' ? 'stat' : 'content',
    lastModified: options.lastModified === true,
    acceptRanges: options.acceptRanges === true,
    cacheControl: cacheControlFor(options.cacheControl === true, options.maxAge, options.immutable ?? false),
    extensions: (options.extensions || []).map((extension) => `.${extension.replace(/^\./, '')}`),
    precompressed: options.precompressed === true ? CODINGS : options.precompressed || [],
    cache: settleCache(options.cache),
    setHeaders: options.setHeaders,
    windows: process.platform === 'win32',
    hashAtOnce: 8 * MIB,
  };
}

function settleCache(given: false | StaticCacheOptions | undefined): Settings['cache'] {
  if (given === false) return { ...CACHE, maxBytes: 0 };
  return settle('staticFiles cache', 'static-files', given, CACHE_RULES);
}
