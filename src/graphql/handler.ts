import type { ServerResponse } from 'node:http';
import type { ConnectRequest, MaybePromise, NextFunction } from '../../types/connect.ts';
import type { GraphQLCore } from '../core/core.ts';
import { events } from '../core/diagnostics.ts';
import { isFormatFailure, MASKED, MASKED_CODE } from '../core/errors.ts';
import { assertVariableLimits } from '../core/limits/variables.ts';
import { isLongDocument } from '../core/prepare.ts';
import { yieldToEventLoop } from '../core/yield-to-event-loop.ts';
import { type ErrorOrigin, type GraphQLParams, isThenable } from '../execution/types.ts';
import { drainRequest } from '../http/body/drain.ts';
import { CLIENT_ABORTED } from '../http/body/read-body.ts';
import { createNegotiator } from '../http/negotiation/accept.ts';
import { isQueued, whenFirst } from '../http/reply/connection.ts';
import { HttpError, toError } from '../http/reply/http-error.ts';
import { type Reply, writeReply } from '../http/reply/write-reply.ts';
import { debug } from '../logging/debug.ts';
import { createCsrf } from './csrf.ts';
import { type Exchange, GRAPHQL_TYPE, JSON_TYPE } from './exchange.ts';
import type { HttpSettings } from './options.ts';
import type { RequestParams } from './request/params.ts';
import { createRequestCheck, createRequestReader, type ReadRequest } from './request/read-request.ts';
import {
  createResponseFactory,
  createSender,
  type ResponseFactory,
  type Sender,
} from './response/response.ts';
import { OperationRunner, type Result } from './run-operation.ts';
import { startTimings } from './timings.ts';

/** A request handler; `next` is undefined in a bare server. */
export type Handler = (req: ConnectRequest, res: ServerResponse, next?: NextFunction) => void;

/** Creates the handler of GraphQL requests over HTTP. It checks and reads each request, executes it and sends the response. */
export function createHandler(core: GraphQLCore, settings: HttpSettings): Handler {
  const pipeline = new Pipeline(core, settings);
  return (req, res, next) => pipeline.handle(req, res, next);
}

class Pipeline {
  readonly #core: GraphQLCore;
  readonly #settings: HttpSettings;
  readonly #negotiate = createNegotiator([JSON_TYPE, GRAPHQL_TYPE]);
  readonly #check: (exchange: Exchange) => void;
  readonly #read: ReadRequest;
  readonly #runner: OperationRunner;
  readonly #responses: ResponseFactory;
  readonly #sender: Sender;

  constructor(core: GraphQLCore, settings: HttpSettings) {
    const csrf = createCsrf(settings);
    this.#core = core;
    this.#settings = settings;
    this.#check = createRequestCheck(settings, csrf);
    this.#read = createRequestReader(settings, csrf);
    this.#runner = new OperationRunner(core, csrf, settings.limits);
    this.#responses = createResponseFactory(core, settings.statusCodes);
    this.#sender = createSender(settings);
  }

  handle(req: ConnectRequest, res: ServerResponse, next: NextFunction | undefined): void {
    if (isQueued(res)) whenFirst(res, () => this.#start(req, res, next));
    else this.#start(req, res, next);
  }

  #start(req: ConnectRequest, res: ServerResponse, next: NextFunction | undefined): void {
    req.state ??= {};
    const exchange: Exchange = {
      req,
      res,
      next,
      accepted: this.#negotiate(req.headers.accept),
      started: events.response.hasSubscribers ? performance.now() : 0,
      timings: this.#settings.serverTiming ? startTimings() : undefined,
      operationName: undefined,
      batchCost: undefined,
    };
    if (events.request.hasSubscribers) events.request.publish({ req, res });
    try {
      this.#check(exchange);
      const params = this.#read(exchange);
      if (params instanceof Promise) {
        params.then(
          (read) => this.#respond(exchange, read),
          (error: unknown) => this.#fail(exchange, error),
        );
      } else this.#respond(exchange, params);
    } catch (error) {
      this.#fail(exchange, error);
    }
  }

  /** Executes the operations and sends the response. Never throws. */
  #respond(exchange: Exchange, params: RequestParams): void {
    try {
      const done = isBatch(params) ? this.#runBatch(exchange, params) : this.#runOne(exchange, params);
      if (done !== undefined) done.catch((error: unknown) => this.#fail(exchange, error));
    } catch (error) {
      this.#fail(exchange, error);
    }
  }

  #runOne(exchange: Exchange, params: GraphQLParams): Promise<void> | undefined {
    if (params.variables !== undefined) {
      assertVariableLimits([params.variables], this.#settings.limits.variables);
    }
    const result = this.#runner.run(exchange, params);
    if (isThenable(result)) return result.then((settled) => this.#send(exchange, settled));
    this.#send(exchange, result);
    return undefined;
  }

  async #runBatch(exchange: Exchange, batch: readonly GraphQLParams[]): Promise<void> {
    const variables = batch.map((params) => params.variables);
    assertVariableLimits(variables, this.#settings.limits.variables);
    exchange.batchCost = { fields: 0, rootFields: 0 };
    const results: MaybePromise<Result>[] = [];
    for (const params of batch) {
      const result = this.#runner.run(exchange, params);
      // `Promise.all` handles the rejection below, but possibly only after later operations have started.
      if (isThenable(result)) result.catch(() => undefined);
      results.push(result);
      if (isLongDocument(params.query)) await yieldToEventLoop();
    }
    const settled = await Promise.all(results);
    this.#sender.send(exchange, this.#responses.fromBatch(settled, responseType(exchange)));
  }

  #send(exchange: Exchange, result: Result): void {
    this.#sender.send(exchange, this.#responses.fromResult(result, responseType(exchange)));
  }

  /** Responds to a client's mistake, passes an unexpected error to `next`, and ignores errors after a disconnect. */
  #fail(exchange: Exchange, error: unknown): void {
    const { req, res } = exchange;
    if (error === CLIENT_ABORTED || res.headersSent || isAbort(error, res)) return;
    if (!(error instanceof HttpError)) {
      this.#failUnexpectedly(exchange, error);
      return;
    }
    debug.graphql('%s %s: %d %s', req.method, req.url, error.status, error.message);
    try {
      this.#sender.sendEarly(exchange, this.#responses.fromHttpError(error, exchange.accepted.type));
    } catch (failure) {
      // `formatError` and `pretty` of the application may throw.
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

const originOf = ({ req, operationName }: Exchange): ErrorOrigin => ({
  transport: 'http',
  operationName,
  request: req,
  socket: undefined,
});

/** The media type of the response. */
const responseType = ({ accepted }: Exchange): string => accepted.type ?? JSON_TYPE;

const isBatch = (params: RequestParams): params is readonly GraphQLParams[] => Array.isArray(params);

/** The response of a bare server when `formatError` or `pretty` throws while an unexpected error is reported. */
const MASKED_ERROR: Reply = {
  status: 500,
  headers: { 'content-type': 'application/json; charset=utf-8', 'x-content-type-options': 'nosniff' },
  body: JSON.stringify({ errors: [{ message: MASKED, extensions: { code: MASKED_CODE } }] }),
};

/** Whether an execution stopped because its client disconnected. */
function isAbort(error: unknown, res: ServerResponse): boolean {
  // Compares the name, since the DOMException of a signal may come from another realm.
  return res.destroyed && /^Abort/.test(String((error as { name?: unknown } | null | undefined)?.name));
}
