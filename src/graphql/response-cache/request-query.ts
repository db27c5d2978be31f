import type { CachePolicy } from '../../../types/caching.ts';
import type { MaybePromise } from '../../../types/connect.ts';
import { UNCACHEABLE } from '../../core/caching/operation-policy.ts';
import type { GraphQLCore } from '../../core/core.ts';
import { isPublicError } from '../../core/errors.ts';
import type { ExecutionInputs, ExecutionOutcome, PreparedOperation } from '../../execution/types.ts';
import { assertSync, wrongReturnValue } from '../../options/resolve-options.ts';
import { isListOf, isString } from '../../options/rules.ts';
import { CACHE_OPTIONS } from '../../options/scopes.ts';
import { hasUser } from '../caching/credentials.ts';
import type { Exchange } from '../exchange.ts';
import type { RequestInputs } from '../request-inputs.ts';
import type { KeyPlan } from './key-plan.ts';
import type { ResponseCacheSettings } from './options.ts';
import type { CacheableQuery } from './response-cache.ts';
import type { StoredResult } from './stored-result.ts';

/** Executes an operation that may run. */
export type Execute = (
  exchange: Exchange,
  prepared: PreparedOperation,
  inputs: RequestInputs,
) => MaybePromise<ExecutionOutcome>;

const isTags = isListOf(isString);

/** The services that the queries of one handler share. */
export interface QueryServices {
  readonly core: GraphQLCore;
  readonly settings: ResponseCacheSettings;
  readonly execute: Execute;
}

/** A query with the values that its execution needs. */
interface QueryExecution {
  readonly prepared: PreparedOperation;
  readonly inputs: RequestInputs;
}

/** The query of one request. */
export class RequestQuery implements CacheableQuery {
  readonly key: string;
  readonly plan: KeyPlan;
  readonly vary: readonly string[];
  readonly #services: QueryServices;
  readonly #exchange: Exchange;
  readonly #execution: QueryExecution;

  constructor(
    services: QueryServices,
    { key, plan, vary }: Pick<CacheableQuery, 'key' | 'plan' | 'vary'>,
    exchange: Exchange,
    execution: QueryExecution,
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
    // A request whose headers or URL contain credentials has no query.
    return this.isPrivate || !hasUser(this.#exchange.req, this.#exchange.res);
  }

  execute(): MaybePromise<ExecutionOutcome> {
    const { prepared, inputs } = this.#execution;
    return this.#services.execute(this.#exchange, prepared, inputs);
  }

  policy(): CachePolicy {
    return this.#execution.inputs.caching?.policy() ?? UNCACHEABLE;
  }

  later(): CacheableQuery {
    const { prepared, inputs } = this.#execution;
    return new DetachedQuery(this, prepared, detached(prepared, inputs));
  }

  tags(): readonly string[] {
    const { tags } = this.#services.settings;
    if (tags === undefined) return [];
    const list = assertSync(
      tags(this.#exchange.req, this.#execution.inputs.contextValue),
      CACHE_OPTIONS,
      'tags',
    );
    if (!isTags(list)) throw wrongReturnValue(CACHE_OPTIONS, 'tags', list, 'a list of tags');
    return list.map(String);
  }

  use(stored: StoredResult): StoredResult {
    this.#exchange.timings?.end('cache');
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
  readonly key: string;
  readonly plan: KeyPlan;
  readonly vary: readonly string[];
  readonly isPrivate: boolean;
  readonly #query: CacheableQuery;
  readonly #prepared: PreparedOperation;
  readonly #inputs: ExecutionInputs;

  constructor(query: CacheableQuery, prepared: PreparedOperation, inputs: ExecutionInputs) {
    this.key = query.key;
    this.plan = query.plan;
    this.vary = query.vary;
    this.isPrivate = query.isPrivate;
    this.#query = query;
    this.#prepared = prepared;
    this.#inputs = inputs;
  }

  get isShareable(): boolean {
    return this.#query.isShareable;
  }

  execute(): MaybePromise<ExecutionOutcome> {
    return this.#prepared.execute(this.#inputs);
  }

  policy(): CachePolicy {
    return this.#inputs.caching?.policy() ?? UNCACHEABLE;
  }

  later(): CacheableQuery {
    return this;
  }

  tags(): readonly string[] {
    return this.#query.tags();
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
