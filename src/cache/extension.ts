import type { MaybePromise } from '../../types/connect.ts';
import { withExtensions } from '../core/admission.ts';
import type { Extension, ExtensionParts } from '../core/extension.ts';
import {
  type ExecutionCaching,
  type ExecutionOutcome,
  type OperationCall,
  type OperationHooks,
  observedResults,
  type RemainingResults,
  withRest,
} from '../execution/types.ts';
import { isCacheable } from '../http/exchange.ts';
import { caught, settle } from '../options/values.ts';
import { CachedQueries, type CacheOptions } from './cached-query.ts';
import { createCacheHeaders } from './headers.ts';
import { SchemaHints } from './hints.ts';
import { createInvalidate } from './invalidations.ts';
import { createCacheStore, resolveCacheControl, resolveResponseCache } from './options.ts';
import { checkAnnotations, fieldCaching, OperationPolicy } from './policy.ts';
import type { FailsafeStore } from './store.ts';

/**
 * Creates the extension of the options `httpCache` and `responseCache`.
 *
 * @throws TypeError (code `ERR_OPTION`).
 */
export function createCache(options: CacheOptions, parts: ExtensionParts): Extension {
  const httpCache = resolveCacheControl(options.httpCache);
  const responseCache = resolveResponseCache(options.responseCache);
  const store = responseCache && createCacheStore(responseCache);
  const handler = { invalidate: createInvalidate(store) };
  // Without `httpCache` the policies decide only what the response cache stores.
  const settings = httpCache ?? resolveCacheControl(responseCache !== undefined);
  if (settings === undefined) return { handler };
  const hints = new SchemaHints(settings.defaultMaxAge);
  const queries = responseCache && store && new CachedQueries(responseCache, store, { options, parts });
  return {
    handler,
    check: checkAnnotations,
    caching: fieldCaching,
    response: createCacheHeaders(httpCache),
    prepare(operation, { account }) {
      const policy = new OperationPolicy(operation, hints, account);
      const type = operation.operation.operation;
      if (type === 'query')
        return httpCache?.tags === 'extensions'
          ? { admit: willExtend, around: withTags(aroundQuery(policy, queries)) }
          : { around: aroundQuery(policy, queries) };
      return (
        store && { around: type === 'mutation' ? aroundMutation(policy, store) : aroundEvent(policy, store) }
      );
    },
  };
}

type Around = NonNullable<OperationHooks['around']>;

/** Over sockets and for agents, results are neither stored nor cached by others. */
const aroundQuery =
  (policy: OperationPolicy, queries: CachedQueries | undefined): Around =>
  (call, prepared, next) => {
    const { exchange } = call;
    if (exchange === undefined) return next();
    call.caching = policy.start(call.variableValues, undefined);
    exchange.isRestricted = call.access?.hasConditions === true;
    // A batch is a list of results with different policies.
    if (exchange.batchSize === undefined) exchange.caching = call.caching;
    return queries === undefined ? next() : queries.execute({ call, prepared, policy, exchange, next });
  };

function willExtend(call: OperationCall): undefined {
  call.willExtend();
}

/** Adds the tags of cacheable results for a router in front. */
const withTags =
  (around: Around): Around =>
  (call, prepared, next) =>
    settle(around(call, prepared, next), (outcome) => {
      const caching = call.exchange?.caching;
      if (outcome.kind !== 'data' || caching === undefined) return outcome;
      const policy = caching.policy();
      if (!isCacheable(policy) || policy.tags.length === 0) return outcome;
      return withExtensions(outcome, JSON.stringify({ apolloCacheTags: policy.tags }));
    });

/** Removes the stored results of the tags of an event before its result is sent. */
const aroundEvent =
  (policy: OperationPolicy, store: FailsafeStore): Around =>
  (inputs, _prepared, next) => {
    const caching = policy.start(inputs.variableValues, store);
    inputs.caching = caching;
    return settle(next(), (outcome) => settle(caching.invalidate(), () => outcome));
  };

/**
 * Removes the stored results of the tags of a mutation before its result is sent, also if some of its fields have failed.
 * A mutation with invalid variables was not executed.
 */
const aroundMutation =
  (policy: OperationPolicy, store: FailsafeStore): Around =>
  (call, _prepared, next) => {
    // A resolver that has begun changes data also after an abort, and the tags of its result would not be known.
    call.outlivesClient = true;
    const caching = policy.start(call.variableValues, store);
    call.caching = caching;
    const steps = () => settle(next(), (outcome) => invalidate(outcome, caching));
    // Fields may have changed data before, for example if `formatError` throws.
    const fail = (error: unknown) =>
      settle(caching.invalidate(), () => {
        throw error;
      });
    return caught(steps, fail);
  };

function invalidate(outcome: ExecutionOutcome, caching: ExecutionCaching): MaybePromise<ExecutionOutcome> {
  if (outcome.kind === 'refused') return outcome;
  const { rest } = outcome;
  const result = rest === undefined ? outcome : withRest(outcome, invalidateRest(rest, caching));
  return settle(caching.invalidate(), () => result);
}

/**
 * Invalidates the tags that the deferred parts of a mutation add, before the payload with them is sent. The tags of
 * the first payload are invalidated apart.
 */
function invalidateRest(rest: RemainingResults, caching: ExecutionCaching): RemainingResults {
  let known = caching.tags().length;
  return observedResults(rest, async (read) => {
    try {
      return await read();
    } finally {
      const { length } = caching.tags();
      if (length !== known) {
        known = length;
        await caching.invalidate();
      }
    }
  });
}
