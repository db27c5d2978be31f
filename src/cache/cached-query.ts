import type { ServerResponse } from 'node:http';
import type { OperationDefinitionNode } from 'graphql';
import type { CachePolicy } from '../../types/caching.ts';
import type { MaybePromise } from '../../types/connect.ts';
import { keyFrom } from '../core/caller.ts';
import type { ExtensionParts } from '../core/extension.ts';
import type {
  ErrorOrigin,
  ExecutionInputs,
  ExecutionOutcome,
  PreparedOperation,
} from '../execution/types.ts';
import type { Coding } from '../http/codings.ts';
import type { Exchange, ResultCaching } from '../http/exchange.ts';
import { GRAPHQL_TYPE } from '../http/negotiation.ts';
import { isAborted } from '../http/reply.ts';
import { CACHE_OPTIONS } from '../options/scopes.ts';
import { getOrCreate } from '../options/values.ts';
import { hasCredentials, hasUser } from './credentials.ts';
import { createSchemaId, createTargetKey, declaredVariants, KeyPlan } from './key.ts';
import type { ResponseCacheSettings } from './options.ts';
import { type OperationPolicy, UNCACHEABLE } from './policy.ts';
import { ResponseCache, type StoredResult } from './response-cache.ts';
import type { FailsafeStore } from './store.ts';

/** The options that caching depends on. */
export interface CacheOptions {
  readonly httpCache?: unknown;
  readonly responseCache?: unknown;
  readonly documents?: unknown;
  readonly compression?: CodingChoice | undefined;
}

/** Chooses the codings of responses. */
interface CodingChoice {
  preferred(exchange: Exchange): Coding | undefined;
  isAllowed(exchange: Exchange, isResult: boolean): boolean;
}

/** Executes queries through the response cache of a handler. */
export class CachedQueries {
  readonly #cache: ResponseCache;
  readonly #services: QueryServices;
  readonly #schemaIdOf: ReturnType<typeof createSchemaId>;
  readonly #targetOf: ReturnType<typeof createTargetKey>;
  /** By the node of the operation: an observed operation is another object in each request. */
  readonly #plans = new WeakMap<OperationDefinitionNode, KeyPlan>();

  constructor(settings: ResponseCacheSettings, store: FailsafeStore, { options, parts }: CacheParts) {
    this.#cache = new ResponseCache(store, settings);
    const { compression } = options;
    this.#services = { settings, compression, reportError: parts.reportError };
    this.#schemaIdOf = createSchemaId(parts.hasOneSchema);
    this.#targetOf = createTargetKey(options);
  }

  execute(query: Query): MaybePromise<ExecutionOutcome> {
    const { call, exchange } = query;
    // For the headers, also if the result is not stored.
    if (exchange.batchSize === undefined) exchange.caching = call.caching;
    const place = this.#placeOf(query);
    if (place === undefined) return query.next();
    return this.#cache.run(new CacheableQuery(this.#services, place, query));
  }

  /**
   * The part of the key that separates users; undefined if the request must not use the cache. With the option `caller`,
   * results that the schema declares public are those of all callers.
   */
  #userOf({ call, policy, exchange }: Query): string | undefined {
    const { caller, contextValue, variableValues } = call;
    const { key } = this.#services.settings;
    const { req, res } = exchange;
    if (key === undefined && caller === undefined) return hasCredentials(req, res) ? undefined : '';
    const isPublic = key === undefined && policy.of(variableValues).scope === 'PUBLIC';
    const user =
      key === undefined ? caller?.id : keyFrom(CACHE_OPTIONS, 'key', key(req, contextValue), 'null');
    exchange.userKey = isPublic ? '' : (user ?? null);
    return exchange.userKey ?? undefined;
  }

  #planOf(prepared: PreparedOperation): KeyPlan {
    return getOrCreate(
      this.#plans,
      prepared.operation,
      () => new KeyPlan(prepared, this.#schemaIdOf(prepared.visible ?? prepared.schema)),
    );
  }

  /** Returns the place of the result in the cache; undefined if the request must not use the cache. */
  #placeOf(query: Query): CachePlace | undefined {
    const { call, prepared, exchange } = query;
    const { access, params } = call;
    // The headers of the response depend on the key also if the result is not stored.
    const user = this.#userOf(query);
    if (call.incremental !== undefined) return undefined;
    const variants = declaredVariants(exchange);
    if (user === undefined || variants === undefined) return undefined;
    const plan = this.#planOf(prepared);
    const { vary } = plan;
    const key = plan.keyOf({
      variables: call.variableValues,
      extensions: params?.extensions,
      type: exchange.accepted.type === GRAPHQL_TYPE ? 'g' : 'j',
      user: access === undefined ? user : `${access.storedKey} ${user}`,
      target: this.#targetOf(exchange.req) + variants,
      headers: exchange.req.headers,
    });
    // Not that of the exchange: other operations of a batch have other users.
    const isPrivate = this.#services.settings.key !== undefined || (call.caller !== undefined && user !== '');
    return key === undefined ? undefined : { key, plan, vary, isPrivate };
  }
}

/** The response headers that limit who may get the result. A stored result is sent without those of resolvers. */
const LIMITING_HEADERS = ['cache-control', 'set-cookie', 'vary'];

const limitingHeaders = (res: ServerResponse): string =>
  LIMITING_HEADERS.map((name) => res.getHeader(name)).join('\n');

interface CacheParts {
  readonly options: CacheOptions;
  readonly parts: ExtensionParts;
}

/** The services that the queries of one handler share. */
interface QueryServices {
  readonly settings: ResponseCacheSettings;
  readonly compression: CodingChoice | undefined;
  readonly reportError: ExtensionParts['reportError'];
}

interface CachePlace {
  readonly key: string;
  readonly plan: KeyPlan;
  /** The request headers whose values are part of the key. */
  readonly vary: readonly string[];
  /** Whether the key identifies the user, so that private results may be stored. */
  readonly isPrivate: boolean;
}

/** A query of an HTTP request, with the function that executes it. */
interface Query {
  readonly call: ExecutionInputs;
  readonly prepared: PreparedOperation;
  readonly policy: OperationPolicy;
  readonly exchange: Exchange;
  next(): MaybePromise<ExecutionOutcome>;
}

/** A query of one request whose result may come from the cache. */
export class CacheableQuery implements CachePlace {
  readonly key: string;
  readonly plan: KeyPlan;
  readonly vary: readonly string[];
  readonly isPrivate: boolean;
  readonly #services: QueryServices;
  readonly #exchange: Exchange;
  readonly #query: Query;
  #caching: ResultCaching | undefined;
  /** The limiting headers before the execution, in which resolvers may change them. */
  #headers: string | undefined;

  constructor(services: QueryServices, { key, plan, vary, isPrivate }: CachePlace, query: Query) {
    this.key = key;
    this.plan = plan;
    this.vary = vary;
    this.isPrivate = isPrivate;
    this.#services = services;
    this.#exchange = query.exchange;
    this.#query = query;
    this.#caching = query.call.caching;
  }

  /** Whether the key separates all users; known after the execution, in which a resolver may set a cookie. */
  get isShareable(): boolean {
    const { req, res } = this.#exchange;
    if (this.#headers !== undefined && this.#headers !== limitingHeaders(res)) return false;
    // A request whose headers or URL contain credentials has no query.
    return this.isPrivate || this.#query.call.caller !== undefined || !hasUser(req, res);
  }

  /** Whether the client has disconnected. */
  get isAborted(): boolean {
    return isAborted(this.#exchange.res);
  }

  execute(): MaybePromise<ExecutionOutcome> {
    this.#headers = limitingHeaders(this.#exchange.res);
    return this.#query.next();
  }

  /** The coding in which the client prefers the result, if it can be sent without a change. */
  get coding(): Coding | undefined {
    const { batchSize, accepted, isExtended } = this.#exchange;
    if (batchSize !== undefined || accepted.type === undefined || isExtended) return undefined;
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
    const { call, prepared, policy } = this.#query;
    const { rootValue, contextValue, variableValues, access } = call;
    const caching = policy.start(variableValues, undefined);
    this.#caching = caching;
    return prepared.execute({
      rootValue,
      contextValue,
      variableValues,
      origin: this.#origin,
      caching,
      access,
    });
  }

  /** The origin without the request's end. */
  get #origin(): ErrorOrigin {
    const { operationName, req: request } = this.#exchange;
    return { transport: 'http', operationName, request, socket: undefined };
  }

  /** Returns the policy of the result with all its tags, after the execution. */
  policy(): CachePolicy {
    return this.#caching?.policy() ?? UNCACHEABLE;
  }

  /** Uses a stored result for the response, whose headers then have its age. */
  use(stored: StoredResult): StoredResult {
    if (this.#exchange.batchSize === undefined) this.#exchange.caching = stored;
    return stored;
  }

  /** Reports an error after the response was sent. */
  report(error: unknown): void {
    this.#services.reportError(error, this.#origin);
  }
}
