import type { ServerResponse } from 'node:http';
import type { GraphQLSchema } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import type { GraphQLCore } from '../core/core.ts';
import { events } from '../core/diagnostics.ts';
import { isGraphQLError } from '../core/errors.ts';
import { exceed } from '../core/limits/limit-exceeded.ts';
import type { DocumentLimitSettings } from '../core/options.ts';
import { isThenable } from '../execution/promises.ts';
import type {
  ExecutionInputs,
  ExecutionOutcome,
  GraphQLParams,
  PreparedOperation,
  RequestError,
} from '../execution/types.ts';
import { HttpError } from '../http/reply/http-error.ts';
import type { Guard } from './csrf.ts';
import type { Exchange } from './exchange.ts';

/** What an operation came to. */
export type Result = ExecutionOutcome | RequestError;

/** Runs one operation of a request: prepared, guarded, given its context, executed. */
export type Operate = (exchange: Exchange, params: GraphQLParams) => MaybePromise<Result>;

/** The runner of one handler; synchronous where schema, context and resolvers are. */
export function createOperate(core: GraphQLCore, guard: Guard, limits: DocumentLimitSettings): Operate {
  function start(exchange: Exchange, schema: GraphQLSchema, params: GraphQLParams): MaybePromise<Result> {
    const prepared = core.prepare(schema, params, exchange.req);
    return prepared instanceof Promise
      ? prepared.then((settled) => startPrepared(exchange, settled, params))
      : startPrepared(exchange, prepared, params);
  }

  function startPrepared(
    exchange: Exchange,
    prepared: PreparedOperation | RequestError,
    params: GraphQLParams,
  ): MaybePromise<Result> {
    exchange.phases?.end('prepare');
    if ('errors' in prepared) return prepared;
    admit(exchange, prepared);
    spend(exchange, prepared, limits);
    return withContext(exchange, prepared, params);
  }

  function withContext(
    exchange: Exchange,
    prepared: PreparedOperation,
    params: GraphQLParams,
  ): MaybePromise<Result> {
    const context = core.contextFor(exchange.req);
    return isThenable(context)
      ? context.then((value) => execute(exchange, prepared, params, value))
      : execute(exchange, prepared, params, context);
  }

  function admit({ req, accepted }: Exchange, { operation }: PreparedOperation): void {
    if (operation.operation === 'subscription') {
      const message = 'Subscriptions run over WebSocket, not over plain HTTP';
      throw new HttpError(400, message, { code: 'SUBSCRIPTION_OVER_HTTP' });
    }
    if (operation.operation === 'mutation' && req.method !== 'POST') guard.mutation(req, accepted);
  }

  function execute(
    exchange: Exchange,
    prepared: PreparedOperation,
    params: GraphQLParams,
    context: unknown,
  ): MaybePromise<Result> {
    exchange.phases?.end('context');
    const rootValue = core.rootValueFor(exchange.req);
    const inputs = new RequestInputs(rootValue, context, params.variables, exchange.res);
    const started = events.execute.hasSubscribers ? performance.now() : 0;
    const outcome = prepared.execute(inputs);
    return isThenable(outcome)
      ? outcome.then((settled) => executed(exchange, prepared, settled, started))
      : executed(exchange, prepared, outcome, started);
  }

  return (exchange, params) => {
    try {
      const schema = core.schemaFor(exchange.req);
      const result = isThenable(schema)
        ? schema.then((value) => start(exchange, value, params))
        : start(exchange, schema, params);
      return isThenable(result) ? result.catch(refusalOf) : result;
    } catch (error) {
      return refusalOf(error);
    }
  };
}

/** Operations of one batch share what a single one may ask for. */
function spend({ spent }: Exchange, { cost }: PreparedOperation, limits: DocumentLimitSettings): void {
  if (spent === undefined || cost === undefined) return;
  for (const name of ['fields', 'rootFields'] as const) {
    spent[name] += cost[name];
    if (spent[name] > limits[name]) exceed(name, limits[name], 'The batch');
  }
}

function executed(
  exchange: Exchange,
  operation: PreparedOperation,
  outcome: ExecutionOutcome,
  started: number,
): ExecutionOutcome {
  exchange.phases?.end('execute');
  if (!events.execute.hasSubscribers) return outcome;
  // Who is told of it may keep it.
  const kept = outcome.release === undefined ? outcome : { ...outcome, release: undefined };
  events.execute.publish({
    req: exchange.req,
    operation,
    outcome: kept,
    duration: performance.now() - started,
  });
  return kept;
}

/** A GraphQLError thrown by a context or schema function is meant for the client; anything else is a bug. */
function refusalOf(error: unknown): RequestError {
  if (isGraphQLError(error)) return { errors: [error], status: 400 };
  throw error;
}

/** The inputs of one execution; the signal is made when somebody asks for it. */
class RequestInputs implements ExecutionInputs {
  readonly rootValue: unknown;
  readonly contextValue: unknown;
  readonly variableValues: Record<string, unknown> | undefined;
  readonly #res: ServerResponse;
  #controller: AbortController | undefined;

  constructor(
    rootValue: unknown,
    contextValue: unknown,
    variableValues: Record<string, unknown> | undefined,
    res: ServerResponse,
  ) {
    this.rootValue = rootValue;
    this.contextValue = contextValue;
    this.variableValues = variableValues;
    this.#res = res;
  }

  get signal(): AbortSignal {
    const res = this.#res;
    if (this.#controller === undefined) {
      const controller = new AbortController();
      this.#controller = controller;
      const gone = (): void => {
        if (!res.writableFinished) controller.abort();
      };
      if (res.destroyed) gone();
      else res.once('close', gone);
    }
    return this.#controller.signal;
  }
}
