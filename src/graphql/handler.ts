import type { ServerResponse } from 'node:http';
import type { ConnectRequest, MaybePromise, NextFunction } from '../../types/connect.ts';
import type { GraphQLCore } from '../core/core.ts';
import { persistedQueryNotSupported } from '../core/document-id.ts';
import { isLongDocument } from '../core/documents.ts';
import { failedOperation, MASKED, MASKED_CODE } from '../core/errors.ts';
import { assertVariableLimits } from '../core/limits.ts';
import { type Result, run } from '../core/run.ts';
import { yieldToEventLoop } from '../core/turns.ts';
import { events } from '../diagnostics/events.ts';
import { debug, noteLostResult, readError } from '../diagnostics/logging.ts';
import { refuse } from '../execution/graphql-error.ts';
import {
  type ExecutionOutcome,
  type GraphQLParams,
  isThenable,
  type RequestError,
} from '../execution/types.ts';
import { createGraphiQL } from '../graphiql/handler.ts';
import { CLIENT_ABORTED, drainRequest } from '../http/body.ts';
import type { Exchange } from '../http/exchange.ts';
import { createNegotiator, GRAPHQL_TYPE, JSON_TYPE } from '../http/negotiation.ts';
import {
  destroyIncomplete,
  HttpError,
  isAborted,
  isQueued,
  NO_STORE,
  type Reply,
  startedBefore,
  toError,
  whenFirst,
  writeReply,
} from '../http/reply.ts';
import { isMounted, pathOf, withoutSlash } from '../http/routing.ts';
import { caught, settle } from '../options/values.ts';
import { type CallServices, HttpCall } from './call.ts';
import { createCsrf } from './csrf.ts';
import type { HttpSettings } from './options.ts';
import {
  createPathIdReader,
  createRequestCheck,
  createRequestReader,
  isBatch,
  originOf,
  pathIdOf,
  type ReadRequest,
  type RequestParams,
} from './request.ts';
import {
  createResponseFactory,
  createSender,
  type ResponseFactory,
  type Sender,
  withIndex,
} from './response.ts';
import { Streaming } from './streaming.ts';

/** A request handler; `next` is undefined in a bare server. */
type Handler = (req: ConnectRequest, res: ServerResponse, next?: NextFunction) => void;

/**
 * Creates the handler of one path: GraphiQL for browsers, `next` for paths below a mount, and GraphQL over HTTP for all
 * other requests.
 */
export function createHandler(core: GraphQLCore, settings: HttpSettings): Handler {
  const graphql = new GraphQLOverHttp(core, settings);
  const graphiql = settings.methods.includes('GET') ? createGraphiQL(settings.graphiql) : undefined;
  const { documents } = core;
  const handler: Handler = (req, res, next) => {
    const routed = isRouted(req, handler);
    const below = next !== undefined && !routed && isBelowMount(req);
    if (res.headersSent && !res.writableEnded && !below) {
      graphql.failStarted(req, res, next);
      return;
    }
    if (graphiql !== undefined && (req.method === 'GET' || req.method === 'HEAD')) {
      const handled = graphiql.handle(req, res, { below, routed });
      if (handled !== undefined) {
        handled.then(
          (done) => done || graphql.handle(req, res, next),
          (error: unknown) => graphql.fail(req, res, next, error),
        );
        return;
      }
    }
    if (below && (documents === undefined || pathIdOf(req, documents) === undefined)) next();
    else graphql.handle(req, res, next);
  };
  return handler;
}

/**
 * GraphQL over HTTP, step by step: open, check, read, run each operation, and send. It is synchronous as long as the
 * application is.
 */
class GraphQLOverHttp {
  readonly #core: GraphQLCore;
  readonly #settings: HttpSettings;
  readonly #setsState: boolean;
  readonly #negotiate = createNegotiator([JSON_TYPE, GRAPHQL_TYPE]);
  readonly #check: (exchange: Exchange) => void;
  readonly #read: ReadRequest;
  readonly #streaming: Streaming;
  readonly #calls: CallServices;
  readonly #responses: ResponseFactory;
  /** Creates responses whose status is 200 unless an error sets another one. */
  readonly #streamResponses: ResponseFactory;
  readonly #sender: Sender;

  constructor(core: GraphQLCore, settings: HttpSettings) {
    this.#core = core;
    this.#settings = settings;
    this.#setsState = settings.hasFunctions || !core.hasOneSchema;
    const csrf = createCsrf(settings);
    this.#streaming = new Streaming(core, settings);
    this.#check = createRequestCheck(core, settings, csrf, this.#streaming);
    const read = createRequestReader(settings, csrf, (error, exchange) =>
      core.reportError(error, originOf(exchange)),
    );
    this.#read = core.documents === undefined ? read : createPathIdReader(read, core.documents);
    this.#calls = {
      core,
      limits: settings.limits,
      csrf,
      streaming: this.#streaming,
    };
    this.#responses = createResponseFactory(core, settings.statusCodes);
    this.#streamResponses = createResponseFactory(core, 'legacy');
    this.#sender = createSender(core, settings);
  }

  handle(req: ConnectRequest, res: ServerResponse, next: NextFunction | undefined): void {
    if (isQueued(res)) whenFirst(res, () => this.#handleFirst(req, res, next));
    else this.#handleFirst(req, res, next);
  }

  /** Responds to a request for which another function of the application has failed, such as the option `graphiql`. */
  fail(req: ConnectRequest, res: ServerResponse, next: NextFunction | undefined, error: unknown): void {
    this.#fail(this.#open(req, res, next), error);
  }

  /** Ends a response that other code has begun. No operation runs, because its result could not be sent. */
  failStarted(req: ConnectRequest, res: ServerResponse, next: NextFunction | undefined): void {
    const error = startedBefore('graphqlHTTP cannot send a result');
    if (next === undefined) {
      destroyIncomplete(res, error);
      return;
    }
    this.#core.reportForwardedError(error, originOf({ req, operationName: undefined }));
    next(error);
  }

  /** Handles the first request of a connection that has no response. */
  #handleFirst(req: ConnectRequest, res: ServerResponse, next: NextFunction | undefined): void {
    const exchange = this.#open(req, res, next);
    try {
      this.#check(exchange);
      const sent = settle(this.#read(exchange), (params) => this.#respond(exchange, params));
      if (isThenable(sent)) sent.then(undefined, (error: unknown) => this.#fail(exchange, error));
    } catch (error) {
      this.#fail(exchange, error);
    }
  }

  #open(req: ConnectRequest, res: ServerResponse, next: NextFunction | undefined): Exchange {
    // Only functions of the application read it. Express gives each request its own hidden class, which V8 has to
    // copy for a new member.
    if (this.#setsState) req.state ??= {};
    if (events.request.hasSubscribers) events.request.publish({ req, res });
    return {
      req,
      res,
      next,
      accepted: this.#negotiate(req.headers.accept),
      started: events.response.hasSubscribers ? performance.now() : 0,
      operationName: undefined,
      batchSize: undefined,
      isAbandoned: false,
      isExtended: false,
      caller: undefined,
      caching: undefined,
      userKey: undefined,
      isRestricted: false,
    };
  }

  /** Runs the operations of a request and sends the response. */
  #respond(exchange: Exchange, params: RequestParams): MaybePromise<void> {
    if (isBatch(params)) return this.#respondToBatch(exchange, params);
    return settle(this.#run(exchange, params), (result) => this.#send(exchange, result));
  }

  async #respondToBatch(exchange: Exchange, batch: readonly GraphQLParams[]): Promise<void> {
    try {
      if (this.#streaming.acceptsLines(exchange)) return await this.#sendLines(exchange, batch);
      const results = await this.#runBatch(exchange, batch, (_, result) => result);
      noteIfLost(exchange);
      const type = exchange.accepted.type ?? JSON_TYPE;
      await this.#sender.send(
        exchange,
        this.#responses.fromBatch(exchange, { params: batch, results }, type),
      );
    } catch (error) {
      exchange.isAbandoned = true;
      throw error;
    }
  }

  /** Sends each result of a batch as soon as it is there, with its place in the batch. */
  async #sendLines(exchange: Exchange, batch: readonly GraphQLParams[]): Promise<void> {
    const lines = this.#streaming.createLines(exchange);
    await this.#runBatch(exchange, batch, (params, result) => {
      const { body, release } = this.#streamResponses.fromResult(exchange, result, JSON_TYPE);
      lines.send(withIndex(body.toString(), params));
      release?.();
    });
    lines.end();
  }

  async #runBatch<T>(
    exchange: Exchange,
    batch: readonly GraphQLParams[],
    onResult: (params: GraphQLParams, result: ExecutionOutcome | RequestError) => T,
  ): Promise<T[]> {
    const variables = batch.map((params) => params.variables);
    assertVariableLimits(variables, this.#settings.maxVariables);
    exchange.batchSize = { fields: 0, rootFields: 0 };
    const results: MaybePromise<T>[] = [];
    for (const params of batch) {
      const result = settle(this.#runOfBatch(exchange, params), (settled) => onResult(params, settled));
      // `Promise.all` handles the rejection below, but possibly only after later operations have started.
      if (isThenable(result)) result.catch(() => undefined);
      results.push(result);
      if (isLongDocument(params.query)) await yieldToEventLoop();
    }
    return Promise.all(results);
  }

  /** An error that would be the response to the whole request is the result of its operation after the first line. */
  #runOfBatch(exchange: Exchange, params: GraphQLParams): MaybePromise<ExecutionOutcome | RequestError> {
    const toRefusal = (error: unknown): RequestError => {
      if (!exchange.res.headersSent || error === CLIENT_ABORTED || isAbort(error, exchange.res)) throw error;
      if (!HttpError.is(error)) return failedOperation(error);
      return refuse(error.message, error.code ?? 'BAD_REQUEST', error.status);
    };
    const run = (): MaybePromise<ExecutionOutcome | RequestError> =>
      settle(this.#run(exchange, params), (settled) => {
        if (settled.kind === 'stream') throw new TypeError('A subscription cannot be part of a batch');
        return settled;
      });
    return caught(run, toRefusal);
  }

  /** Runs one operation. Its failure is its result, unless it is the response to the whole request. */
  #run(exchange: Exchange, params: GraphQLParams): MaybePromise<Result> {
    // With the option `documents`, such a request has the id of a document.
    if (params.query === '' && this.#core.documents === undefined) return persistedQueryNotSupported();
    try {
      const result = run(new HttpCall(this.#calls, exchange, params));
      return isThenable(result) ? result.catch((error: unknown) => resultOf(exchange, error)) : result;
    } catch (error) {
      return resultOf(exchange, error);
    }
  }

  #send(exchange: Exchange, result: Result): MaybePromise<void> {
    if (result.kind === 'stream') return;
    noteIfLost(exchange);
    if (result.kind !== 'error' && result.rest !== undefined) {
      this.#streaming.sendIncremental(exchange, result.body.toString(), result.rest);
      return;
    }
    const { type } = exchange.accepted;
    if (type === undefined) return this.#sendInStream(exchange, result);
    return this.#sender.send(exchange, this.#responses.fromResult(exchange, result, type));
  }

  /**
   * Sends a single result to a client that accepts only streams, or a plain response if an error of the client or of
   * a resolver sets its status.
   */
  #sendInStream(exchange: Exchange, result: ExecutionOutcome | RequestError): MaybePromise<void> {
    const response = this.#streamResponses.fromResult(exchange, result, JSON_TYPE);
    const isFailure = result.kind === 'error' && result.status === 500;
    if (response.status !== 200 && !isFailure) return this.#sender.send(exchange, response);
    this.#streaming.sendWhole(exchange, response.body.toString());
  }

  /**
   * Responds to a client's mistake, passes an error to `next` that asks for it, responds to any other with a masked
   * error, and ignores errors after a disconnect.
   */
  #fail(exchange: Exchange, error: unknown): void {
    const { req, res, next } = exchange;
    if (error === CLIENT_ABORTED || res.headersSent || isAbort(error, res)) return;
    try {
      if (HttpError.is(error)) {
        debug.graphql('%s %s: %d %s', req.method, req.url, error.status, error.message);
        this.#sender.sendEarly(exchange, this.#responses.fromHttpError(exchange, error));
      } else if (asksForNext(exchange, error)) {
        this.#core.reportForwardedError(error, originOf(exchange));
        next?.(toError(error));
      } else this.#sendFailure(exchange, this.#responses.fromUnexpectedError(exchange, error));
    } catch (failure) {
      // Such as a header of a resolver that cannot be written.
      this.#core.reportError(failure, originOf(exchange));
      drainRequest(req, res);
      if (exchange.accepted.type === undefined) this.#streaming.sendWhole(exchange, MASKED_BODY);
      if (!res.headersSent) writeReply(req, res, MASKED_ERROR);
    }
  }

  #sendFailure(exchange: Exchange, response: ReturnType<ResponseFactory['fromUnexpectedError']>): void {
    if (exchange.accepted.type === undefined) this.#streaming.sendWhole(exchange, response.body.toString());
    if (!exchange.res.headersSent) this.#sender.sendEarly(exchange, response);
  }
}

/**
 * The result of an operation that has failed. Errors of the request, and those that ask for the error handlers of the
 * application, are thrown again: they are the response to the whole request.
 */
function resultOf(exchange: Exchange, error: unknown): RequestError {
  if (error === CLIENT_ABORTED || HttpError.is(error) || isAbort(error, exchange.res)) throw error;
  if (asksForNext(exchange, error)) throw error;
  return failedOperation(error);
}

/** Logs a result that was lost: other code had already begun the response. */
function noteIfLost({ res }: Exchange): void {
  if (res.headersSent && (res.writableEnded || !isAborted(res))) noteLostResult();
}

const MASKED_BODY = JSON.stringify({ errors: [{ message: MASKED, extensions: { code: MASKED_CODE } }] });

/** The response if the response to an error has failed too. */
const MASKED_ERROR: Reply = {
  status: 500,
  headers: { ...NO_STORE, 'content-type': 'application/json; charset=utf-8' },
  body: MASKED_BODY,
};

/** Whether an error has a status, as those of the package `http-errors` for the error handlers of the application. */
function asksForNext({ next }: Exchange, error: unknown): boolean {
  if (next === undefined) return false;
  try {
    const { status, statusCode = status } = (error ?? {}) as Readonly<Record<string, unknown>>;
    return typeof statusCode === 'number' && statusCode >= 400 && statusCode < 600;
  } catch {
    return false; // a getter that throws
  }
}

/** Whether an execution stopped because its client disconnected. */
function isAbort(error: unknown, res: ServerResponse): boolean {
  // Compares the name, since the DOMException of a signal may come from another realm.
  return isAborted(res) && /^Abort/.test(readError(error).name ?? '');
}

/** Whether the path continues below a mount that has stripped its prefix. */
function isBelowMount(req: ConnectRequest): boolean {
  const { url = '/' } = req;
  return url.length > 1 && url[1] !== '?' && isMounted(req) && pathOf(url).length > 1;
}

/** The members of an Express route that are read here. */
interface Route {
  readonly path?: unknown;
  readonly stack?: readonly { readonly handle?: unknown }[];
}

/**
 * Whether `middleware` runs as a handler of a route (`router.post('/graphql', ...)`), which strips no prefix.
 * Testing `req.route` is not enough: Express leaves it set after the route has called `next`.
 */
function isRouted(req: ConnectRequest, middleware: unknown): boolean {
  const route = 'route' in req ? (req.route as Route | undefined) : undefined;
  if (route === undefined) return false;
  if (Array.isArray(route.stack) && route.stack.some(({ handle }) => handle === middleware)) return true;
  // The route may have a function that wraps the middleware.
  const path = withoutSlash(pathOf(req.url));
  return path !== '' && [route.path].flat().some((pattern) => isExactly(pattern, path));
}

/** Whether a pattern matches this path and no path below it. */
function isExactly(pattern: unknown, path: string): boolean {
  if (pattern instanceof RegExp) return pattern.test(path) && !pattern.test(`${path}/below`);
  if (typeof pattern !== 'string' || pattern.includes('*')) return false;
  const segments = withoutSlash(path).split('/');
  const wanted = withoutSlash(pattern).split('/');
  return segments.length === wanted.length && wanted.every((one, i) => isSegment(one, segments[i] as string));
}

/** Compares case-insensitively, as routes do by default; a segment with a parameter matches any segment. */
const isSegment = (pattern: string, segment: string): boolean =>
  /[:({]/.test(pattern) || pattern.toLowerCase() === segment.toLowerCase();
