import type { ServerResponse } from 'node:http';
import type { CachePolicy } from '../../../types/caching.ts';
import type { MaybePromise } from '../../../types/connect.ts';
import { UNCACHEABLE } from '../../core/caching/operation-policy.ts';
import type { GraphQLCore } from '../../core/core.ts';
import { isPublicError } from '../../core/errors.ts';
import type { ExecutionInputs, ExecutionOutcome, PreparedOperation } from '../../execution/types.ts';
import { isAborted } from '../../http/reply.ts';
import { hasUser } from '../caching/credentials.ts';
import type { Exchange, ResultCaching } from '../exchange.ts';
import type { RequestInputs } from '../request-inputs.ts';
import type { KeyPlan } from './key-plan.ts';
import { withOptionTags } from './option-tags.ts';
import type { ResponseCacheSettings } from './options.ts';
import type { CacheableQuery } from './response-cache.ts';
import type { StoredResult } from './stored-result.ts';

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
export interface QueryServices {
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
export class RequestQuery implements CacheableQuery {
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
