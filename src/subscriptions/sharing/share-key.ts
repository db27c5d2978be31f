import type { SharedOperation } from '../../../types/subscriptions.ts';
import type { GraphQLParams } from '../../execution/types.ts';
import { assertSync, wrongReturnValue } from '../../options/resolve-options.ts';
import { SUBSCRIPTION_OPTIONS } from '../../options/scopes.ts';

/** The option `share`. */
export type ShareFunction = (context: unknown, operation: SharedOperation) => unknown;

/** A key of the application: subscriptions with different keys are never shared. */
export type ShareKey = string | number;

/**
 * Returns the key of one subscription, or undefined for a private subscription.
 *
 * @throws TypeError (code `ERR_OPTION`) if the function returns a value of another type.
 */
export function shareKeyOf(
  share: ShareFunction | undefined,
  context: unknown,
  params: GraphQLParams,
): ShareKey | undefined {
  const key = share?.(context, params);
  if (key === undefined || key === null) return undefined;
  assertSync(key, SUBSCRIPTION_OPTIONS, 'share');
  // NaN and Infinity have the same JSON, so they would be the same key.
  if (typeof key === 'string' || Number.isFinite(key)) return key as ShareKey;
  throw wrongReturnValue(SUBSCRIPTION_OPTIONS, 'share', key, 'a string, a finite number, undefined or null');
}

/**
 * Returns the name of a group: equal only for equal subscriptions. JSON separates its parts, so clients
 * cannot forge it. Returns undefined for variables with numbers such as 1e400, which become Infinity and have
 * the same JSON as null.
 */
export function groupNameOf(
  { params, extensions }: { readonly params: GraphQLParams; readonly extensions: string | undefined },
  key: ShareKey,
): string | undefined {
  const { operationName, variables, query } = params;
  let isExact = true;
  const name = JSON.stringify([key, operationName, variables, query, extensions], (_, value: unknown) => {
    if (typeof value === 'number' && !Number.isFinite(value)) isExact = false;
    return sortMembers(value);
  });
  return isExact ? name : undefined;
}

/**
 * Returns a text that is equal only for equal operations of one principal: a user, or a share key. Numbers
 * such as 1e400 count as null.
 */
export function identityOf(principal: object, { operationName, variables, query }: GraphQLParams): string {
  return JSON.stringify([principal, operationName, variables, query], (_, value: unknown) =>
    sortMembers(value),
  );
}

function sortMembers(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
