import type { IncomingMessage, ServerResponse } from 'node:http';

/** Passes the request on; with an error, to the error handlers. */
export type NextFunction = (error?: unknown) => void;

/** A middleware of any Connect-style framework: Express 4 and 5, Connect, or bare `node:http` with a `next` of its own. */
export type Middleware<Req extends IncomingMessage = IncomingMessage> = (
  req: Req,
  res: ServerResponse,
  next: NextFunction,
) => void;

/** What frameworks and body parsers add to a request, where they did. */
export interface ConnectRequest extends IncomingMessage {
  /** The target before any mount stripped its prefix. */
  originalUrl?: string;
  /** The prefix that mounts have stripped. */
  baseUrl?: string;
  /** What a body parser in front of us left. */
  body?: unknown;
  /** Per-request state for the application. */
  state?: Record<string, unknown>;
  /** The route, when the middleware hangs on an exact one. */
  route?: unknown;
}

/**
 * A function of the user's that may declare its parameters more narrowly, such as Express's `Request` for
 * `IncomingMessage`: TypeScript compares methods so.
 */
export type Hook<Parameters extends readonly unknown[], Result> = {
  of(...parameters: Parameters): Result;
}['of'];

/** A value now or later. */
export type MaybePromise<T> = T | Promise<T>;
