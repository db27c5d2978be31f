import type { ServerResponse } from 'node:http';
import type { GraphQLCore } from '../../core/core.ts';
import { isFormatFailure, MASKED, MASKED_CODE } from '../../core/errors.ts';
import { debug, readError } from '../../diagnostics/logging.ts';
import type { ErrorOrigin } from '../../execution/types.ts';
import { CLIENT_ABORTED, drainRequest } from '../../http/body.ts';
import { HttpError, isAborted, type Reply, toError, writeReply } from '../../http/reply.ts';
import type { Exchange } from '../exchange.ts';
import type { ResponseFactory } from './response.ts';
import type { Sender } from './sender.ts';

/** Responds to the requests of one handler that failed. */
export class Failures {
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

/** The request that an error belongs to. */
export const originOf = ({ req, operationName }: Exchange): ErrorOrigin => ({
  transport: 'http',
  operationName,
  request: req,
  socket: undefined,
});

/**
 * The response of a bare server when `formatError` or `pretty` throws while an unexpected error is reported.
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
