import type { ServerResponse } from 'node:http';
import type { GraphQLSchema } from 'graphql';
import type { ConnectRequest, MaybePromise, NextFunction } from '../../types/connect.ts';
import { createCachedExecution, type Execute } from '../cache/cached-execution.ts';
import { type OperationHook, withExtensions } from '../core/admission.ts';
import type { GraphQLCore } from '../core/core.ts';
import { persistedQueryNotSupported } from '../core/document-id.ts';
import { isLongDocument } from '../core/documents.ts';
import { isFormatFailure, MASKED, MASKED_CODE, toRequestError } from '../core/errors.ts';
import { assertVariableLimits, limitExceeded } from '../core/limits.ts';
import type { DocumentLimitSettings } from '../core/options.ts';
import { yieldToEventLoop } from '../core/turns.ts';
import { COST_HEADER, costExceeded } from '../cost/cost-check.ts';
import { events } from '../diagnostics/events.ts';
import { debug, readError } from '../diagnostics/logging.ts';
import { ObservedOperation } from '../execution/observed.ts';
import {
  type ErrorOrigin,
  type ExecutionOutcome,
  type GraphQLParams,
  isThenable,
  type PreparedOperation,
  type RemainingResults,
  type RequestError,
} from '../execution/types.ts';
import { CLIENT_ABORTED, drainRequest } from '../http/body.ts';
import { createNegotiator, GRAPHQL_TYPE, JSON_TYPE } from '../http/negotiation.ts';
import {
  type Headers,
  HttpError,
  isAborted,
  isQueued,
  type Reply,
  toError,
  whenFirst,
  writeReply,
} from '../http/reply.ts';
import { type Csrf, createCsrf } from './csrf.ts';
import { type Exchange, hasNoReceiver, RequestInputs, type Result, STREAMED } from './exchange.ts';
import type { HttpSettings } from './options.ts';
import {
  createPathIdReader,
  createRequestCheck,
  createRequestReader,
  isBatch,
  type ReadRequest,
  type RequestParams,
} from './request.ts';
import { createResponseFactory, createSender, type ResponseFactory, type Sender } from './response.ts';
import { Streaming } from './streaming.ts';

/** A request handler; `next` is undefined in a bare server. */
export type Handler = (req: ConnectRequest, res: ServerResponse, next?: NextFunction) => void;

/**
 * Creates the handler of GraphQL requests over HTTP. It checks and reads each request, executes it and sends
 * the response.
 */
export function createHandler(core: GraphQLCore, settings: HttpSettings): Handler {
  const pipeline = new Pipeline(core, settings);
  return (req, res, next) => pipeline.handle(req, res, next);
}

class Pipeline {
  readonly #settings: HttpSettings;
  readonly #setsState: boolean;
  readonly #negotiate = createNegotiator([JSON_TYPE, GRAPHQL_TYPE]);
  readonly #check: (exchange: Exchange) => void;
  readonly #read: ReadRequest;
  readonly #streaming: Streaming;
  readonly #runner: OperationRunner;
  readonly #responses: ResponseFactory;
  /** Creates responses whose status is 200 unless an error sets another one. */
  readonly #streamResponses: ResponseFactory;
  readonly #sender: Sender;
  readonly #failures: Failures;

  constructor(core: GraphQLCore, settings: HttpSettings) {
    const csrf = createCsrf(settings);
    this.#settings = settings;
    this.#setsState = settings.passesRequest || !core.hasOneSchema;
    this.#streaming = new Streaming(core, settings);
    this.#check = createRequestCheck(core, settings, csrf, this.#streaming);
    const read = createRequestReader(settings, csrf, (error, exchange) =>
      core.reportError(error, originOf(exchange)),
    );
    this.#read = core.documents === undefined ? read : createPathIdReader(read, core.documents);
    this.#runner = new OperationRunner(core, csrf, this.#streaming, settings);
    this.#responses = createResponseFactory(core, settings.statusCodes);
    this.#streamResponses = createResponseFactory(core, 'legacy');
    this.#sender = createSender(settings);
    this.#failures = new Failures(core, this.#responses, this.#sender);
  }

  handle(req: ConnectRequest, res: ServerResponse, next: NextFunction | undefined): void {
    if (isQueued(res)) whenFirst(res, () => this.#start(req, res, next));
    else this.#start(req, res, next);
  }

  #start(req: ConnectRequest, res: ServerResponse, next: NextFunction | undefined): void {
    // Only functions of the application read it. Express gives each request its own hidden class, which V8 has to
    // copy for a new member.
    if (this.#setsState) req.state ??= {};
    const exchange: Exchange = {
      req,
      res,
      next,
      accepted: this.#negotiate(req.headers.accept),
      started: events.response.hasSubscribers ? performance.now() : 0,
      operationName: undefined,
      batchCost: undefined,
      isAbandoned: false,
      caching: undefined,
      userKey: undefined,
      invalidatedTags: undefined,
    };
    if (events.request.hasSubscribers) events.request.publish({ req, res });
    try {
      this.#check(exchange);
      const params = this.#read(exchange);
      if (params instanceof Promise) {
        params.then(
          (read) => this.#respond(exchange, read),
          (error: unknown) => this.#failures.fail(exchange, error),
        );
      } else this.#respond(exchange, params);
    } catch (error) {
      this.#failures.fail(exchange, error);
    }
  }

  /** Executes the operations and sends the response. Never throws. */
  #respond(exchange: Exchange, params: RequestParams): void {
    try {
      if (isBatch(params)) {
        this.#runBatch(exchange, params).catch((error: unknown) => {
          exchange.isAbandoned = true;
          this.#failures.fail(exchange, error);
        });
      } else this.#settle(exchange, this.#runOne(exchange, params));
    } catch (error) {
      this.#failures.fail(exchange, error);
    }
  }

  #settle(exchange: Exchange, result: MaybePromise<Result>): void {
    if (!isThenable(result)) {
      this.#send(exchange, result);
      return;
    }
    result
      .then((settled) => this.#send(exchange, settled))
      .catch((error: unknown) => this.#failures.fail(exchange, error));
  }

  #runOne(exchange: Exchange, params: GraphQLParams): MaybePromise<Result> {
    if (params.variables !== undefined) {
      assertVariableLimits([params.variables], this.#settings.limits.variables);
    }
    return this.#runner.run(exchange, params);
  }

  async #runBatch(exchange: Exchange, batch: readonly GraphQLParams[]): Promise<void> {
    const variables = batch.map((params) => params.variables);
    assertVariableLimits(variables, this.#settings.limits.variables);
    exchange.batchCost = { fields: 0, rootFields: 0, price: 0 };
    const results: MaybePromise<Result>[] = [];
    for (const params of batch) {
      const result = this.#runner.run(exchange, params);
      // `Promise.all` handles the rejection below, but possibly only after later operations have started.
      if (isThenable(result)) result.catch(() => undefined);
      results.push(result);
      if (isLongDocument(params.query)) await yieldToEventLoop();
    }
    const settled = (await Promise.all(results)).filter((result) => result !== STREAMED);
    this.#sender.send(exchange, this.#responses.fromBatch(settled, exchange.accepted.type ?? JSON_TYPE));
  }

  #send(exchange: Exchange, result: Result): void {
    if (result === STREAMED) return;
    if ('rest' in result && result.rest !== undefined) {
      this.#streaming.sendIncremental(exchange, result.body.toString(), result.rest);
      return;
    }
    const { type } = exchange.accepted;
    if (type === undefined) this.#sendInStream(exchange, result);
    else this.#sender.send(exchange, this.#responses.fromResult(result, type));
  }

  /**
   * Sends a single result to a client that accepts only streams, or a plain response if an error sets its
   * status.
   */
  #sendInStream(exchange: Exchange, result: ExecutionOutcome | RequestError): void {
    const response = this.#streamResponses.fromResult(result, JSON_TYPE);
    if (response.status === 200) this.#streaming.sendWhole(exchange, response.body.toString());
    else this.#sender.send(exchange, response);
  }
}

/** Runs the operations of one handler; synchronously if schema, context and resolvers are synchronous. */
class OperationRunner {
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
    assertConnected(exchange);
    if (prepared.operation.operation === 'subscription') {
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
  if (headers === undefined) return;
  for (const [name, value] of Object.entries(headers)) {
    const isPart = name === COST_HEADER && batchCost !== undefined;
    res.setHeader(name, isPart ? value.replace(/^[^;]+/, String(batchCost.price)) : value);
  }
}

/** The steps of an operation. */
interface Steps {
  prepare(): MaybePromise<PreparedOperation | RequestError>;
  run(prepared: PreparedOperation | RequestError): MaybePromise<Result>;
}

/** Runs an operation that subscribers of `espalier:graphql:operation` observe. */
function observeOperation(
  { req }: Exchange,
  { extensions }: GraphQLParams,
  { prepare, run }: Steps,
): MaybePromise<Result> {
  const operation = new ObservedOperation({
    transport: 'http',
    request: req,
    socket: undefined,
    connectionParams: undefined,
    extensions,
  });
  const prepared = prepare();
  return isThenable(prepared)
    ? prepared.then((settled) => runObserved(operation, settled, run))
    : runObserved(operation, prepared, run);
}

function runObserved(
  operation: ObservedOperation,
  prepared: PreparedOperation | RequestError,
  run: Steps['run'],
): MaybePromise<Result> {
  const fail = (error: unknown): never => {
    operation.fail([error]);
    operation.end();
    throw error;
  };
  let result: MaybePromise<Result>;
  try {
    result = operation.begin(prepared, publish, run);
  } catch (error) {
    return fail(error);
  }
  return isThenable(result)
    ? result.then((settled) => endWith(operation, settled), fail)
    : endWith(operation, result);
}

const publish = (operation: ObservedOperation): void => events.operation.publish(operation);

/**
 * Ends an operation with its result or, if it has several, with its last payload. The operation of an event
 * stream ends with the stream.
 */
function endWith(operation: ObservedOperation, result: Result): Result {
  if (result === STREAMED) return result;
  if ('rest' in result && result.rest !== undefined) {
    return { ...result, rest: endAfter(operation, result.rest) };
  }
  if (!('kind' in result)) operation.fail(result.errors);
  operation.end();
  return result;
}

/** Ends an operation with its last payload. */
function endAfter(operation: ObservedOperation, rest: RemainingResults): RemainingResults {
  const observe = async (
    read: () => Promise<IteratorResult<string, undefined>>,
  ): Promise<IteratorResult<string, undefined>> => {
    try {
      const item = await operation.run(read);
      if (item.done === true) operation.end();
      return item;
    } catch (error) {
      operation.fail([error]);
      operation.end();
      throw error;
    }
  };
  return { next: () => observe(() => rest.next()), return: () => observe(() => rest.return()) };
}

/** Responds to the requests of one handler that failed. */
class Failures {
  readonly #core: GraphQLCore;
  readonly #responses: ResponseFactory;
  readonly #sender: Sender;

  constructor(core: GraphQLCore, responses: ResponseFactory, sender: Sender) {
    this.#core = core;
    this.#responses = responses;
    this.#sender = sender;
  }

  /**
   * Responds to a client's mistake, passes an unexpected error to `next`, and ignores errors after a
   * disconnect.
   */
  fail(exchange: Exchange, error: unknown): void {
    const { req, res } = exchange;
    if (error === CLIENT_ABORTED || res.headersSent || isAbort(error, res)) return;
    if (!HttpError.is(error)) {
      this.#failUnexpectedly(exchange, error);
      return;
    }
    debug.graphql('%s %s: %d %s', req.method, req.url, error.status, error.message);
    try {
      this.#sender.sendEarly(exchange, this.#responses.fromHttpError(error, exchange.accepted.type));
    } catch (failure) {
      // `formatError` of the application may throw.
      this.#failUnexpectedly(exchange, failure);
    }
  }

  #failUnexpectedly(exchange: Exchange, error: unknown): void {
    const { req, res, next } = exchange;
    const origin = originOf(exchange);
    if (next !== undefined) {
      this.#core.reportForwardedError(error, origin);
      next(toError(error));
      return;
    }
    try {
      // `formatError` would fail for its own error too.
      if (isFormatFailure(error)) throw error;
      this.#sender.sendEarly(exchange, this.#responses.fromUnexpectedError(error, origin));
    } catch (failure) {
      this.#core.reportError(failure, origin);
      drainRequest(req, res);
      writeReply(req, res, MASKED_ERROR);
    }
  }
}

/** The request that an error belongs to. */
const originOf = ({ req, operationName }: Exchange): ErrorOrigin => ({
  transport: 'http',
  operationName,
  request: req,
  socket: undefined,
});

/**
 * The response of a bare server when `formatError` throws while an unexpected error is reported.
 */
const MASKED_ERROR: Reply = {
  status: 500,
  headers: { 'content-type': 'application/json; charset=utf-8', 'x-content-type-options': 'nosniff' },
  body: JSON.stringify({ errors: [{ message: MASKED, extensions: { code: MASKED_CODE } }] }),
};

/** Whether an execution stopped because its client disconnected. */
function isAbort(error: unknown, res: ServerResponse): boolean {
  // Compares the name, since the DOMException of a signal may come from another realm.
  return isAborted(res) && /^Abort/.test(readError(error).name ?? '');
}
