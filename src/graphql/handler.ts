import type { ServerResponse } from 'node:http';
import type { ConnectRequest, MaybePromise, NextFunction } from '../../types/connect.ts';
import type { GraphQLCore } from '../core/core.ts';
import { events } from '../core/diagnostics.ts';
import { assertVariableLimits } from '../core/limits/variables.ts';
import { isLongDocument } from '../core/prepare.ts';
import { yieldToEventLoop } from '../core/yield-to-event-loop.ts';
import {
  type ExecutionOutcome,
  type GraphQLParams,
  isThenable,
  type RequestError,
} from '../execution/types.ts';
import { createNegotiator, GRAPHQL_TYPE, JSON_TYPE } from '../http/negotiation.ts';
import { isQueued, whenFirst } from '../http/reply.ts';
import { createCsrf } from './csrf.ts';
import { type Exchange, type Result, STREAMED } from './exchange.ts';
import type { HttpSettings } from './options.ts';
import { isBatch, type RequestParams } from './request/params.ts';
import { createPathIdReader } from './request/path-id.ts';
import { createRequestCheck, createRequestReader, type ReadRequest } from './request/read-request.ts';
import { Failures, originOf } from './response/failures.ts';
import { createResponseFactory, type ResponseFactory } from './response/response.ts';
import { createSender, type Sender } from './response/sender.ts';
import { OperationRunner } from './run-operation.ts';
import { Streaming } from './streaming/streaming.ts';
import { startTimings } from './timings.ts';

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
      timings: this.#settings.serverTiming ? startTimings() : undefined,
      operationName: undefined,
      batchCost: undefined,
      isAbandoned: false,
      reservation: undefined,
      operation: undefined,
      caching: undefined,
      userKey: undefined,
      invalidatedTags: undefined,
    };
    if (events.request.hasSubscribers) events.request.publish({ req, res });
    try {
      this.#check(exchange);
      const streamed = this.#streaming.single?.handle(exchange);
      if (streamed !== undefined) {
        this.#settle(exchange, streamed);
        return;
      }
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
    const { single } = this.#streaming;
    if (exchange.reservation === undefined || single === undefined) return this.#runner.run(exchange, params);
    const run = () => this.#runner.run(exchange, params);
    return single.start(exchange, exchange.reservation, { params, run });
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
    const { accepted, reservation } = exchange;
    if (accepted.type === undefined) this.#sendInStream(exchange, result);
    else {
      // A client of a reserved stream detects errors by the status, which depends on the type.
      const type = reservation === undefined ? accepted.type : GRAPHQL_TYPE;
      this.#sender.send(exchange, this.#responses.fromResult(result, type));
    }
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
