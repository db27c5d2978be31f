import { types } from 'node:util';
import type { CompressOptions, Precompressed, StaticFilesOptions } from '../../types/static.ts';
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
import { ACCEPTED_CACHE_CONTROL, isCacheControl, parseMaxAge } from './cache-control.ts';

/** The option `cache` after checks. */
export interface CacheSettings {
  /** Undefined for the budget that middlewares share. */
  readonly maxBytes: number | undefined;
  readonly maxFileBytes: number;
  readonly maxEntries: number | undefined;
  readonly revalidateAfter: number;
}

/** Options whose default is not a value. */
type WithoutDefault = 'html' | 'index' | 'fallback' | 'notFound' | 'maxAge' | 'cache' | 'setHeaders';
export type ResolvedOptions = WithDefaults<Omit<StaticFilesOptions, WithoutDefault>> &
  Required<Pick<StaticFilesOptions, WithoutDefault>>;

export const MIB: number = 1 << 20;
export const CODINGS: readonly Precompressed[] = ['br', 'zstd', 'gzip'];

const isFileName = (value: unknown): boolean => isString(value) && /^[^/\\\0]+$/.test(value);
const isFileNames = isListOf(isFileName);
const isRelativePath = (value: unknown): boolean =>
  isString(value) && value !== '' && !value.split(/[/\\]/).includes('..');
const isCodingList = isListOf(isOneOf(...CODINGS));

export const RULES: Rules<ResolvedOptions> = {
  html: rule(undefined, isBoolean, 'a boolean'),
  index: rule(
    undefined,
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
  compress: rule<boolean | CompressOptions>(false, isEither(isBoolean, isObject), 'a boolean, or an object'),
  cache: rule(undefined, isEither(isOneOf(false), isObject), 'false, or an object'),
  setHeaders: optionalFunction(),
};

export const CACHE_RULES: Rules<CacheSettings> = {
  maxBytes: optionalCount('bytes'),
  maxFileBytes: count(8 * MIB, 'bytes'),
  maxEntries: optionalCount(),
  revalidateAfter: count(0, 'milliseconds'),
};
