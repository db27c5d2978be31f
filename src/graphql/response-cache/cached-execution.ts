import type { OperationDefinitionNode } from 'graphql';
import type { MaybePromise } from '../../../types/connect.ts';
import { invalidateRest } from '../../core/caching/invalidate-rest.ts';
import type { GraphQLCore } from '../../core/core.ts';
import { type ExecutionOutcome, isThenable, type PreparedOperation } from '../../execution/types.ts';
import { GRAPHQL_TYPE } from '../../http/negotiation.ts';
import { assertSync, isString, wrongReturnValue } from '../../options/rules.ts';
import { CACHE_OPTIONS } from '../../options/scopes.ts';
import { hasCredentials } from '../caching/credentials.ts';
import type { Exchange, ResultCaching } from '../exchange.ts';
import type { RequestInputs } from '../request-inputs.ts';
import { createSchemaId, KeyPlan } from './key-plan.ts';
import { withOptionTags } from './option-tags.ts';
import type { ResponseCacheSettings } from './options.ts';
import { type Execute, type QueryServices, RequestQuery } from './request-query.ts';
import { type CacheableQuery, ResponseCache } from './response-cache.ts';
import { createTargetKey, declaredVariants } from './target-key.ts';

/** Creates the function that executes queries through the response cache of a handler. */
export function createCachedExecution(
  core: GraphQLCore,
  settings: ResponseCacheSettings,
  { execute, vary: baseVary }: { readonly execute: Execute; readonly vary: readonly string[] },
): Execute {
  const { cacheStore } = core;
  if (cacheStore === undefined) return execute;
  const cache = new ResponseCache(cacheStore, settings);
  const services: QueryServices = { core, settings, execute };
  const schemaIdOf = createSchemaId(core);
  const targetOf = createTargetKey(core);
  /** By the node of the operation: an observed operation is another object in each request. */
  const plans = new WeakMap<OperationDefinitionNode, KeyPlan>();

  function planOf(prepared: PreparedOperation): KeyPlan {
    let plan = plans.get(prepared.operation);
    if (plan === undefined) {
      plan = new KeyPlan(prepared, schemaIdOf(prepared.schema), baseVary);
      plans.set(prepared.operation, plan);
    }
    return plan;
  }

  /** Returns the query of a request; undefined if it must not use the cache. */
  function queryOf(
    exchange: Exchange,
    prepared: PreparedOperation,
    inputs: RequestInputs,
    caching: ResultCaching | undefined,
  ): CacheableQuery | undefined {
    if (prepared.operation.operation !== 'query') return undefined;
    // The headers of the response depend on the key also if the result is not stored.
    const user = userOf(settings, exchange, inputs);
    if (inputs.incremental !== undefined) return undefined;
    const plan = planOf(prepared);
    const variants = declaredVariants(exchange);
    if (user === undefined || variants === undefined || !plan.shouldTry()) return undefined;
    const { vary } = plan;
    const key = plan.keyOf({
      variables: inputs.variableValues,
      extensions: inputs.extensions,
      type: exchange.accepted.type === GRAPHQL_TYPE ? 'g' : 'j',
      user,
      target: targetOf(exchange.req) + variants,
      headers: exchange.req.headers,
    });
    return key === undefined
      ? undefined
      : new RequestQuery(services, { key, plan, vary }, exchange, { prepared, inputs, caching });
  }

  function executeDirectly(
    exchange: Exchange,
    prepared: PreparedOperation,
    inputs: RequestInputs,
  ): MaybePromise<ExecutionOutcome> {
    if (prepared.operation.operation !== 'mutation') return execute(exchange, prepared, inputs);
    // A resolver that has begun changes data also after an abort, and the tags of its result would not be known.
    inputs.outlivesClient = true;
    const fail = (error: unknown): Promise<never> => {
      // Fields may have changed data before, for example if `formatError` throws.
      const done = inputs.caching?.invalidate() ?? Promise.resolve();
      return done.then(() => Promise.reject(error));
    };
    try {
      const outcome = execute(exchange, prepared, inputs);
      return isThenable(outcome)
        ? outcome.then((settled) => invalidate(exchange, inputs, settled), fail)
        : invalidate(exchange, inputs, outcome);
    } catch (error) {
      return fail(error);
    }
  }

  return (exchange, prepared, inputs) => {
    const query = queryOf(exchange, prepared, inputs, cachingOf(settings, exchange, prepared, inputs));
    if (query === undefined) return executeDirectly(exchange, prepared, inputs);
    return cache.run(query);
  };
}

/** Returns the caching of a query, and uses it for the headers, also if the result is not stored. */
function cachingOf(
  settings: ResponseCacheSettings,
  exchange: Exchange,
  { operation }: PreparedOperation,
  inputs: RequestInputs,
): ResultCaching | undefined {
  if (operation.operation !== 'query') return undefined;
  const caching = withOptionTags(settings, inputs.caching, inputs);
  if (exchange.batchCost === undefined) exchange.caching = caching;
  return caching;
}

/**
 * Invalidates the tags of a mutation before its response is sent, also if some of its fields have failed. A mutation
 * with invalid variables was not executed.
 */
function invalidate(
  exchange: Exchange,
  { caching }: RequestInputs,
  outcome: ExecutionOutcome,
): MaybePromise<ExecutionOutcome> {
  if (outcome.kind === 'refused') return outcome;
  if (caching === undefined) return outcome;
  const { rest } = outcome;
  const settled = rest === undefined ? outcome : { ...outcome, rest: invalidateRest(rest, caching) };
  const tags = caching.tags();
  if (tags.length === 0) return settled;
  exchange.invalidatedTags = [...new Set([...(exchange.invalidatedTags ?? []), ...tags])];
  const done = caching.invalidate();
  return done === undefined ? settled : done.then(() => settled);
}

/** The part of the key that separates users; undefined if the request must not use the cache. */
function userOf(
  { key }: ResponseCacheSettings,
  exchange: Exchange,
  { contextValue }: RequestInputs,
): string | undefined {
  const { req, res } = exchange;
  if (key === undefined) return hasCredentials(req, res) ? undefined : '';
  const user = assertSync(key(req, contextValue), CACHE_OPTIONS, 'key') ?? null;
  if (user !== null && !isString(user)) {
    throw wrongReturnValue(CACHE_OPTIONS, 'key', user, 'a string, or null');
  }
  exchange.userKey = user;
  return user ?? undefined;
}
