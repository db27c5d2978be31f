import type { ServerResponse } from 'node:http';
import type { OperationDefinitionNode } from 'graphql';
import type { CachePolicy } from '../../types/caching.ts';
import type { MaybePromise } from '../../types/connect.ts';
import type { GraphQLCore } from '../core/core.ts';
import { isPublicError } from '../core/errors.ts';
import {
  type ExecutionInputs,
  type ExecutionOutcome,
  isThenable,
  type PreparedOperation,
} from '../execution/types.ts';
import type { Exchange, RequestInputs, ResultCaching } from '../graphql/request.ts';
import { GRAPHQL_TYPE } from '../http/negotiation.ts';
import { isAborted } from '../http/reply.ts';
import { assertSync, isListOf, isString, wrongReturnValue } from '../options/rules.ts';
import { CACHE_OPTIONS } from '../options/scopes.ts';
import { hasCredentials, hasUser } from './credentials.ts';
import { createSchemaId, createTargetKey, declaredVariants, KeyPlan } from './key.ts';
import type { ResponseCacheSettings } from './options.ts';
import { invalidateRest, isCacheable, UNCACHEABLE } from './policy.ts';
import { type CacheableQuery, ResponseCache, type StoredResult } from './response-cache.ts';
import { normalTag } from './tags.ts';

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

/** Executes an operation that may run. */
export type Execute = (
  exchange: Exchange,
  prepared: PreparedOperation,
  inputs: RequestInputs,
) => MaybePromise<ExecutionOutcome>;

/** The response headers that limit who may get the result. A stored result is sent without those of resolvers. */
const LIMITING_HEADERS = ['cache-control', 'set-cookie', 'vary'];

const limitingHeaders = (res: ServerResponse): string =>
  LIMITING_HEADERS.map((name) => res.getHeader(name)).join('\n');

/** The services that the queries of one handler share. */
interface QueryServices {
  readonly core: GraphQLCore;
  readonly settings: ResponseCacheSettings;
  readonly execute: Execute;
}

/** A query with the values that its execution needs, and the caching of its result. */
interface QueryExecution<Inputs> {
  readonly prepared: PreparedOperation;
  readonly inputs: Inputs;
  readonly caching: ResultCaching | undefined;
}

/** The query of one request. */
class RequestQuery implements CacheableQuery {
  readonly key: string;
  readonly plan: KeyPlan;
  readonly vary: readonly string[];
  readonly #services: QueryServices;
  readonly #exchange: Exchange;
  readonly #execution: QueryExecution<RequestInputs>;
  /** The limiting headers before the execution, in which resolvers may change them. */
  #headers: string | undefined;

  constructor(
    services: QueryServices,
    { key, plan, vary }: Pick<CacheableQuery, 'key' | 'plan' | 'vary'>,
    exchange: Exchange,
    execution: QueryExecution<RequestInputs>,
  ) {
    this.key = key;
    this.plan = plan;
    this.vary = vary;
    this.#services = services;
    this.#exchange = exchange;
    this.#execution = execution;
  }

  get isPrivate(): boolean {
    return this.#services.settings.key !== undefined;
  }

  get isShareable(): boolean {
    const { req, res } = this.#exchange;
    if (this.#headers !== undefined && this.#headers !== limitingHeaders(res)) return false;
    // A request whose headers or URL contain credentials has no query.
    return this.isPrivate || !hasUser(req, res);
  }

  get isAborted(): boolean {
    return isAborted(this.#exchange.res);
  }

  execute(): MaybePromise<ExecutionOutcome> {
    const { prepared, inputs } = this.#execution;
    this.#headers = limitingHeaders(this.#exchange.res);
    return this.#services.execute(this.#exchange, prepared, inputs);
  }

  policy(): CachePolicy {
    return this.#execution.caching?.policy() ?? UNCACHEABLE;
  }

  later(): CacheableQuery {
    const { prepared, inputs } = this.#execution;
    const later = detached(prepared, inputs);
    return new DetachedQuery(this, {
      prepared,
      inputs: later,
      caching: withOptionTags(this.#services.settings, later.caching, inputs),
    });
  }

  use(stored: StoredResult): StoredResult {
    if (this.#exchange.batchCost === undefined) this.#exchange.caching = stored;
    return stored;
  }

  hasFailed({ isMasked, errors }: ExecutionOutcome): boolean {
    return isMasked === true || !errors.some(isPublicError);
  }

  report(error: unknown): void {
    this.#services.core.reportError(error, this.#execution.inputs.origin);
  }
}

/** A query that is executed in the background, after its request got an expired result. */
class DetachedQuery implements CacheableQuery {
  readonly isAborted = false;
  readonly key: string;
  readonly plan: KeyPlan;
  readonly vary: readonly string[];
  readonly isPrivate: boolean;
  readonly #query: CacheableQuery;
  readonly #execution: QueryExecution<ExecutionInputs>;

  constructor(query: CacheableQuery, execution: QueryExecution<ExecutionInputs>) {
    this.key = query.key;
    this.plan = query.plan;
    this.vary = query.vary;
    this.isPrivate = query.isPrivate;
    this.#query = query;
    this.#execution = execution;
  }

  get isShareable(): boolean {
    return this.#query.isShareable;
  }

  execute(): MaybePromise<ExecutionOutcome> {
    const { prepared, inputs } = this.#execution;
    return prepared.execute(inputs);
  }

  policy(): CachePolicy {
    return this.#execution.caching?.policy() ?? UNCACHEABLE;
  }

  later(): CacheableQuery {
    return this;
  }

  use(stored: StoredResult): StoredResult {
    return stored;
  }

  hasFailed(outcome: ExecutionOutcome): boolean {
    return this.#query.hasFailed(outcome);
  }

  report(error: unknown): void {
    this.#query.report(error);
  }
}

/** The inputs of an execution that continues after the request. */
function detached(
  { cachePolicy }: PreparedOperation,
  { rootValue, contextValue, variableValues, operationName, request }: RequestInputs,
): ExecutionInputs {
  return {
    rootValue,
    contextValue,
    variableValues,
    origin: { transport: 'http', operationName, request, socket: undefined },
    caching: cachePolicy?.start(variableValues),
  };
}

const isTags = isListOf(isString);

/** The caching of a result with the tags of the option `tags`, for its entry and for its headers. */
class TaggedCaching implements ResultCaching {
  readonly #caching: ResultCaching;
  readonly #readTags: () => unknown;
  #tags: readonly string[] | undefined;

  constructor(caching: ResultCaching, readTags: () => unknown) {
    this.#caching = caching;
    this.#readTags = readTags;
  }

  policy(): CachePolicy {
    const policy = this.#caching.policy();
    if (!isCacheable(policy)) return policy;
    this.#tags ??= toTags(this.#readTags());
    return { ...policy, tags: [...new Set([...policy.tags, ...this.#tags])] };
  }
}

function toTags(returned: unknown): readonly string[] {
  const list = assertSync(returned, CACHE_OPTIONS, 'tags');
  if (!isTags(list)) throw wrongReturnValue(CACHE_OPTIONS, 'tags', list, 'a list of tags');
  return list.map(String).filter(Boolean).map(normalTag);
}

/** Adds the tags of the option `tags` to the caching of a query; returns it unchanged without the option. */
function withOptionTags<T extends ResultCaching>(
  { tags }: Pick<ResponseCacheSettings, 'tags'>,
  caching: T | undefined,
  { request, contextValue }: { readonly request: unknown; readonly contextValue: unknown },
): T | ResultCaching | undefined {
  if (tags === undefined || caching === undefined) return caching;
  return new TaggedCaching(caching, () => tags(request, contextValue));
}
