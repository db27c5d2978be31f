import type { GraphQLHandler } from '../../types/graphql.ts';
import { authUnset } from '../auth/unset.ts';
import { createInvalidate } from '../cache/invalidations.ts';
import { createOperationHook } from '../core/admission.ts';
import type { CreateExtensions, Extension } from '../core/extension.ts';
import { createResultHook } from '../core/on-result.ts';
import type { Unset } from '../core/unenforced.ts';
import { costUnset } from '../cost/unset.ts';
import { idempotencyUnset } from '../idempotency/unset.ts';
import { clientLimitsUnset } from '../rate-limit/unset.ts';
import { optional } from './optional.ts';
import type { HttpSettings } from './options.ts';

const NOTHING: Extension = {};

type ExtensionSettings = Pick<
  HttpSettings,
  | 'auth'
  | 'onOperation'
  | 'onResult'
  | 'caller'
  | 'cost'
  | 'budget'
  | 'clientLimits'
  | 'idempotency'
  | 'httpCache'
  | 'responseCache'
  | 'documents'
  | 'compression'
  | 'usage'
>;

const isSet = (given: unknown): boolean => given !== undefined && given !== false;

/**
 * Everything optional about operations, in its order: those that refuse an operation first, and the cache next to the
 * execution. Usage counts what all others have admitted. Without its option, a capability says at most what a schema
 * declares in vain, and its module is not loaded.
 */
export const extensionsOf =
  (settings: Partial<ExtensionSettings>): CreateExtensions =>
  (parts) => {
    const { auth, cost, budget, usage, idempotency, clientLimits, httpCache, responseCache } = settings;
    const whenSet = (given: unknown, create: () => Extension, unset: Unset = () => NOTHING): Extension =>
      isSet(given) ? create() : given === false ? NOTHING : unset(parts.scope);
    return [
      whenSet(auth, () => optional.auth().createAuthorization(settings, parts), authUnset),
      // No other code may limit costs or repeat mutations safely, so `false` does not silence what the schema declares.
      whenSet(budget ?? (cost || undefined), () => optional.cost().createCost(settings), costUnset),
      createOperationHook(settings),
      createResultHook(settings, parts),
      whenSet(usage, () => optional.usage().createUsage(usage)),
      whenSet(
        idempotency || undefined,
        () => optional.idempotency().createIdempotency(settings, parts),
        idempotencyUnset,
      ),
      whenSet(clientLimits, () => optional.clients().createClientLimits(clientLimits), clientLimitsUnset),
      whenSet(httpCache || responseCache, () => optional.cache().createCache(settings, parts)),
    ];
  };

/** The members of a handler whose extensions are off. */
export const HANDLER_MEMBERS: Pick<GraphQLHandler, 'usage' | 'invalidate'> = {
  usage: { flush: async () => undefined, report: async () => ({ version: 1, days: {} }) },
  invalidate: createInvalidate(undefined),
};
