import type { IncomingMessage, ServerResponse } from 'node:http';

/** Passes the request on; with an error, to the error handlers. */
export type NextFunction = (error?: unknown) => void;

/** A middleware of any Connect-style framework: Express 4 and 5, Connect, or `node:http` with its own `next`. */
export type Middleware<Req extends IncomingMessage = IncomingMessage> = (
  req: Req,
  res: ServerResponse,
  next: NextFunction,
) => void;

/** Members that frameworks and body parsers may add to a request. */
export interface ConnectRequest extends IncomingMessage {
  /** The request target before mounts removed their prefixes. */
  originalUrl?: string;
  /** The prefix that mounts have removed. */
  baseUrl?: string;
  /** The body that an earlier body parser has read. */
  body?: unknown;
  /** Per-request state for the application. */
  state?: Record<string, unknown>;
  /** The route, if the middleware is mounted on an exact one. */
  route?: unknown;
}

/**
 * A function of the user that may declare narrower parameters, such as Express's `Request` for
 * `IncomingMessage`. TypeScript allows this for methods.
 */
export type Hook<Parameters extends readonly unknown[], Result> = {
  of(...parameters: Parameters): Result;
}['of'];

/** A value or a promise of it. */
export type MaybePromise<T> = T | Promise<T>;
