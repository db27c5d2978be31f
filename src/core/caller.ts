import type { Caller, CallerDetails } from '../../types/caller.ts';
import type { MaybePromise } from '../../types/connect.ts';
import type { UsageClient } from '../../types/usage.ts';
import { type ExecutionInputs, withNativePromise } from '../execution/types.ts';
import { assertSync, isListOf, type OptionScope, wrongReturnValue } from '../options/rules.ts';
import { GRAPHQL_OPTIONS } from '../options/scopes.ts';
import { isObject, isString, settle } from '../options/values.ts';

/** Returns the caller of a request or WebSocket; null if nobody is signed in. */
export type FindCaller = (source: unknown, details: CallerDetails) => MaybePromise<Caller | null>;

/** Creates the function of the option `caller`, whose return values it checks: a misspelt caller must not be nobody. */
export const createFindCaller =
  (caller: (source: unknown, details: CallerDetails) => unknown): FindCaller =>
  (source, details) =>
    settle(withNativePromise(caller(source, details)), (returned) => {
      if (returned === null || returned === undefined) return null;
      if (isCaller(returned)) return returned;
      const accepted =
        'an object such as { id: user.id, scopes: user.scopes }, whose id is a string, or null for nobody';
      throw wrongReturnValue(GRAPHQL_OPTIONS, 'caller', returned, accepted);
    });

const isNames = isListOf(isString);

/** Whether a value says who is calling. */
export function isCaller(value: unknown): value is Caller {
  if (!isObject(value) || !isString(value['id']) || value['id'] === '') return false;
  const { scopes, client } = value;
  return (scopes === undefined || isNames(scopes instanceof Set ? [...scopes] : scopes)) && isClient(client);
}

/** Whether a value names an application, or none. */
export function isClient(value: unknown): value is string | UsageClient | undefined {
  const name = isObject(value) ? value['name'] : value;
  return value === undefined || (isString(name) && name !== '');
}

/**
 * Returns what the function of an option says about who is calling, in place of the option `caller`.
 *
 * @throws TypeError (code `ERR_OPTION`) for another value: what is wrong must not be nobody.
 */
export function keyFrom(
  scope: OptionScope,
  name: 'key' | 'user',
  returned: unknown,
  nobody: 'null' | 'undefined',
): string | undefined {
  const key = assertSync(returned, scope, name);
  if (isString(key) || key === undefined) return key;
  if (key === null && nobody === 'null') return undefined;
  throw wrongReturnValue(scope, name, key, `a string, or ${nobody}`);
}

/** A function of an option that gets the request or WebSocket, and the context of an operation. */
export type OperationFunction = (source: unknown, context: unknown) => unknown;

/** Returns the user of an operation: by the function of an option, otherwise the caller. Undefined for an anonymous one. */
export const userOf = (
  scope: OptionScope,
  user: OperationFunction | undefined,
  source: unknown,
  { caller, contextValue }: Pick<ExecutionInputs, 'caller' | 'contextValue'>,
): string | undefined =>
  user === undefined ? caller?.id : keyFrom(scope, 'user', user(source, contextValue), 'null');
