import type { ConnectRequest, MaybePromise } from '../../types/connect.ts';
import type { Admission, OperationHook } from '../core/admission.ts';
import { Call } from '../core/call.ts';
import type { GraphQLCore } from '../core/core.ts';
import { limitExceeded } from '../core/limits.ts';
import type { DocumentLimitSettings } from '../core/options.ts';
import { COST_HEADER, costExceeded } from '../cost/cost-check.ts';
import { events } from '../diagnostics/events.ts';
import { ObservedOperation } from '../execution/observed.ts';
import type {
  ErrorOrigin,
  ExecutionOutcome,
  GraphQLParams,
  PreparedOperation,
  RequestError,
} from '../execution/types.ts';
import type { Exchange } from '../http/exchange.ts';
import { type Headers, isAborted, wasCutOff } from '../http/reply.ts';
import { settle } from '../options/rules.ts';
import type { Csrf } from './csrf.ts';
import type { Streaming } from './streaming.ts';

/** Executes an operation that may run. */
export type Execute = (call: HttpCall, prepared: PreparedOperation) => MaybePromise<ExecutionOutcome>;

/** What all calls of one handler share. */
export interface CallServices {
  readonly core: GraphQLCore;
  readonly limits: DocumentLimitSettings;
  readonly csrf: Csrf;
  readonly streaming: Streaming;
  readonly hook: OperationHook | undefined;
  /** Executes operations: through the response cache, if the handler has one. */
  readonly execute: Execute;
}

/** An operation of an HTTP request: the only one, or one of its batch. */
export class HttpCall extends Call implements ErrorOrigin {
  readonly transport = 'http';
  readonly socket = undefined;
  readonly request: ConnectRequest;
  /** Undefined until the operation is prepared. */
  operationName: string | undefined = undefined;
  rootValue: unknown = undefined;
  /** Whether the result is changed after the execution, so that it must not be compressed already. */
  isExtended = false;
  readonly exchange: Exchange;
  readonly #services: CallServices;
  /** Created when the signal is first read. */
  #controller: AbortController | undefined = undefined;

  constructor(services: CallServices, exchange: Exchange, params: GraphQLParams) {
    super(params, events.operation.hasSubscribers ? observedRequest(exchange.req, params) : undefined);
    this.request = exchange.req;
    this.exchange = exchange;
    this.#services = services;
  }

  get core(): GraphQLCore {
    return this.#services.core;
  }
  get source(): ConnectRequest {
    return this.request;
  }
  get hook(): OperationHook | undefined {
    return this.#services.hook;
  }
  get origin(): ErrorOrigin {
    return this;
  }
  get aborted(): boolean {
    // The signal may not exist: graphql 16 never reads it.
    return !this.outlivesClient && hasNoReceiver(this.exchange);
  }

  get signal(): AbortSignal | undefined {
    if (this.outlivesClient) return undefined;
    const { exchange } = this;
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      const onClose = (): void => {
        if (wasCutOff(exchange.res) || exchange.isAbandoned) controller.abort();
      };
      if (hasNoReceiver(exchange)) onClose();
      else exchange.res.once('close', onClose);
    }
    return this.#controller.signal;
  }

  setHeader(name: string, value: string): void {
    const { res } = this.exchange;
    if (!res.headersSent) res.setHeader(name, value);
  }

  isWanted(): boolean {
    return !hasNoReceiver(this.exchange);
  }

  override accept(prepared: PreparedOperation): undefined {
    const { exchange } = this;
    const { csrf, streaming, limits } = this.#services;
    this.operationName = prepared.operation.name?.value;
    exchange.operationName = this.operationName;
    const type = prepared.operation.operation;
    if (type === 'subscription') streaming.beginSubscription(exchange);
    if (type === 'mutation' && exchange.req.method !== 'POST') {
      csrf.assertMutation(exchange.req, exchange.accepted);
    }
    if (exchange.batchCost !== undefined) addCost(exchange.batchCost, prepared, limits);
  }

  override handOver(prepared: PreparedOperation): boolean {
    if (prepared.operation.operation !== 'subscription') return false;
    this.#services.streaming.run(this, prepared);
    return true;
  }

  override start({ operation, cachePolicy, incremental }: PreparedOperation): void {
    const { exchange } = this;
    const { core, streaming } = this.#services;
    this.rootValue = core.rootValueFor(this.request);
    if (cachePolicy !== undefined) {
      this.caching = cachePolicy.start(this.params.variables);
      // A batch is a list of results with different policies.
      if (operation.operation === 'query' && exchange.batchCost === undefined)
        exchange.caching = this.caching;
    }
    if (incremental !== undefined) this.incremental = streaming.incrementalFormatFor(exchange, incremental);
  }

  override onAdmitted(
    _prepared: PreparedOperation,
    { extensions, headers, cost = 0 }: Admission,
  ): RequestError | undefined {
    const { exchange } = this;
    const refusal = addPrice(exchange, cost, this.core.maxCost);
    setAdmissionHeaders(exchange, headers);
    exchange.isRestricted = this.access?.isLimited === true;
    this.isExtended = extensions !== undefined;
    return refusal;
  }

  override execute(prepared: PreparedOperation): MaybePromise<ExecutionOutcome> {
    return this.#services.execute(this, prepared);
  }
}

const observedRequest = (request: ConnectRequest, { extensions }: GraphQLParams): ObservedOperation =>
  new ObservedOperation({ transport: 'http', request, extensions });

/** Executes an operation without the response cache. */
export const execute: Execute = (call, prepared) => {
  if (!events.execute.hasSubscribers) return prepared.execute(call);
  const started = performance.now();
  return settle(prepared.execute(call), (outcome) => {
    // Subscribers may retain the outcome, so its buffer must not be reused.
    const retained = outcome.release === undefined ? outcome : { ...outcome, release: undefined };
    const duration = performance.now() - started;
    events.execute.publish({ req: call.request, operation: prepared, outcome: retained, duration });
    return retained;
  });
};

/** Whether no client can receive the result of an operation. */
const hasNoReceiver = ({ res, isAbandoned }: Exchange): boolean => isAbandoned || isAborted(res);

/** Adds the cost of an operation to the cost of its batch, which has the limits of a single operation. */
function addCost(
  batchCost: NonNullable<Exchange['batchCost']>,
  { cost }: PreparedOperation,
  limits: DocumentLimitSettings,
): void {
  if (cost === undefined) return;
  for (const name of ['fields', 'rootFields'] as const) {
    batchCost[name] += cost[name];
    if (batchCost[name] > limits[name]) throw limitExceeded(name, limits[name], 'The batch');
  }
}

/** Adds the price of an operation to that of its batch, which has the limit of a single operation. */
function addPrice(
  { batchCost }: Exchange,
  price: number,
  maxCost: number | undefined,
): RequestError | undefined {
  if (batchCost === undefined) return undefined;
  batchCost.price += price;
  return maxCost !== undefined && batchCost.price > maxCost
    ? costExceeded(batchCost.price, maxCost, 'The batch')
    : undefined;
}

/** Sets the headers of an operation that the options `cost` and `budget` admit. The cost is that of its batch so far. */
function setAdmissionHeaders({ res, batchCost }: Exchange, headers: Headers | undefined): void {
  // The head of JSON lines is sent with the first result.
  if (headers === undefined || res.headersSent) return;
  for (const [name, value] of Object.entries(headers)) {
    const isPart = name === COST_HEADER && batchCost !== undefined;
    res.setHeader(name, isPart ? value.replace(/^[^;]+/, String(batchCost.price)) : value);
  }
}
