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
  optionalFunction,
  type Rules,
  rule,
  type WithDefaults,
} from '../options/rules.ts';
import { STATIC_OPTIONS } from '../options/scopes.ts';
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
  readonly cache: Readonly<WithDefaults<StaticCacheOptions>>;
  readonly setHeaders: StaticFilesOptions['setHeaders'];
  /** Whether names that Windows reads differently are refused. */
  readonly windows: boolean;
  /** Largest file whose bytes are hashed before its first answer; above it, in the background. */
  readonly hashAtOnce: number;
}

/** What has no default of its own. */
type Open = 'fallback' | 'maxAge' | 'cache' | 'setHeaders';
type Given = WithDefaults<Omit<StaticFilesOptions, Open>> & Required<Pick<StaticFilesOptions, Open>>;

const MIB = 1 << 20;
const CODINGS: readonly Precompressed[] = ['br', 'zstd', 'gzip'];

const isName = (value: unknown): boolean => isString(value) && /^[^/\\\0]+$/.test(value);
const isNames = isListOf(isName);
const isBelow = (value: unknown): boolean =>
  isString(value) && value !== '' && !value.split(/[/\\]/).includes('..');
const isCodings = isListOf(isOneOf(...CODINGS));

const RULES: Rules<Given> = {
  html: flag(false),
  index: rule('index.html', isEither(isName, isNames), 'a file name, or a list of file names'),
  fallback: rule(undefined, isBelow, 'the path of a file below the root'),
  fallthrough: flag(true),
  dotfiles: oneOf('ignore', 'deny', 'allow'),
  symlinks: oneOf('inside', 'follow'),
  etag: oneOf('content', 'stat', true, false),
  lastModified: flag(true),
  acceptRanges: flag(true),
  cacheControl: flag(true),
  maxAge: rule(undefined, (v) => parseMaxAge(v) !== undefined, "milliseconds, or a string such as '1d'"),
  immutable: rule(
    false,
    isEither(isBoolean, isFunction, types.isRegExp),
    'a boolean, a RegExp or a function',
  ),
  extensions: rule(false, isEither(isOneOf(false), isNames), "false, or a list such as ['html']"),
  redirect: flag(true),
  precompressed: rule(false, isEither(isBoolean, isCodings), "a boolean, or a list of 'br', 'zstd', 'gzip'"),
  cache: rule(undefined, isEither(isOneOf(false), isObject), 'false, or an object'),
  setHeaders: optionalFunction(),
};

const CACHE_RULES: Rules<WithDefaults<StaticCacheOptions>> = {
  maxBytes: count(64 * MIB, 'bytes'),
  maxFileBytes: count(MIB / 4, 'bytes'),
  maxEntries: count(4096),
  revalidateAfter: count(0, 'milliseconds'),
};

/** Settles the options of `staticFiles`; a bare boolean is `{ html }`. */
export function resolveStaticOptions(given: boolean | StaticFilesOptions | undefined): Settings {
  const options = resolveOptions(STATIC_OPTIONS, isBoolean(given) ? { html: given } : given, RULES);
  const { html, redirect, fallthrough, dotfiles, lastModified, acceptRanges, setHeaders } = options;
  return {
    html,
    index: html ? [options.index].flat() : [],
    redirect,
    fallback: options.fallback === undefined ? undefined : `/${options.fallback.replace(/^\.?\/+/, '')}`,
    fallthrough,
    dotfiles,
    follow: options.symlinks === 'follow',
    etag: options.etag === false ? 'none' : options.etag === 'stat' ? 'stat' : 'content',
    lastModified,
    acceptRanges,
    cacheControl: cacheControlFor(options.cacheControl, options.maxAge, options.immutable),
    extensions: (options.extensions || []).map((extension) => `.${extension.replace(/^\./, '')}`),
    precompressed: options.precompressed === true ? CODINGS : options.precompressed || [],
    cache: settleCache(options.cache),
    setHeaders,
    windows: process.platform === 'win32',
    hashAtOnce: 8 * MIB,
  };
}

function settleCache(given: false | StaticCacheOptions | undefined): Settings['cache'] {
  return resolveOptions(
    { ...STATIC_OPTIONS, within: 'cache' },
    given === false ? { maxBytes: 0 } : given,
    CACHE_RULES,
  );
}
