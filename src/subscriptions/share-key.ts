import type { SharedOperation } from '../../types/subscriptions.ts';
import type { GraphQLParams } from '../execution/types.ts';
import { assertSync } from '../options/assert-sync.ts';
import { wrongReturnValue } from '../options/resolve-options.ts';
import { SUBSCRIPTION_OPTIONS } from '../options/scopes.ts';

/** The option `share`. */
export type ShareFunction = (context: unknown, operation: SharedOperation) => unknown;

/** A key of the application: subscriptions with different keys are never shared. */
export type ShareKey = string | number;

/**
 * The key of one subscription, or undefined for a private one.
 *
 * @throws TypeError (code `ERR_OPTION`) if the function returns anything else.
 */
export function shareKeyOf(
  share: ShareFunction | undefined,
  context: unknown,
  params: GraphQLParams,
): ShareKey | undefined {
  const key = share?.(context, params);
  if (key === undefined || key === null) return undefined;
  assertSync(key, SUBSCRIPTION_OPTIONS, 'share');
  // NaN and Infinity have the same JSON, so that they would be one key.
  if (typeof key === 'string' || Number.isFinite(key)) return key as ShareKey;
  throw wrongReturnValue(SUBSCRIPTION_OPTIONS, 'share', key, 'a string, a finite number, undefined or null');
}

/** The name of a group: equal for equal subscriptions only. JSON keeps its parts apart, so that a client cannot forge one. */
export function groupNameOf({ operationName, variables, query }: GraphQLParams, key: ShareKey): string {
  return JSON.stringify([key, operationName, variables, query], sortMembers);
}

function sortMembers(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
