import type { Caller } from '../../types/caller.ts';
import type { ConnectRequest, MaybePromise } from '../../types/connect.ts';
import { Call } from '../core/call.ts';
import type { FindCaller } from '../core/caller.ts';
import type { GraphQLCore } from '../core/core.ts';
import { limitExceeded } from '../core/limits.ts';
import type { DocumentLimitSettings } from '../core/options.ts';
import { events } from '../diagnostics/events.ts';
import { ObservedOperation } from '../execution/observed.ts';
import type { ErrorOrigin, ExecutionOutcome, GraphQLParams, PreparedOperation } from '../execution/types.ts';
import type { Exchange } from '../http/exchange.ts';
import { isAborted, wasCutOff } from '../http/reply.ts';
import { caught, settle } from '../options/values.ts';
import type { Csrf } from './csrf.ts';
import type { Streaming } from './streaming.ts';

/** What all calls of one handler share. */
export interface CallServices {
  readonly core: GraphQLCore;
  readonly limits: DocumentLimitSettings;
  readonly csrf: Csrf;
  readonly streaming: Streaming;
}

/** An operation of an HTTP request: the only one, or one of its batch. */
export class HttpCall extends Call implements ErrorOrigin {
  readonly transport = 'http';
  readonly socket = undefined;
  readonly request: ConnectRequest;
  /** Undefined until the operation is prepared. */
  operationName: string | undefined = undefined;
  rootValue: unknown = undefined;
  readonly #exchange: Exchange;
  readonly #services: CallServices;
  /** Created when the signal is first read. */
  #controller: AbortController | undefined = undefined;

  constructor(services: CallServices, exchange: Exchange, params: GraphQLParams) {
    super(params, events.operation.hasSubscribers ? observedRequest(exchange.req, params) : undefined);
    this.request = exchange.req;
    this.#exchange = exchange;
    this.#services = services;
  }

  get core(): GraphQLCore {
    return this.#services.core;
  }
  get source(): ConnectRequest {
    return this.request;
  }
  override get exchange(): Exchange {
    return this.#exchange;
  }
  override get batch(): object | undefined {
    return this.#exchange.batchSize;
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

  /** The operations of a batch have one caller, who is asked for once. */
  override findCaller(find: FindCaller): MaybePromise<Caller | null> {
    const { exchange } = this;
    exchange.caller ??= {
      found: caught(
        () => find(exchange.req, { transport: 'http', connectionParams: undefined }),
        (error) => Promise.reject(error),
      ),
    };
    return exchange.caller.found;
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
    if (exchange.batchSize !== undefined) addSize(exchange.batchSize, prepared, limits);
  }

  override handOver(prepared: PreparedOperation): boolean {
    if (prepared.operation.operation !== 'subscription') return false;
    this.#services.streaming.run(this, prepared);
    return true;
  }

  override start({ incremental }: PreparedOperation): void {
    const { core, streaming } = this.#services;
    this.rootValue = core.rootValueFor(this.request);
    if (incremental !== undefined)
      this.incremental = streaming.incrementalFormatFor(this.exchange, incremental);
  }

  override willExtend(): void {
    this.#exchange.isExtended = true;
  }

  override execute(prepared: PreparedOperation): MaybePromise<ExecutionOutcome> {
    if (!events.execute.hasSubscribers) return prepared.execute(this);
    const started = performance.now();
    return settle(prepared.execute(this), (outcome) => {
      // Subscribers may retain the outcome, so its buffer must not be reused.
      const retained = outcome.release === undefined ? outcome : { ...outcome, release: undefined };
      const duration = performance.now() - started;
      events.execute.publish({ req: this.request, operation: prepared, outcome: retained, duration });
      return retained;
    });
  }
}

const observedRequest = (request: ConnectRequest, { extensions }: GraphQLParams): ObservedOperation =>
  new ObservedOperation({ transport: 'http', request, extensions });

/** Whether no client can receive the result of an operation. */
const hasNoReceiver = ({ res, isAbandoned }: Exchange): boolean => isAbandoned || isAborted(res);

/** Adds the size of an operation to the size of its batch, which has the limits of a single operation. */
function addSize(
  batchSize: NonNullable<Exchange['batchSize']>,
  { size }: PreparedOperation,
  limits: DocumentLimitSettings,
): void {
  if (size === undefined) return;
  for (const name of ['fields', 'rootFields'] as const) {
    batchSize[name] += size[name];
    if (batchSize[name] > limits[name]) throw limitExceeded(name, limits[name], 'The batch');
  }
}
