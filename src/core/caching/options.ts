import type { CacheControlOptions } from '../../../types/caching.ts';
import {
  isVary,
  oneOf,
  type Rules,
  resolveOptions,
  rule,
  seconds,
  type WithDefaults,
} from '../../options/rules.ts';
import { CACHING_OPTIONS } from '../../options/scopes.ts';

/** The option `cacheControl` after checks, with defaults filled in. */
export type CachingSettings = Readonly<WithDefaults<CacheControlOptions>>;

const rules: Rules<CachingSettings> = {
  defaultMaxAge: seconds(0),
  vary: rule<readonly string[]>([], isVary, "a list of names of request headers such as 'Accept-Language'"),
  tagHeader: oneOf(false, 'Cache-Tag', 'Surrogate-Key', 'xkey'),
};

/** Resolves the option `cacheControl`; undefined if it is off. */
export function resolveCacheControl(given: unknown): CachingSettings | undefined {
  if (given === undefined || given === false) return undefined;
  return resolveOptions(CACHING_OPTIONS, given === true ? {} : given, rules);
}
