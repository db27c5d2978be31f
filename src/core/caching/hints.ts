import type { CacheHint, FieldCachePolicy } from '../../../types/caching.ts';
import {
  ACCEPTED_SECONDS,
  formatValue,
  isObject,
  isOneOf,
  isSeconds,
  isVary,
  optionError,
} from '../../options/rules.ts';
import { CACHING_OPTIONS } from '../../options/scopes.ts';

const isScope = isOneOf(undefined, 'PUBLIC', 'PRIVATE');
const isLifetime = (value: unknown): boolean => value === undefined || isSeconds(value);

/**
 * Checks a hint. A wrong lifetime must not be ignored: the default could be longer.
 *
 * @throws TypeError (code `ERR_OPTION`) that names `place`.
 */
export function assertHint(hint: unknown, place: string): asserts hint is CacheHint {
  const fail = (member: string, value: unknown, accepted: string): TypeError =>
    optionError(CACHING_OPTIONS, `${place}: ${member} is ${formatValue(value)}; accepted: ${accepted}`);
  if (!isObject(hint)) throw fail('the hint', hint, 'an object such as { maxAge: 60 }');
  const { maxAge, sharedMaxAge, scope, vary } = hint;
  if (!isLifetime(maxAge)) throw fail('maxAge', maxAge, ACCEPTED_SECONDS);
  if (!isLifetime(sharedMaxAge)) throw fail('sharedMaxAge', sharedMaxAge, ACCEPTED_SECONDS);
  if (!isScope(scope)) throw fail('scope', scope, "'PUBLIC' or 'PRIVATE'");
  if (vary !== undefined && !isVary(vary)) {
    throw fail('vary', vary, "a list of names of request headers such as 'Accept-Language'");
  }
}

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

/** A hint that is being collected. */
export type HintState = Mutable<Pick<FieldCachePolicy, 'maxAge' | 'sharedMaxAge' | 'scope' | 'vary'>>;

/** Creates a hint without members. */
export const emptyHint = (): HintState => ({
  maxAge: undefined,
  sharedMaxAge: undefined,
  scope: undefined,
  vary: undefined,
});

/** Replaces members of a hint. A new `maxAge` without `sharedMaxAge` also applies to shared caches. */
export function replaceHint(state: HintState, { maxAge, sharedMaxAge, scope, vary }: CacheHint): void {
  if (maxAge !== undefined) {
    state.maxAge = maxAge;
    state.sharedMaxAge = undefined;
  }
  if (sharedMaxAge !== undefined) state.sharedMaxAge = sharedMaxAge;
  if (scope !== undefined) state.scope = scope;
  state.vary = union(state.vary, vary);
}

/** Combines hints: the lower lifetimes and `PRIVATE` win. */
export function restrictHint(state: HintState, { maxAge, sharedMaxAge, scope, vary }: CacheHint): void {
  const shared = lower(state.sharedMaxAge ?? state.maxAge, sharedMaxAge ?? maxAge);
  state.maxAge = lower(state.maxAge, maxAge);
  state.sharedMaxAge = shared;
  if (scope !== undefined && state.scope !== 'PRIVATE') state.scope = scope;
  state.vary = union(state.vary, vary);
}

function lower(a: number | undefined, b: number | undefined): number | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return Math.min(a, b);
}

/** Adds header names. A dependency is never removed. */
function union(
  names: readonly string[] | undefined,
  added: readonly string[] | undefined,
): readonly string[] | undefined {
  if (added === undefined || added.length === 0) return names;
  return [...new Set([...(names ?? []), ...added.map((name) => name.toLowerCase())])];
}
