import type { Caller, CallerDetails } from '../../types/caller.ts';
import type { MaybePromise } from '../../types/connect.ts';
import { withNativePromise } from '../execution/types.ts';
import { isListOf, wrongReturnValue } from '../options/rules.ts';
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
  const named = isObject(client) ? client['name'] : client;
  return (
    (scopes === undefined || isNames(scopes instanceof Set ? [...scopes] : scopes)) &&
    (client === undefined || (isString(named) && named !== ''))
  );
}
