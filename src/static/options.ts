import { types } from 'node:util';
import type { Precompressed, StaticCacheOptions, StaticFilesOptions } from '../../types/static.ts';
import { resolveOptions } from '../options/resolve-options.ts';
import {
  count,
  flag,
  isBoolean,
  isEither,
  isFunction,
  isListOf,
  isObject,
  isOneOf,
  isString,
  oneOf,
  optionalCount,
  optionalFunction,
  type Rules,
  rule,
  type WithDefaults,
} from '../options/rules.ts';
import { STATIC_OPTIONS } from '../options/scopes.ts';
import {
  ACCEPTED_CACHE_CONTROL,
  type CacheControl,
  cacheControlFor,
  isCacheControl,
  parseMaxAge,
} from './cache-control.ts';

/** The options of `staticFiles` after checks, with defaults filled in. */
export interface StaticSettings {
  readonly html: boolean;
  /** File names to try for `dir/`; empty when `html` is false. */
  readonly index: readonly string[];
  /** Whether a page has priority over a directory of the same name. */
  readonly cleanUrls: boolean;
  readonly redirect: boolean;
  /** URL path of the fallback page, with a leading slash. */
  readonly fallback: string | undefined;
  /** URL path of the page for 404 responses, with a leading slash. */
  readonly notFound: string | undefined;
  readonly fallthrough: boolean;
  readonly dotfiles: 'ignore' | 'deny' | 'allow';
  readonly followSymlinks: boolean;
  readonly etag: 'content' | 'stat' | 'none';
  readonly lastModified: boolean;
  readonly acceptRanges: boolean;
  readonly cacheControl: CacheControl;
  /** Extensions with a leading dot. */
  readonly extensions: readonly string[];
  readonly precompressed: readonly Precompressed[];
  readonly cache: CacheSettings;
  readonly setHeaders: StaticFilesOptions['setHeaders'];
  /** Whether to refuse names that Windows maps to another file or to a device. */
  readonly rejectWindowsNames: boolean;
  /** Bodies up to this size are cached at the first request, those up to `maxFileBytes` when they are requested often. */
  readonly maxEagerBodyBytes: number;
  /** Files up to this size are hashed before the first response, larger ones in the background. */
  readonly maxEagerHashBytes: number;
}

/** The option `cache` after checks. */
export interface CacheSettings {
  /** Undefined for the budget that middlewares share. */
  readonly maxBytes: number | undefined;
  readonly maxFileBytes: number;
  readonly maxEntries: number | undefined;
  readonly revalidateAfter: number;
}

/** Options whose default is not a value. */
type WithoutDefault = 'fallback' | 'notFound' | 'maxAge' | 'cache' | 'setHeaders';
type ResolvedOptions = WithDefaults<Omit<StaticFilesOptions, WithoutDefault>> &
  Required<Pick<StaticFilesOptions, WithoutDefault>>;

const MIB = 1 << 20;
const CODINGS: readonly Precompressed[] = ['br', 'zstd', 'gzip'];

const isFileName = (value: unknown): boolean => isString(value) && /^[^/\\\0]+$/.test(value);
const isFileNames = isListOf(isFileName);
const isRelativePath = (value: unknown): boolean =>
  isString(value) && value !== '' && !value.split(/[/\\]/).includes('..');
const isCodingList = isListOf(isOneOf(...CODINGS));

const RULES: Rules<ResolvedOptions> = {
  html: flag(false),
  index: rule(
    'index.html',
    isEither(isFileName, isFileNames, isOneOf(false)),
    'a file name, a list of file names, or false',
  ),
  fallback: rule(undefined, isRelativePath, 'the path of a file below the root directory'),
  cleanUrls: flag(false),
  notFound: rule(undefined, isRelativePath, 'the path of a file below the root directory'),
  fallthrough: flag(true),
  dotfiles: oneOf('ignore', 'deny', 'allow'),
  symlinks: oneOf('inside', 'follow'),
  etag: oneOf('content', 'stat', true, false),
  lastModified: flag(true),
  acceptRanges: flag(true),
  cacheControl: rule<NonNullable<StaticFilesOptions['cacheControl']>>(
    true,
    isEither(isCacheControl, isFunction),
    ACCEPTED_CACHE_CONTROL,
  ),
  maxAge: rule(undefined, (v) => parseMaxAge(v) !== undefined, "milliseconds, or a string such as '1d'"),
  immutable: rule(
    false,
    isEither(isBoolean, isFunction, types.isRegExp),
    'a boolean, a RegExp or a function',
  ),
  extensions: rule(
    false,
    isEither(isOneOf(false), isFileName, isFileNames),
    "false, 'html', or a list such as ['html']",
  ),
  redirect: flag(true),
  precompressed: rule(
    false,
    isEither(isBoolean, isCodingList),
    "a boolean, or a list of 'br', 'zstd', 'gzip'",
  ),
  cache: rule(undefined, isEither(isOneOf(false), isObject), 'false, or an object'),
  setHeaders: optionalFunction(),
};

const CACHE_RULES: Rules<CacheSettings> = {
  maxBytes: optionalCount('bytes'),
  maxFileBytes: count(8 * MIB, 'bytes'),
  maxEntries: optionalCount(),
  revalidateAfter: count(0, 'milliseconds'),
};

/** Checks the options of `staticFiles` and fills in defaults; a boolean is short for `{ html }`. */
export function resolveStaticOptions(argument: boolean | StaticFilesOptions | undefined): StaticSettings {
  const options = resolveOptions(STATIC_OPTIONS, isBoolean(argument) ? { html: argument } : argument, RULES);
  const { html, cleanUrls, redirect, fallthrough, dotfiles, lastModified, acceptRanges, setHeaders } =
    options;
  const servesIndex = (html || cleanUrls) && options.index !== false;
  const given = [options.extensions || []].flat().map((extension) => `.${extension.replace(/^\./, '')}`);
  const extensions = cleanUrls ? [...new Set(['.html', ...given])] : given;
  return {
    html: servesIndex,
    index: servesIndex ? [options.index || []].flat() : [],
    cleanUrls,
    redirect,
    fallback: toUrlPath(options.fallback),
    notFound: toUrlPath(options.notFound),
    fallthrough,
    dotfiles,
    followSymlinks: options.symlinks === 'follow',
    etag: options.etag === false ? 'none' : options.etag === 'stat' ? 'stat' : 'content',
    lastModified,
    acceptRanges,
    cacheControl: cacheControlFor(options.cacheControl, options.maxAge, options.immutable),
    extensions,
    precompressed: options.precompressed === true ? CODINGS : options.precompressed || [],
    cache: resolveCacheOptions(options.cache),
    setHeaders,
    rejectWindowsNames: process.platform === 'win32',
    maxEagerBodyBytes: (options.cache === false ? undefined : options.cache?.maxFileBytes) ?? MIB / 4,
    maxEagerHashBytes: 8 * MIB,
  };
}

function toUrlPath(path: string | undefined): string | undefined {
  return path === undefined ? undefined : `/${path.replace(/^\.?\/+/, '')}`;
}

function resolveCacheOptions(given: false | StaticCacheOptions | undefined): CacheSettings {
  return resolveOptions(
    { ...STATIC_OPTIONS, within: 'cache' },
    given === false ? { maxBytes: 0 } : given,
    CACHE_RULES,
  );
}
