import type { ServerResponse } from 'node:http';
import type { OperationDefinitionNode } from 'graphql';
import type { CachePolicy } from '../../types/caching.ts';
import type { MaybePromise } from '../../types/connect.ts';
import type { Compression } from '../compress/results.ts';
import type { GraphQLCore } from '../core/core.ts';
import type { ExecutionOutcome, PreparedOperation } from '../execution/types.ts';
import type { Execute, HttpCall } from '../graphql/call.ts';
import type { Coding } from '../http/codings.ts';
import { type Exchange, isCacheable, type ResultCaching } from '../http/exchange.ts';
import { GRAPHQL_TYPE } from '../http/negotiation.ts';
import { isAborted } from '../http/reply.ts';
import { assertSync, getOrCreate, isListOf, isString, wrongReturnValue } from '../options/rules.ts';
import { CACHE_OPTIONS } from '../options/scopes.ts';
import { hasCredentials, hasUser } from './credentials.ts';
import { normalTag } from './invalidations.ts';
import { createSchemaId, createTargetKey, declaredVariants, KeyPlan } from './key.ts';
import type { ResponseCacheSettings } from './options.ts';
import { UNCACHEABLE } from './policy.ts';
import { ResponseCache, type StoredResult } from './response-cache.ts';

/** Creates the function that executes queries through the response cache of a handler. */
export function createCachedExecution(
  core: GraphQLCore,
  settings: ResponseCacheSettings,
  {
    execute,
    compression,
    vary: baseVary,
  }: Omit<QueryServices, 'core' | 'settings'> & Pick<CachePlace, 'vary'>,
): Execute {
  const { cacheStore } = core;
  if (cacheStore === undefined) return execute;
  const cache = new ResponseCache(cacheStore, settings);
  const services: QueryServices = { core, settings, execute, compression };
  const schemaIdOf = createSchemaId(core);
  const targetOf = createTargetKey(core);
  /** By the node of the operation: an observed operation is another object in each request. */
  const plans = new WeakMap<OperationDefinitionNode, KeyPlan>();

  function planOf(prepared: PreparedOperation): KeyPlan {
    return getOrCreate(
      plans,
      prepared.operation,
      () => new KeyPlan(prepared, schemaIdOf(prepared.visible ?? prepared.schema), baseVary),
    );
  }

  /** Returns the place of the result in the cache; undefined if the request must not use the cache. */
  function placeOf(call: HttpCall, prepared: PreparedOperation): CachePlace | undefined {
    const { exchange, access } = call;
    // The headers of the response depend on the key also if the result is not stored.
    const user = userOf(settings, call);
    if (call.incremental !== undefined) return undefined;
    const variants = declaredVariants(exchange);
    if (user === undefined || variants === undefined) return undefined;
    const plan = planOf(prepared);
    const { vary } = plan;
    const key = plan.keyOf({
      variables: call.params.variables,
      extensions: call.params.extensions,
      type: (exchange.accepted.type === GRAPHQL_TYPE ? 'g' : 'j') + (prepared.errorMode ?? ''),
      user: access === undefined ? user : `${access.storedKey} ${user}`,
      target: targetOf(exchange.req) + variants,
      headers: exchange.req.headers,
    });
    return key === undefined ? undefined : { key, plan, vary };
  }

  return (call, prepared) => {
    if (prepared.operation.operation !== 'query') return execute(call, prepared);
    const { exchange } = call;
    const caching = withOptionTags(settings, call.caching, call);
    // For the headers, also if the result is not stored.
    if (exchange.batchCost === undefined) exchange.caching = caching;
    const place = placeOf(call, prepared);
    if (place === undefined) return execute(call, prepared);
    return cache.run(new CacheableQuery(services, place, { call, prepared, caching }));
  };
}

/** The part of the key that separates users; undefined if the request must not use the cache. */
function userOf({ key }: ResponseCacheSettings, { exchange, contextValue }: HttpCall): string | undefined {
  const { req, res } = exchange;
  if (key === undefined) return hasCredentials(req, res) ? undefined : '';
  const user = assertSync(key(req, contextValue), CACHE_OPTIONS, 'key') ?? null;
  if (user !== null && !isString(user)) {
    throw wrongReturnValue(CACHE_OPTIONS, 'key', user, 'a string, or null');
  }
  exchange.userKey = user;
  return user ?? undefined;
}

/** The response headers that limit who may get the result. A stored result is sent without those of resolvers. */
const LIMITING_HEADERS = ['cache-control', 'set-cookie', 'vary'];

const limitingHeaders = (res: ServerResponse): string =>
  LIMITING_HEADERS.map((name) => res.getHeader(name)).join('\n');

/** The services that the queries of one handler share. */
interface QueryServices {
  readonly core: GraphQLCore;
  readonly settings: ResponseCacheSettings;
  readonly execute: Execute;
  readonly compression: Compression | undefined;
}

interface CachePlace {
  readonly key: string;
  readonly plan: KeyPlan;
  /** The request headers whose values are part of the key. */
  readonly vary: readonly string[];
}

/** A query with the caching of its result. */
interface QueryExecution {
  readonly call: HttpCall;
  readonly prepared: PreparedOperation;
  readonly caching: ResultCaching | undefined;
}

/** A query of one request whose result may come from the cache. */
export class CacheableQuery implements CachePlace {
  readonly key: string;
  readonly plan: KeyPlan;
  readonly vary: readonly string[];
  readonly #services: QueryServices;
  readonly #exchange: Exchange;
  #execution: QueryExecution;
  /** The limiting headers before the execution, in which resolvers may change them. */
  #headers: string | undefined;

  constructor(services: QueryServices, { key, plan, vary }: CachePlace, execution: QueryExecution) {
    this.key = key;
    this.plan = plan;
    this.vary = vary;
    this.#services = services;
    this.#exchange = execution.call.exchange;
    this.#execution = execution;
  }

  /** Whether the key identifies the user, so that private results may be stored. */
  get isPrivate(): boolean {
    return this.#services.settings.key !== undefined;
  }

  /** Whether the key separates all users; known after the execution, in which a resolver may set a cookie. */
  get isShareable(): boolean {
    const { req, res } = this.#exchange;
    if (this.#headers !== undefined && this.#headers !== limitingHeaders(res)) return false;
    // A request whose headers or URL contain credentials has no query.
    return this.isPrivate || !hasUser(req, res);
  }

  /** Whether the client has disconnected. */
  get isAborted(): boolean {
    return isAborted(this.#exchange.res);
  }

  execute(): MaybePromise<ExecutionOutcome> {
    const { call, prepared } = this.#execution;
    this.#headers = limitingHeaders(this.#exchange.res);
    return this.#services.execute(call, prepared);
  }

  /** The coding in which the client prefers the result, if it can be sent without a change. */
  get coding(): Coding | undefined {
    const { batchCost, accepted } = this.#exchange;
    if (batchCost !== undefined || accepted.type === undefined) return undefined;
    if (this.#execution.call.isExtended) return undefined;
    return this.#services.compression?.preferred(this.#exchange);
  }

  /** Uses a compressed result, unless it must not be sent compressed to this client. */
  useEncoded(stored: StoredResult): StoredResult | undefined {
    const before = this.#exchange.caching;
    this.#exchange.caching = stored;
    if (this.#services.compression?.isAllowed(this.#exchange, true) === true) return stored;
    this.#exchange.caching = before;
    return undefined;
  }

  /** Executes the query after its request got an expired result. The execution does not depend on the request. */
  refresh(): MaybePromise<ExecutionOutcome> {
    const { call, prepared } = this.#execution;
    const { rootValue, contextValue, variableValues, operationName, request, access } = call;
    const caching = prepared.cachePolicy?.start(variableValues);
    this.#execution = {
      ...this.#execution,
      caching: withOptionTags(this.#services.settings, caching, call),
    };
    const origin = { transport: 'http', operationName, request, socket: undefined } as const;
    return prepared.execute({ rootValue, contextValue, variableValues, origin, caching, access });
  }

  /** Returns the policy of the result with all its tags, after the execution. */
  policy(): CachePolicy {
    return this.#execution.caching?.policy() ?? UNCACHEABLE;
  }

  /** Uses a stored result for the response, whose headers then have its age. */
  use(stored: StoredResult): StoredResult {
    if (this.#exchange.batchCost === undefined) this.#exchange.caching = stored;
    return stored;
  }

  /** Reports an error after the response was sent. */
  report(error: unknown): void {
    this.#services.core.reportError(error, this.#execution.call.origin);
  }
}

const isTags = isListOf(isString);

function toTags(returned: unknown): readonly string[] {
  const list = assertSync(returned, CACHE_OPTIONS, 'tags');
  if (!isTags(list)) throw wrongReturnValue(CACHE_OPTIONS, 'tags', list, 'a list of tags');
  return list.map(String).filter(Boolean).map(normalTag);
}

/** Adds the tags of the option `tags` to the caching of a query, for its entry and for its headers. */
function withOptionTags(
  { tags: tagsOf }: ResponseCacheSettings,
  caching: ResultCaching | undefined,
  { request, contextValue }: HttpCall,
): ResultCaching | undefined {
  if (tagsOf === undefined || caching === undefined) return caching;
  let tags: readonly string[] | undefined;
  return {
    policy() {
      const policy = caching.policy();
      if (!isCacheable(policy)) return policy;
      tags ??= toTags(tagsOf(request, contextValue));
      return { ...policy, tags: [...new Set([...policy.tags, ...tags])] };
    },
  };
}
