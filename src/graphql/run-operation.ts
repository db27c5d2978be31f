import type { GraphQLSchema } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import type { GraphQLCore } from '../core/core.ts';
import { events } from '../core/diagnostics.ts';
import { persistedQueryNotSupported } from '../core/documents/refusals.ts';
import { toRequestError } from '../core/errors.ts';
import { type OperationHook, withExtensions } from '../core/operation-hook.ts';
import type { DocumentLimitSettings } from '../core/options.ts';
import {
  type ExecutionOutcome,
  type GraphQLParams,
  isThenable,
  type PreparedOperation,
  type RequestError,
} from '../execution/types.ts';
import { CLIENT_ABORTED } from '../http/body.ts';
import { addCost, addPrice, setAdmissionHeaders } from './batch-cost.ts';
import type { Csrf } from './csrf.ts';
import { type Exchange, type Result, STREAMED } from './exchange.ts';
import { observeOperation } from './observe-operation.ts';
import type { HttpSettings } from './options.ts';
import { hasNoReceiver, RequestInputs } from './request-inputs.ts';
import { createCachedExecution } from './response-cache/cached-execution.ts';
import type { Execute } from './response-cache/request-query.ts';
import type { Streaming } from './streaming/streaming.ts';

/** Runs the operations of one handler; synchronously if schema, context and resolvers are synchronous. */
export class OperationRunner {
  readonly #core: GraphQLCore;
  readonly #csrf: Csrf;
  readonly #streaming: Streaming;
  readonly #limits: DocumentLimitSettings;
  readonly #onOperation: OperationHook | undefined;
  readonly #execute: Execute;

  constructor(core: GraphQLCore, csrf: Csrf, streaming: Streaming, settings: HttpSettings) {
    this.#core = core;
    this.#csrf = csrf;
    this.#streaming = streaming;
    this.#limits = settings.limits;
    this.#execute = executeFor(core, settings);
    this.#onOperation = core.operationHookFor();
  }

  run(exchange: Exchange, params: GraphQLParams): MaybePromise<Result> {
    // With the option `documents`, such a request has the id of a document.
    if (params.query === '' && this.#core.documents === undefined) return persistedQueryNotSupported();
    try {
      const schema = this.#core.schemaFor(exchange.req);
      const result = isThenable(schema)
        ? schema.then((value) => this.#prepare(exchange, value, params))
        : this.#prepare(exchange, schema, params);
      return isThenable(result) ? result.catch(toRequestError) : result;
    } catch (error) {
      return toRequestError(error);
    }
  }

  #prepare(exchange: Exchange, schema: GraphQLSchema, params: GraphQLParams): MaybePromise<Result> {
    if (events.operation.hasSubscribers) {
      return observeOperation(exchange, params, {
        prepare: () => this.#core.prepare(schema, params, exchange.req),
        run: (prepared) => this.#runPrepared(exchange, prepared, params),
      });
    }
    const prepared = this.#core.prepare(schema, params, exchange.req);
    return prepared instanceof Promise
      ? prepared.then((settled) => this.#runPrepared(exchange, settled, params))
      : this.#runPrepared(exchange, prepared, params);
  }

  #runPrepared(
    exchange: Exchange,
    prepared: PreparedOperation | RequestError,
    params: GraphQLParams,
  ): MaybePromise<Result> {
    exchange.timings?.end('prepare');
    if ('errors' in prepared) return prepared;
    exchange.operationName = prepared.operation.name?.value;
    const type = prepared.operation.operation;
    if (type === 'subscription') this.#streaming.assertSubscription(exchange);
    if (type === 'mutation' && exchange.req.method !== 'POST') {
      this.#csrf.assertMutation(exchange.req, exchange.accepted);
    }
    if (exchange.batchCost !== undefined) addCost(exchange.batchCost, prepared, this.#limits);
    const context = this.#core.contextFor(exchange.req, params);
    return isThenable(context)
      ? context.then((value) => this.#runWithContext(exchange, prepared, params, value))
      : this.#runWithContext(exchange, prepared, params, context);
  }

  #runWithContext(
    exchange: Exchange,
    prepared: PreparedOperation,
    params: GraphQLParams,
    context: unknown,
  ): MaybePromise<Result> {
    exchange.timings?.end('context');
    assertConnected(exchange);
    if (exchange.operation !== undefined || prepared.operation.operation === 'subscription') {
      this.#streaming.run(exchange, prepared, { params, context });
      return STREAMED;
    }
    const rootValue = this.#core.rootValueFor(exchange.req);
    const inputs = new RequestInputs(exchange, prepared.operation.name?.value, params, context, rootValue);
    if (prepared.cachePolicy !== undefined) {
      inputs.caching = prepared.cachePolicy.start(params.variables);
      // A batch is a list of results with different policies.
      const isQuery = prepared.operation.operation === 'query';
      if (isQuery && exchange.batchCost === undefined) exchange.caching = inputs.caching;
    }
    if (prepared.incremental !== undefined) {
      inputs.incremental = this.#streaming.incrementalFormatFor(exchange, prepared.incremental);
    }
    if (this.#onOperation === undefined) return this.#execute(exchange, prepared, inputs);
    const admission = this.#onOperation(prepared, inputs, exchange.req);
    return isThenable(admission)
      ? admission.then((settled) => this.#executeAdmitted(exchange, prepared, inputs, settled))
      : this.#executeAdmitted(exchange, prepared, inputs, admission);
  }

  /** Continues after the checks of the options `cost`, `budget` and `onOperation`. */
  #executeAdmitted(
    exchange: Exchange,
    prepared: PreparedOperation,
    inputs: RequestInputs,
    admission: Awaited<ReturnType<OperationHook>>,
  ): MaybePromise<Result> {
    if ('errors' in admission) return admission;
    assertConnected(exchange);
    const { extensions, headers, cost = 0 } = admission;
    const refusal = addPrice(exchange, cost, this.#core.maxCost);
    setAdmissionHeaders(exchange, headers);
    if (refusal !== undefined) return refusal;
    const outcome = this.#execute(exchange, prepared, inputs);
    return isThenable(outcome)
      ? outcome.then((settled) => withExtensions(settled, extensions))
      : withExtensions(outcome, extensions);
  }
}

/** A mutation must not run if no client can receive its result. */
function assertConnected(exchange: Exchange): void {
  if (hasNoReceiver(exchange)) throw CLIENT_ABORTED;
}

/** Returns the function that executes operations: through the response cache, if the handler has one. */
function executeFor(core: GraphQLCore, { responseCache, cacheControl }: HttpSettings): Execute {
  if (responseCache === undefined) return execute;
  return createCachedExecution(core, responseCache, { execute, vary: cacheControl?.vary ?? [] });
}

function execute(
  exchange: Exchange,
  prepared: PreparedOperation,
  inputs: RequestInputs,
): MaybePromise<ExecutionOutcome> {
  const started = events.execute.hasSubscribers ? performance.now() : 0;
  const outcome = prepared.execute(inputs);
  return isThenable(outcome)
    ? outcome.then((settled) => afterExecution(exchange, prepared, settled, started))
    : afterExecution(exchange, prepared, outcome, started);
}

function afterExecution(
  exchange: Exchange,
  operation: PreparedOperation,
  outcome: ExecutionOutcome,
  started: number,
): ExecutionOutcome {
  exchange.timings?.end('execute');
  if (!events.execute.hasSubscribers) return outcome;
  // Subscribers may retain the outcome, so its buffer must not be reused.
  const retained = outcome.release === undefined ? outcome : { ...outcome, release: undefined };
  events.execute.publish({
    req: exchange.req,
    operation,
    outcome: retained,
    duration: performance.now() - started,
  });
  return retained;
}
