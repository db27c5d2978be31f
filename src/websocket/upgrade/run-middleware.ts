import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Middleware } from '../../../types/connect.ts';
import { toError } from '../../http/reply/http-error.ts';
import { debug } from '../../logging/debug.ts';
import { isThenable } from '../../options/rules.ts';
import { applyAppPrototypes } from './app-prototypes.ts';
import { createUpgradeResponse, destroyWhenWritten } from './reject-upgrade.ts';

/**
 * The result of running middleware: all called `next`; one has responded, or the socket has closed; or one
 * has failed.
 */
export type MiddlewareResult = 'passed' | 'responded' | { readonly status: number };

/** The upgrade request that the middleware runs on. */
interface UpgradeExchange {
  readonly server: Server;
  readonly req: IncomingMessage;
  readonly socket: Duplex;
  /** Called with an error that causes a 5xx response. */
  readonly onError: (error: unknown) => void;
}

/**
 * Runs middleware on an upgrade request. A response of a middleware (401, a redirect) reaches the client as
 * HTTP. Calls `done` once. Returns a function that stops waiting and reports a status.
 */
export function runMiddleware(
  list: readonly Middleware[],
  { server, req, socket, onError }: UpgradeExchange,
  done: (result: MiddlewareResult) => void,
): (status: number) => void {
  const res = createUpgradeResponse(req, socket);
  if (res === undefined) {
    done('responded');
    return () => undefined;
  }
  applyAppPrototypes(server, req, res);
  const run = new MiddlewareRun(list, { req, res, socket, onError }, done);
  run.next();
  return (status) => run.finish({ status });
}

class MiddlewareRun {
  readonly #list: readonly Middleware[];
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #socket: Duplex;
  readonly #onError: (error: unknown) => void;
  readonly #done: (result: MiddlewareResult) => void;
  readonly #onClose = (): void => this.finish('responded');
  #index = 0;
  #isFinished = false;

  constructor(
    list: readonly Middleware[],
    exchange: Omit<UpgradeExchange, 'server'> & { readonly res: ServerResponse },
    done: (result: MiddlewareResult) => void,
  ) {
    const { req, res, socket, onError } = exchange;
    this.#onError = onError;
    this.#list = list;
    this.#req = req;
    this.#res = res;
    this.#socket = socket;
    this.#done = done;
    socket.once('close', this.#onClose);
    res.once('finish', () => {
      destroyWhenWritten(socket);
      socket.end();
      this.finish('responded');
    });
  }

  next(error?: unknown): void {
    if (error !== undefined && error !== null && error !== 'route' && error !== 'router') {
      const status = statusOf(error);
      if (status >= 500) this.#onError(error);
      else debug.subscriptions('middleware refused the upgrade: %O', error);
      this.finish({ status });
      return;
    }
    const middleware = error === undefined || error === null ? this.#list[this.#index++] : undefined;
    if (this.#isFinished) return;
    if (middleware === undefined) this.finish('passed');
    else this.#call(middleware);
  }

  finish(result: MiddlewareResult): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    const res = this.#res;
    const socket = this.#socket;
    socket.off('close', this.#onClose);
    if (res.headersSent || res.writableEnded) {
      // An incomplete response can no longer be completed.
      if (!res.writableEnded) socket.destroy();
      this.#done('responded');
      return;
    }
    if (res.socket !== null) res.detachSocket(res.socket);
    this.#done(result);
  }

  #call(middleware: Middleware): void {
    const next = once((error) => this.next(error));
    try {
      const result: unknown = middleware(this.#req, this.#res, next);
      // Middleware of Express 5 may be async, with promises of another library or JavaScript context too.
      if (isThenable(result)) Promise.resolve(result).catch((error) => next(toError(error)));
    } catch (error) {
      next(toError(error));
    }
  }
}

function once(next: (error?: unknown) => void): (error?: unknown) => void {
  let called = false;
  return (error) => {
    if (called) return;
    called = true;
    next(error);
  };
}

function statusOf(error: unknown): number {
  const { status, statusCode } = Object(error) as { status?: unknown; statusCode?: unknown };
  const found = [status, statusCode].find(
    (value) => Number.isInteger(value) && (value as number) >= 400 && (value as number) < 600,
  );
  return (found as number | undefined) ?? 500;
}
