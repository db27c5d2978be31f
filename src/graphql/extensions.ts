import type { GraphQLHandler } from '../../types/graphql.ts';
import { createAuthorization } from '../auth/authorization.ts';
import { createCache } from '../cache/extension.ts';
import { createInvalidate } from '../cache/invalidations.ts';
import { createOperationHook } from '../core/admission.ts';
import type { CreateExtensions } from '../core/extension.ts';
import { createResultHook } from '../core/on-result.ts';
import { createCost } from '../cost/cost-check.ts';
import { createIdempotency } from '../idempotency/options.ts';
import { createClientLimits } from '../rate-limit/clients.ts';
import { createUsage, NO_USAGE } from '../usage/options.ts';
import type { HttpSettings } from './options.ts';

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

/**
 * Everything optional about operations, in its order: those that refuse an operation first, and the cache next to the
 * execution. Usage counts what all others have admitted.
 */
export const extensionsOf =
  (settings: Partial<ExtensionSettings>): CreateExtensions =>
  (parts) => [
    createAuthorization(settings, parts),
    createCost(settings, parts),
    createOperationHook(settings),
    createResultHook(settings, parts),
    createUsage(settings.usage),
    createIdempotency(settings, parts),
    createClientLimits(settings.clientLimits, parts),
    createCache(settings, parts),
  ];

/** The members of a handler whose extensions are off. */
export const HANDLER_MEMBERS: Pick<GraphQLHandler, 'usage' | 'invalidate'> = {
  usage: NO_USAGE,
  invalidate: createInvalidate(undefined),
};
