import { resolve } from 'node:path';
import type {
  KeepOptions,
  Precompressed,
  StaticCacheOptions,
  StaticFilesOptions,
  StaticRulesOptions,
  Variant,
  VariantsOptions,
} from '../../types/static.ts';
import { createLanguageOrder } from '../http/negotiation.ts';
import {
  assertCalled,
  bytes,
  duration,
  flag,
  isEither,
  isListOf,
  isOneOf,
  isPath,
  isPathOrUrl,
  type OptionScope,
  oneOf,
  optionalFunction,
  optionError,
  type Rules,
  resolveOptions,
  rule,
  type WithDefaults,
  wrongOption,
} from '../options/rules.ts';
import { STATIC_OPTIONS } from '../options/scopes.ts';
import { isBoolean, isObject, isString } from '../options/values.ts';
import {
  ACCEPTED_CACHE_CONTROL,
  type CacheControlSettings,
  isCacheControlOption,
  resolveCacheControl,
} from './cache-control.ts';
import { assertNoPages } from './untrusted.ts';

/** The option `cache` after checks. */
export interface CacheSettings {
  /** Undefined for the budget that middlewares share. */
  readonly maxBytes: number | undefined;
  readonly revalidateAfter: number;
}

/** Options whose default is not a value. */
type WithoutDefault =
  | 'signed'
  | 'keep'
  | 'rules'
  | 'roots'
  | 'pages'
  | 'html'
  | 'index'
  | 'fallback'
  | 'notFound'
  | 'cacheControl'
  | 'cache'
  | 'setHeaders';
type ResolvedOptions = WithDefaults<Omit<StaticFilesOptions, WithoutDefault>> &
  Required<Pick<StaticFilesOptions, WithoutDefault>>;

const MIB: number = 1 << 20;
const CODINGS: readonly Precompressed[] = ['br', 'zstd', 'gzip'];
const VARIANTS: readonly Variant[] = ['md', 'avif', 'webp'];

const isFileName = (value: unknown): boolean => isString(value) && /^[^/\\\0]+$/.test(value);
const isFileNames = isListOf(isFileName);
const isRelativePath = (value: unknown): boolean =>
  isString(value) && value !== '' && !value.split(/[/\\]/).includes('..');
const ACCEPTED_PAGE = "the path of a file below the root directory, or 'nearest'";
const isVariants = isListOf(isOneOf(...VARIANTS));
const ACCEPTED_VARIANTS = "a list of 'md', 'avif', 'webp'";
const isCodingList = isListOf(isOneOf(...CODINGS));

const RULES: Rules<ResolvedOptions> = {
  html: rule(undefined, isBoolean, 'a boolean'),
  index: rule(
    undefined,
    isEither(isFileName, isFileNames, isOneOf(false)),
    'a file name, a list of file names, or false',
  ),
  fallback: rule(undefined, isRelativePath, ACCEPTED_PAGE),
  cleanUrls: oneOf(false, true, 'no-slash', 'slash'),
  notFound: rule(undefined, isRelativePath, ACCEPTED_PAGE),
  fallthrough: flag(true),
  dotfiles: oneOf('ignore', 'deny', 'allow'),
  missing: oneOf('throw', 'allow'),
  symlinks: oneOf('inside', 'follow'),
  untrusted: flag(false),
  signed: rule(undefined, isObject, 'an object with keys'),
  etag: oneOf('content', 'stat', true, false),
  cacheControl: rule<StaticFilesOptions['cacheControl']>(
    undefined,
    isCacheControlOption,
    ACCEPTED_CACHE_CONTROL,
  ),
  extensions: rule(
    false,
    isEither(isOneOf(false), isFileName, isFileNames),
    "false, 'html', or a list such as ['html']",
  ),
  precompressed: rule(
    false,
    isEither(isBoolean, isCodingList),
    "a boolean, or a list of 'br', 'zstd', 'gzip'",
  ),
  compress: flag(false),
  pages: rule(undefined, isObject, 'an object with config, csp or integrity'),
  listing: flag(false),
  keep: rule(undefined, isObject, 'an object with directory, days or maxBytes'),
  rules: rule(undefined, isEither(isBoolean, isObject), 'a boolean, or an object with redirects or headers'),
  roots: rule<StaticFilesOptions['roots']>(undefined, isPathOrUrl, 'the path of a directory'),
  variants: rule<readonly Variant[] | VariantsOptions>(
    [],
    isEither(isVariants, isObject),
    `${ACCEPTED_VARIANTS}, or an object`,
  ),
  cache: rule(undefined, isEither(isOneOf(false), isObject), 'false, or an object'),
  setHeaders: optionalFunction(),
};

const CACHE_RULES: Rules<CacheSettings> = {
  maxBytes: bytes(undefined, { from: 0 }),
  revalidateAfter: duration(0, { from: 0 }),
};

/** The option `keep` after checks; the directory is an absolute path. */
export type KeepSettings = WithDefaults<KeepOptions>;

const KEEP_SCOPE = { ...STATIC_OPTIONS, page: 'earlier-builds', within: 'keep' };
const KEEP_RULES: Rules<KeepSettings> = {
  directory: rule('', isPath, 'the path of a directory'),
  days: rule(14, (value) => typeof value === 'number' && value > 0, 'a number of days over 0'),
  maxBytes: bytes(1024 * MIB),
};

/** @param hasImmutable - whether some file may be immutable */
function resolveKeepOptions(given: KeepOptions | undefined, hasImmutable: boolean): KeepSettings | undefined {
  if (given === undefined) return undefined;
  const { directory, days, maxBytes } = resolveOptions(KEEP_SCOPE, given, KEEP_RULES);
  if (directory === '') throw wrongOption(KEEP_SCOPE, 'directory', undefined, 'the path of a directory');
  if (!hasImmutable)
    throw optionError(
      KEEP_SCOPE,
      'option "keep" keeps immutable files only, and none is; set "cacheControl" to the name of a build tool, or a RegExp such as /^\\/assets\\//',
    );
  return { directory: resolve(directory), days, maxBytes };
}

const VARIANTS_SCOPE = { ...STATIC_OPTIONS, page: 'static-sites', within: 'variants' };
// A tag such as `de` or `pt-BR`, which is the name of a folder.
const isLanguage = (value: unknown): boolean =>
  isString(value) && /^[a-z]{1,8}(?:-[a-z\d]{1,8})*$/i.test(value);
const isCookieName = (value: unknown): boolean => isString(value) && /^[\w!#$%&'*+.^`|~-]+$/.test(value);

const VARIANTS_RULES: Rules<{
  formats: readonly Variant[];
  language: readonly string[];
  cookie: string | undefined;
}> = {
  formats: rule<readonly Variant[]>([], isVariants, ACCEPTED_VARIANTS),
  language: rule<readonly string[]>([], isListOf(isLanguage), "a list of languages such as ['en', 'pt-BR']"),
  cookie: rule<string | undefined>(undefined, isCookieName, 'the name of a cookie'),
};

function resolveVariants(
  given: readonly Variant[] | VariantsOptions,
): Pick<StaticSettings, 'variants' | 'languages' | 'orderLanguages' | 'languageCookie'> {
  const options = isVariants(given) ? { formats: given } : given;
  const { formats, language, cookie } = resolveOptions(VARIANTS_SCOPE, options, VARIANTS_RULES);
  const orderLanguages = createLanguageOrder(language);
  const name = cookie?.replace(/[$*+.^|]/g, '\\$&');
  const languageCookie = name === undefined ? name : new RegExp(`(?:^|;)\\s*${name}\\s*=\\s*"?([^;"]*)`);
  return { variants: formats, languages: language, orderLanguages, languageCookie };
}

/** The texts of the option `rules`. */
export type RuleTexts = WithDefaults<StaticRulesOptions>;

export const RULES_SCOPE: OptionScope = { ...STATIC_OPTIONS, page: 'static-rules', within: 'rules' };
const RULE_TEXTS: Rules<RuleTexts> = {
  redirects: rule('', isString, 'lines as those of a file _redirects'),
  headers: rule('', isString, 'lines as those of a file _headers'),
};

function resolveRuleOptions(given: StaticFilesOptions['rules']): RuleTexts | undefined {
  if (given === undefined || given === false) return undefined;
  return resolveOptions(RULES_SCOPE, given === true ? {} : given, RULE_TEXTS);
}

/** Options that stay as they are. */
type Unchanged =
  | 'fallthrough'
  | 'dotfiles'
  | 'missing'
  | 'untrusted'
  | 'signed'
  | 'pages'
  | 'roots'
  | 'listing'
  | 'compress'
  | 'setHeaders';

/** The options of `staticFiles` after checks, with defaults filled in. */
export interface StaticSettings extends Readonly<Pick<ResolvedOptions, Unchanged>>, CacheControlSettings {
  readonly html: boolean;
  readonly cleanUrls: boolean;
  /** The spelling of the one URL of each page. */
  readonly urls: 'no-slash' | 'slash' | undefined;
  /** File names to try for `dir/`; empty when `html` or the option `index` is false. */
  readonly index: readonly string[];
  /** URL path of the fallback page, with a leading slash; `nearest` for the index page of the nearest folder. */
  readonly fallback: string | undefined;
  /** URL path of the page for 404 responses, with a leading slash; `nearest` for `404.html` of the nearest folder. */
  readonly notFound: string | undefined;
  readonly followSymlinks: boolean;
  readonly etag: 'content' | 'stat' | 'none';
  /** False for the copies of `keep`, whose time is that of their last use. */
  readonly lastModified: boolean;
  /** Extensions with a leading dot. */
  readonly extensions: readonly string[];
  readonly precompressed: readonly Precompressed[];
  /** The formats of the option `variants`. */
  readonly variants: readonly Variant[];
  /** The folders of languages, that of the default first. */
  readonly languages: readonly string[];
  /** Puts them in the order of an `Accept-Language`. */
  readonly orderLanguages: (header: string) => readonly string[];
  /** Finds the value of the cookie that decides before the header. */
  readonly languageCookie: RegExp | undefined;
  readonly keep: KeepSettings | undefined;
  /** What is added to the files of the directory. */
  readonly rules: RuleTexts | undefined;
  readonly cache: CacheSettings;
  /** Whether to refuse names that Windows maps to another file or to a device. */
  readonly rejectWindowsNames: boolean;
}

/** Checks the options of `staticFiles` and fills in defaults; a boolean is short for `{ html }`. */
export function resolveStaticOptions(argument: boolean | StaticFilesOptions | undefined): StaticSettings {
  const given = isBoolean(argument) ? { html: argument } : argument;
  assertCalled(STATIC_OPTIONS, given);
  const options = resolveOptions(STATIC_OPTIONS, given, RULES);
  if (options.untrusted) assertNoPages({ ...given });
  const urls = isString(options.cleanUrls) ? options.cleanUrls : undefined;
  const cleanUrls = options.cleanUrls !== false;
  const html = cleanUrls || hasHtml(options);
  const cacheControl = resolveCacheControl(options.cacheControl, options);
  const named = [options.extensions || []].flat().map((extension) => `.${extension.replace(/^\./, '')}`);
  return {
    ...options,
    html,
    cleanUrls,
    urls,
    index: html ? [options.index ?? 'index.html'].flat().filter((name) => name !== false) : [],
    fallback: toUrlPath(options.fallback),
    notFound: toUrlPath(options.notFound),
    followSymlinks: options.symlinks === 'follow',
    etag: options.etag === false ? 'none' : options.etag === 'stat' ? 'stat' : 'content',
    lastModified: true,
    ...cacheControl,
    extensions: cleanUrls ? [...new Set(['.html', ...named])] : named,
    precompressed: options.precompressed === true ? CODINGS : options.precompressed || [],
    ...resolveVariants(options.variants),
    rules: resolveRuleOptions(options.rules),
    keep: resolveKeepOptions(options.keep, cacheControl.mayBeImmutable),
    cache: resolveCacheOptions(options.cache),
    rejectWindowsNames: process.platform === 'win32',
  };
}

/** Whether directories are pages. */
function hasHtml({ html, listing, index, fallback, notFound }: ResolvedOptions): boolean {
  if (listing && html === false)
    throw optionError(
      STATIC_OPTIONS,
      'option "listing" lists directories, but "html" is false; remove the option "html"',
    );
  const hasPages = [index, fallback, notFound].some((page) => page !== undefined);
  return listing || (html ?? hasPages);
}

function toUrlPath(path: string | undefined): string | undefined {
  return path === undefined || path === 'nearest' ? path : `/${path.replace(/^\.?\/+/, '')}`;
}

function resolveCacheOptions(given: false | StaticCacheOptions | undefined): CacheSettings {
  return resolveOptions(
    { ...STATIC_OPTIONS, within: 'cache' },
    given === false ? { maxBytes: 0 } : given,
    CACHE_RULES,
  );
}
