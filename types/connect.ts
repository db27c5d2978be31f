import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Passes the request on; with an error, to the error handlers. */
export type NextFunction = (error?: unknown) => void;

/**
 * A middleware of any Connect-style framework: Express 4 and 5, Connect, or `node:http` with its own `next`.
 */
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

/** The members that an HTTP request and the WebSocket of a subscription share. */
export interface ContextSource {
  /** The headers of the request, or of the upgrade request. */
  readonly headers: IncomingHttpHeaders;
  /** The request target; over HTTP without the prefix of the mount. */
  readonly url: string;
  readonly socket: Socket;
  /** Per-request state for the application; over a socket that of the upgrade request. */
  readonly state: Record<string, unknown>;
}

/**
 * The members of a WebSocket that espalier uses. WebSockets of `ws` (7 and 8) and of express-ws have them.
 */
export interface WebSocketLike {
  /** The negotiated subprotocol, `''` for none. */
  readonly protocol: string;
  /** The negotiated extensions, `''` for none. */
  readonly extensions: string;
  readonly readyState: number;
  readonly bufferedAmount: number;
  /**
   * The upgrade request with the members that middleware added. It is set until the connection is accepted.
   * With a `context` function that is called for each operation, it is set until the connection is closed.
   */
  request?: IncomingMessage | undefined;
  send(data: string | Uint8Array, options: { binary: boolean }, sent?: () => void): void;
  ping(): void;
  close(code?: number, reason?: string): void;
  terminate(): void;
  on(event: string, listener: (...args: never[]) => void): unknown;
}

/**
 * A function of the user that may declare narrower parameters, such as Express's `Request` for
 * `IncomingMessage`. TypeScript allows this for methods.
 */
export type Hook<Parameters extends readonly unknown[], Result> = {
  of(...parameters: Parameters): Result;
}['of'];

/**
 * A duration: milliseconds, or a string such as `'250ms'`, `'5s'`, `'10m'`, `'1h'` or `'7d'`. A string needs a unit.
 */
export type Duration = number | string;

/** A size: bytes, or a string such as `'64kb'`, `'5mb'` or `'1gb'`. A kilobyte has 1024 bytes; a string needs a unit. */
export type ByteSize = number | string;

/** A value or a promise of it. */
export type MaybePromise<T> = T | Promise<T>;

/**
 * How an operation arrived. `'mcp'`: a tool call of `espalier/mcp`, with the request of the agent. `'direct'`: a call of
 * `execute` of the handler.
 */
export type OperationTransport = 'http' | 'websocket' | 'mcp' | 'direct';

/** The place of an unexpected error. */
export interface ErrorDetails {
  readonly transport: OperationTransport;
  /** The name of the operation; undefined for an anonymous one, and before a document is parsed. */
  readonly operationName: string | undefined;
  /** The response path of the field; undefined outside of the execution of fields. */
  readonly path: readonly (string | number)[] | undefined;
  /** The request; over WebSocket the upgrade request, while it is retained. */
  readonly request: IncomingMessage | undefined;
  /** The WebSocket; undefined over HTTP. */
  readonly socket: WebSocketLike | undefined;
}

/** Reports an unexpected error to the operator. */
export type ErrorReporter = (error: unknown, details: ErrorDetails) => unknown;
