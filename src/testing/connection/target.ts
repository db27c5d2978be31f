import { createServer, type IncomingMessage, Server, type ServerResponse, STATUS_CODES } from 'node:http';
import { Server as HttpsServer } from 'node:https';
import type { Duplex } from 'node:stream';
import type { WebsocketHandler } from '../../../types/subscriptions.ts';
import { type OptionScope, wrongArgument } from '../../options/resolve-options.ts';
import { isFunction, isObject } from '../../options/rules.ts';
import { MemorySocket } from './memory-socket.ts';

/** A server that gets connections within the process. */
export interface Target {
  readonly server: Server | HttpsServer;
  /** Whether the target is an app, whose sockets belong to a server that `subscribe` does not get. */
  readonly isApp: boolean;
  /** Serves the WebSockets of a handler that has no server. */
  readonly websocketHandler: WebsocketHandler | undefined;
}

type Handler = ((req: IncomingMessage, res: ServerResponse, next?: (error?: unknown) => void) => unknown) & {
  readonly websocketHandler?: WebsocketHandler;
};

/** The target of each handler, so that requests of one test share what is created per server. */
const targets = new WeakMap<object, Target>();

/**
 * Returns the server of a target. A handler gets one that never listens.
 *
 * @throws TypeError (code `ERR_OPTION`) for any other value.
 */
export function targetOf(scope: OptionScope, value: unknown): Target {
  if (value instanceof Server || value instanceof HttpsServer) {
    return { server: value, isApp: false, websocketHandler: undefined };
  }
  if (!isHandler(value)) {
    const accepted =
      'a handler of graphqlHTTP or staticFiles, a middleware, an Express app, or a server of node:http';
    throw wrongArgument(scope, 'target', value, accepted);
  }
  const known = targets.get(value);
  if (known !== undefined) return known;
  const isApp = 'listen' in value;
  const server = createServer(isApp ? (req, res) => void run(value, req, res) : withNext(value));
  const target = { server, isApp, websocketHandler: value.websocketHandler };
  targets.set(value, target);
  return target;
}

const isHandler = (value: unknown): value is Handler => isFunction(value);

/** Connects a client to a server, as the event of a server that listens. */
export function connect({ server }: Target, socket: Duplex): void {
  server.emit(server instanceof HttpsServer ? 'secureConnection' : 'connection', socket);
}

/** Calls a middleware with a `next` that ends the response. */
function withNext(handler: Handler): (req: IncomingMessage, res: ServerResponse) => void {
  return (req, res) => {
    const next = (error?: unknown): void => {
      const hasError = isError(error);
      // Express and Connect ignore it too: a middleware may continue after its response.
      if (!hasError && res.headersSent) return;
      const status = hasError ? statusOf(error) : 404;
      if (status === undefined || res.headersSent) fail(req, error);
      else res.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(STATUS_CODES[status]);
    };
    run(handler, req, res, next);
  };
}

/** Calls the handler. Its exception, or the rejection of its promise, becomes that of `inject`. */
function run(
  handler: Handler,
  req: IncomingMessage,
  res: ServerResponse,
  next?: (error?: unknown) => void,
): void {
  try {
    const returned = next === undefined ? handler(req, res) : handler(req, res, next);
    Promise.resolve(returned).catch((error: unknown) => fail(req, error));
  } catch (error) {
    fail(req, error);
  }
}

/** Whether a value that is passed to `next` is an error, as for Express: callbacks pass null if there is none. */
const isError = (value: unknown): boolean => Boolean(value) && value !== 'route' && value !== 'router';

/** The status of an error for the client, as `http-errors` sets it; undefined for an unexpected error. */
function statusOf(error: unknown): number | undefined {
  if (!isObject(error)) return undefined;
  const status = error['status'] ?? error['statusCode'];
  return typeof status === 'number' && status in STATUS_CODES && status >= 400 ? status : undefined;
}

function fail(req: IncomingMessage, error: unknown): void {
  const { socket } = req;
  // Reading the body of a client that has disconnected. `inject` rejects with the reason for which it did.
  if (error !== undefined && error === req.errored) return;
  // After the end of the exchange no promise can reject with the error.
  if (!(socket instanceof MemorySocket) || socket.destroyed) throw error;
  socket.handlerError = { error };
  socket.destroy();
}
