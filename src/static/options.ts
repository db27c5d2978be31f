import type { Precompressed, StaticCacheOptions, StaticFilesOptions } from '../../types/static.ts';
import { assertCalled, resolveOptions } from '../options/resolve-options.ts';
import { isBoolean } from '../options/rules.ts';
import { STATIC_OPTIONS } from '../options/scopes.ts';
import { cacheControlFor, type FileCacheControl } from './cache-control.ts';
import { type CompressSettings, resolveCompressOptions } from './compress-options.ts';
import { CACHE_RULES, type CacheSettings, CODINGS, MIB, RULES } from './option-rules.ts';
import { REPLACED_OPTIONS, rejectCoercedValues } from './replaced-options.ts';

/** The options of `staticFiles` after checks, with defaults filled in. */
export interface StaticSettings {
  readonly html: boolean;
  /** File names to try for `dir/`; empty when `html` or the option `index` is false. */
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
  readonly cacheControl: FileCacheControl;
  /** Extensions with a leading dot. */
  readonly extensions: readonly string[];
  readonly precompressed: readonly Precompressed[];
  readonly compress: CompressSettings | undefined;
  readonly cache: CacheSettings;
  readonly setHeaders: StaticFilesOptions['setHeaders'];
  /** Whether to refuse names that Windows maps to another file or to a device. */
  readonly rejectWindowsNames: boolean;
  /**
   * Bodies up to this size are cached at the first request, those up to `maxFileBytes` when they are
   * requested often.
   */
  readonly maxEagerBodyBytes: number;
  /** Files up to this size are hashed before the first response, larger ones in the background. */
  readonly maxEagerHashBytes: number;
  /** Larger files are not hashed: one request for a sparse file could keep the disk busy for hours. */
  readonly maxHashBytes: number;
}

/** Checks the options of `staticFiles` and fills in defaults; a boolean is short for `{ html }`. */
export function resolveStaticOptions(argument: boolean | StaticFilesOptions | undefined): StaticSettings {
  const given = isBoolean(argument) ? { html: argument } : argument;
  assertCalled(STATIC_OPTIONS, given);
  rejectCoercedValues(given, RULES);
  const options = resolveOptions(STATIC_OPTIONS, given, RULES, REPLACED_OPTIONS);
  const { cleanUrls, redirect, fallthrough, dotfiles, lastModified, acceptRanges, setHeaders } = options;
  const html = cleanUrls || (options.html ?? options.index !== undefined);
  const named = [options.extensions || []].flat().map((extension) => `.${extension.replace(/^\./, '')}`);
  const extensions = cleanUrls ? [...new Set(['.html', ...named])] : named;
  return {
    html,
    index: html ? [options.index ?? 'index.html'].flat().filter((name) => name !== false) : [],
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
    compress: resolveCompressOptions(options.compress),
    cache: resolveCacheOptions(options.cache),
    setHeaders,
    rejectWindowsNames: process.platform === 'win32',
    maxEagerBodyBytes: (options.cache === false ? undefined : options.cache?.maxFileBytes) ?? MIB / 4,
    maxEagerHashBytes: 8 * MIB,
    maxHashBytes: 16_384 * MIB,
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
