import { type OptionScope, wrongReturnValue } from './resolve-options.ts';

/**
 * Checks that the function of an option returned a value and not a promise. A promise is truthy, so it would allow a request
 * that the function refuses.
 *
 * @throws TypeError (code `ERR_OPTION`) for a promise.
 */
export function assertSync<T>(returned: T, scope: OptionScope, option: string): T {
  if (typeof (returned as { then?: unknown } | null | undefined)?.then !== 'function') return returned;
  // The promise is not awaited, so its rejection must not become an unhandled one.
  Promise.resolve(returned).catch(() => undefined);
  throw wrongReturnValue(scope, option, returned, 'a value that is not a promise');
}
