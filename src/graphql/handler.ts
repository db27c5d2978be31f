import type { ServerResponse } from 'node:http';
import { nextTick } from 'node:process';
import type { ConnectRequest, MaybePromise, NextFunction } from '../../types/connect.ts';
import type { GraphQLCore } from '../core/core.ts';
import { events } from '../core/diagnostics.ts';
import { MASKED } from '../core/errors.ts';
import { requireFew } from '../core/limits/depth.ts';
import { isLongDocument } from '../core/prepare.ts';
import { yieldToEventLoop } from '../core/yield-to-event-loop.ts';
import { isThenable } from '../execution/promises.ts';
import type { GraphQLParams } from '../execution/types.ts';
import { drainRequest } from '../http/body/drain.ts';
import { CLIENT_ABORTED, isComing, readEnd } from '../http/body/read-body.ts';
import { createNegotiator } from '../http/negotiation/accept.ts';
import { HttpError } from '../http/reply/http-error.ts';
import { toError } from '../http/reply/to-error.ts';
import { type Reply, writeReply } from '../http/reply/write-reply.ts';
import { debug } from '../logging/debug.ts';
import { joinResults, paramsOfBatch } from './batch.ts';
import { createGuard } from './csrf.ts';
import { type Exchange, typeOf } from './exchange.ts';
import type { HttpSettings } from './options.ts';
import { createAdmit } from './request/check-request.ts';
import { GRAPHQL_TYPE, JSON_TYPE } from './request/media-types.ts';
import { paramsOfBody, paramsOfUrl } from './request/params.ts';
import { createReceive } from './request/read-request.ts';
import { createAnswers } from './response/response.ts';
import { createSend } from './response/send.ts';
import { startPhases } from './response/server-timing.ts';
import { createOperate, type Result } from './run-operation.ts';

/** A request handler that also works without a `next`, under a bare server. */
export type Handler = (req: ConnectRequest, res: ServerResponse, next?: NextFunction) => void;

/** Answers GraphQL requests over HTTP: admit, receive, operate, send. Read this first. */
export function createHandler(core: GraphQLCore, settings: HttpSettings): Handler {
  const negotiate = createNegotiator([JSON_TYPE, GRAPHQL_TYPE]);
  const guard = createGuard(settings);
  const admit = createAdmit(settings, guard);
  const receive = createReceive(settings, guard);
  const operate = createOperate(core, guard, settings.limits);
  const answers = createAnswers(core, settings.statusCodes);
  const send = createSend(settings);

  function process(exchange: Exchange): MaybePromise<void> {
    admit(exchange);
    const { req, res } = exchange;
    if (req.method !== 'POST') return performOne(exchange, paramsOfUrl(req.url ?? '/'));
    const body = receive(req, res);
    if (body instanceof Promise) return body.then((received) => perform(exchange, received));
    if (req.complete) return perform(exchange, body);
    // Node tells of the end in a moment; an answer that leaves before it costs Node a good deal more.
    setImmediate(attempt, exchange, () => {
      readEnd(req);
      return perform(exchange, body);
    });
    return undefined;
  }

  function perform(exchange: Exchange, body: unknown): MaybePromise<void> {
    return Array.isArray(body)
      ? performBatch(exchange, paramsOfBatch(body, settings))
      : performOne(exchange, paramsOfBody(body));
  }

  function performOne(exchange: Exchange, params: GraphQLParams): MaybePromise<void> {
    if (params.variables !== undefined) requireFew([params.variables], settings.limits.variables);
    const result = operate(exchange, params);
    return isThenable(result) ? result.then((settled) => reply(exchange, settled)) : reply(exchange, result);
  }

  async function performBatch(exchange: Exchange, list: readonly GraphQLParams[]): Promise<void> {
    requireFew(
      list.map(({ variables }) => variables),
      settings.limits.variables,
    );
    exchange.spent = { fields: 0, rootFields: 0 };
    const results: MaybePromise<Result>[] = [];
    for (const params of list) {
      const result = operate(exchange, params);
      // Looked at below; until then a failure is nobody's.
      if (isThenable(result)) result.catch(() => undefined);
      results.push(result);
      if (isLongDocument(params.query)) await yieldToEventLoop();
    }
    send(exchange, joinResults(await Promise.all(results), answers, typeOf(exchange)));
  }

  function reply(exchange: Exchange, result: Result): void {
    send(exchange, answers.ofResult(result, typeOf(exchange)));
  }

  /** A client's mistake is answered, a bug goes to the error handlers, and a client that has left hears nothing. */
  function fail(exchange: Exchange, error: unknown): void {
    const { req, res } = exchange;
    if (error === CLIENT_ABORTED || res.headersSent || isAbort(error, res)) return;
    if (error instanceof HttpError) {
      debug.graphql('%s %s: %d %s', req.method, req.url, error.status, error.message);
      try {
        send(exchange, answers.ofError(error, exchange.accepted.type), true);
      } catch (bug) {
        // Functions of the application are called here too, and nobody is behind us to catch what they throw.
        failOnBug(exchange, bug);
      }
    } else failOnBug(exchange, error);
  }

  function failOnBug(exchange: Exchange, error: unknown): void {
    const { req, res, next } = exchange;
    if (next !== undefined) {
      next(toError(error));
      return;
    }
    try {
      send(exchange, answers.ofBug(error), true);
    } catch {
      drainRequest(req, res);
      writeReply(res, MASKED_BUG, req.method === 'HEAD');
    }
  }

  function attempt(exchange: Exchange, step: (exchange: Exchange) => MaybePromise<void>): void {
    try {
      const done = step(exchange);
      if (isThenable(done)) done.catch((error: unknown) => fail(exchange, error));
    } catch (error) {
      fail(exchange, error);
    }
  }

  return (req, res, next) => {
    req.state ??= {};
    const exchange: Exchange = {
      req,
      res,
      next,
      accepted: negotiate(req.headers.accept),
      started: events.response.hasSubscribers ? performance.now() : 0,
      phases: settings.serverTiming ? startPhases() : undefined,
      spent: undefined,
    };
    if (events.request.hasSubscribers) events.request.publish({ req, res });
    if (req.method === 'POST' && isComing(req)) nextTick(attempt, exchange, process);
    else attempt(exchange, process);
  };
}

/** What a bare server says when the application's own functions fail at telling a fault. */
const MASKED_BUG: Reply = {
  status: 500,
  headers: { 'content-type': 'application/json; charset=utf-8', 'x-content-type-options': 'nosniff' },
  body: JSON.stringify({ errors: [{ message: MASKED }] }),
};

/** An execution that was told to stop because its client had gone. */
function isAbort(error: unknown, res: ServerResponse): boolean {
  // By name: a signal's reason is a DOMException of whichever realm made the controller.
  return res.destroyed && /^Abort/.test(String((error as { name?: unknown } | null | undefined)?.name));
}
