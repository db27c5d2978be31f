import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:net';
import { parse } from 'node:querystring';
import type { Duplex } from 'node:stream';
import type { Middleware } from '../../types/connect.ts';
import { toError } from '../http/reply/to-error.ts';
import { debug } from '../logging/debug.ts';
import { finish, responseOn } from './refuse.ts';

/** Express's prototypes of requests and responses, from the app that listens on the server. */
interface AppPrototypes {
  request: object;
  response: object;
}

/** What came of the middlewares: undefined when all passed the request on, else the status that refuses it. */
export type Verdict = (status: number | undefined) => void;

/**
 * Runs middlewares on an upgrade request, with a response of its own: one that answers (401, a redirect) has its answer
 * sent as HTTP. Returns what gives up waiting, with a status.
 */
export function admit(
  server: Server,
  list: readonly Middleware[],
  { req, socket }: { req: IncomingMessage; socket: Duplex },
  verdict: Verdict,
): (status: number) => void {
  const response = responseOn(req, socket);
  if (response === undefined) {
    verdict(0);
    return () => undefined;
  }
  const res = response;
  dress(req, res, prototypesOf(server));
  let settled = false;

  function settle(status: number | undefined): void {
    if (settled) return;
    settled = true;
    socket.off('close', gone);
    if (res.headersSent || res.writableEnded) {
      // Answered by a middleware, or broken off while it was answering.
      if (!res.writableEnded) socket.destroy();
      verdict(0);
      return;
    }
    res.detachSocket(socket as never);
    verdict(status);
  }
  const gone = (): void => settle(0);
  socket.once('close', gone);
  res.once('finish', () => {
    finish(socket);
    socket.end();
    settle(0);
  });

  let index = 0;
  function next(error?: unknown): void {
    if (error !== undefined && error !== null && error !== 'route' && error !== 'router') {
      debug.subscriptions('middleware failed: %O', error);
      settle(statusOf(error));
      return;
    }
    const middleware = error === undefined || error === null ? list[index++] : undefined;
    if (settled) return;
    if (middleware === undefined) {
      settle(undefined);
      return;
    }
    try {
      const result: unknown = middleware(req, res, once(next));
      // Express 5's middlewares may be async.
      if (result instanceof Promise) result.catch((error) => next(toError(error)));
    } catch (error) {
      next(toError(error));
    }
  }
  next();
  return settle;
}

/** Gives request and response what Express's middlewares count on. */
function dress(req: IncomingMessage, res: ServerResponse, app: AppPrototypes | undefined): void {
  if (app !== undefined) {
    Object.setPrototypeOf(req, app.request);
    Object.setPrototypeOf(res, app.response);
  }
  Object.assign(req, { res, originalUrl: req.url, baseUrl: '' });
  // Express 5 has a getter; Express 4's router would have parsed it.
  if (!('query' in req)) Object.assign(req, { query: parse(queryOf(req)) });
  Object.assign(res, { locals: Object.create(null) });
}

/** The query of a request, as it was sent. */
function queryOf({ url = '' }: IncomingMessage): string {
  const mark = url.indexOf('?');
  return mark === -1 ? '' : url.slice(mark + 1);
}

function prototypesOf(server: Server): AppPrototypes | undefined {
  const listeners: unknown[] = server.listeners('request');
  return listeners.find(isApp);
}

function isApp(listener: unknown): listener is AppPrototypes {
  const { request, response } = listener as Partial<AppPrototypes>;
  return typeof request === 'object' && typeof response === 'object';
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
