import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:net';
import { parse } from 'node:querystring';
import type { Duplex } from 'node:stream';
import type { WebSocketServer } from 'ws';
import type { ConnectRequest, Middleware } from '../../types/connect.ts';
import type { SubscriptionProtocol } from '../../types/subscriptions.ts';
import { debug, isDevelopment, noteHidden } from '../diagnostics/logging.ts';
import { packages } from '../diagnostics/packages.ts';
import { type Headers, HttpError, toError } from '../http/reply.ts';
import { isOwnOrigin, publicHostOf, type Settings } from '../http/routing.ts';
import { assertSync } from '../options/rules.ts';
import { SUBSCRIPTION_OPTIONS } from '../options/scopes.ts';
import { caught, isThenable, settle } from '../options/values.ts';
import { agreedOffer } from './deflate.ts';
import {
  createUpgradeResponse,
  destroyWhenWritten,
  rejectUpgrade,
  type UpgradeListener,
} from './upgrade-router.ts';
import type { WebSocketEndpoint } from './websocket.ts';

export interface UpgradeSettings {
  readonly path: string;
  readonly middleware: readonly Middleware[];
  readonly perMessageDeflate: false | 'shared';
  readonly allowedOrigins: AllowedOrigins;
  readonly limits: { readonly connections: number; readonly messageBytes: number };
}

const CLOSING = 'subscriptions are being closed';
const ORIGIN_HINT =
  '. Add the origin there, or let a proxy keep the header Host (changeOrigin: false in Vite)';

/** The upgrades of one path. Decides in steps: capacity, host, origin, middleware; then sends the 101. */
export class UpgradeHandler {
  readonly #server: Server;
  readonly #target: WebSocketEndpoint;
  readonly #settings: UpgradeSettings;
  readonly #isDevelopment = isDevelopment();
  readonly #handshakes: WebSocketServer;
  /** The functions that stop waiting for the middleware of an upgrade. */
  readonly #waiting = new Set<() => void>();
  /** Upgrades that wait for middleware. */
  #pending = 0;
  #isClosed = false;

  constructor(server: Server, target: WebSocketEndpoint, settings: UpgradeSettings) {
    this.#server = server;
    this.#target = target;
    this.#settings = settings;
    const { subscriptionProtocols } = target.core;
    this.#handshakes = createWebSocketServer(settings, subscriptionProtocols);
  }

  readonly handle: UpgradeListener = (req, socket, head) => {
    const { allowedOrigins, limits } = this.#settings;
    const app = expressAppOf(this.#server);
    if (this.#isClosed) this.#reject(req, socket, 503, CLOSING);
    else if (this.#target.connectionCount + this.#pending >= limits.connections) {
      this.#reject(req, socket, 503, 'the limit "limits.connections" is reached');
    } else if (!this.#target.isHostAllowed(req)) {
      const host = JSON.stringify(req.headers.host);
      this.#reject(req, socket, 421, `the host ${host} is not in "allowedHosts"`);
    } else {
      const isAllowed = this.#checkOrigin(req, app);
      if (isAllowed === undefined) this.#reject(req, socket, 500, '"allowedOrigins" failed');
      else if (!isAllowed)
        this.#reject(req, socket, 403, originRefusal(req, allowedOrigins, app), ORIGIN_HINT);
      else {
        if (app !== undefined && this.#target.readsAddress) Object.setPrototypeOf(req, app.request);
        if (this.#settings.middleware.length === 0) this.#count(req, socket, head);
        else this.#countAfterMiddleware(req, socket, head);
      }
    }
  };

  /** Rejects all later upgrades. */
  close(): void {
    this.#isClosed = true;
    for (const stopWaiting of this.#waiting) stopWaiting();
  }

  /** Undefined if the option, which may be a function of the application, has failed. */
  #checkOrigin(req: IncomingMessage, app: Settings | undefined): boolean | undefined {
    try {
      return isOriginAllowed(req, this.#settings.allowedOrigins, app);
    } catch (error) {
      this.#target.reportError(error, req);
      return undefined;
    }
  }

  #countAfterMiddleware(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.#pending++;
    const onResult = (result: MiddlewareResult): void => {
      clearTimeout(deadline);
      this.#pending--;
      this.#waiting.delete(stopWaiting);
      if (result === 'responded') return;
      const reason = this.#isClosed ? CLOSING : 'a middleware failed or took too long';
      if (result !== 'passed') this.#reject(req, socket, result.status, reason, '', result.headers);
      else this.#count(req, socket, head);
    };
    let giveUp = (_status: number): void => undefined;
    const stopWaiting = (): void => giveUp(503);
    const deadline = setTimeout(stopWaiting, this.#target.settings.limits.initTimeout).unref();
    this.#waiting.add(stopWaiting);
    const onError = (error: unknown): void => this.#target.reportError(error, req);
    giveUp = runMiddleware(
      this.#settings.middleware,
      { server: this.#server, req, socket, onError },
      onResult,
    );
  }

  /** Counts the connection of its client, if clients have limits. */
  #count(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.#pending++;
    const request: ConnectRequest = req;
    request.state ??= {};
    const counted = caught<HttpError | undefined>(
      () => this.#target.core.clients?.connect(request, undefined),
      (error) => {
        this.#target.reportError(error, req);
        return new HttpError(500, '"clientLimits.key" failed');
      },
    );
    void settle(counted, (refusal) => {
      this.#pending--;
      if (refusal === undefined) this.#accept(req, socket, head);
      else this.#reject(req, socket, refusal.status, refusal.message, '', refusal.headers);
    });
  }

  #accept(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (this.#isClosed) {
      this.#reject(req, socket, 503, CLOSING);
      return;
    }
    // The event `close` would not come again.
    if (socket.destroyed) return;
    const { middleware, perMessageDeflate } = this.#settings;
    const open = { hasContext: middleware.length > 0, deflates: perMessageDeflate === 'shared' };
    if (open.deflates) {
      req.headers['sec-websocket-extensions'] = agreedOffer(req.headers['sec-websocket-extensions']);
    }
    try {
      this.#handshakes.handleUpgrade(req, socket, head, (websocket) => {
        const connection = this.#target.open(websocket, req, socket, open);
        if (connection === undefined) return;
        void caught(
          () => connection.hold(),
          (error) => connection.session.refuseFor(error),
        );
      });
    } catch (error) {
      // Another listener has upgraded the same socket.
      debug.subscriptions('upgrade of %s failed: %O', req.url, error);
    }
  }

  /** In development the response contains the reason, which browsers hide; the debug log always does. */
  #reject(
    req: IncomingMessage,
    socket: Duplex,
    status: number,
    reason: string,
    hint = '',
    headers: Headers = status === 503 ? { 'Retry-After': '5' } : {},
  ): void {
    debug.subscriptions('%d for an upgrade of %s: %s', status, req.url, reason);
    // Other errors of the server are reported.
    if (reason !== CLOSING && (status < 500 || status === 503)) {
      noteHidden(
        status,
        `A WebSocket cannot be opened at ${this.#settings.path} (${status}): ${reason}${hint}`,
      );
    }
    rejectUpgrade(socket, status, this.#isDevelopment ? { headers, reason } : { headers });
  }
}

export type AllowedOrigins =
  | '*'
  | readonly string[]
  | ((origin: string, request: IncomingMessage) => boolean);

/** The origin of the page that opens a WebSocket; undefined for clients that are not browsers. */
function originOf({ headers }: IncomingMessage): string | readonly string[] | undefined {
  return headers.origin ?? headers['sec-websocket-origin'];
}

/**
 * Browsers send cookies with WebSockets that any page opens (cross-site WebSocket hijacking), and the page's
 * origin. Allowed: requests without `Origin`, which browsers never send; our own host, with any scheme unless
 * our own socket uses TLS, because a proxy may terminate TLS; and the origins of the option. `app` is the
 * Express app of the server, whose setting `trust proxy` decides whether the headers of a proxy count.
 */
function isOriginAllowed(req: IncomingMessage, allowed: AllowedOrigins, app: Settings | undefined): boolean {
  const origin = originOf(req);
  if (origin === undefined || allowed === '*') return true;
  if (typeof origin !== 'string') return false;
  if (typeof allowed === 'function') {
    return assertSync(allowed(origin, req), SUBSCRIPTION_OPTIONS, 'allowedOrigins');
  }
  return allowed.includes(origin) || isOwnHost(req, origin, app);
}

/** An opaque origin ("null"), or one with a path, equals no host. */
function isOwnHost(req: IncomingMessage, origin: string, app: Settings | undefined): boolean {
  if (!URL.canParse(origin) || new URL(origin).origin !== origin.toLowerCase()) return false;
  return isOwnOrigin(req, origin, app);
}

/** Describes why an origin is refused: with the host that it was compared with, and the option. */
function originRefusal(req: IncomingMessage, allowed: AllowedOrigins, app: Settings | undefined): string {
  const origin = JSON.stringify(originOf(req));
  if (typeof allowed === 'function') return `"allowedOrigins" refused the origin ${origin}`;
  const host = JSON.stringify(publicHostOf(req, app));
  return `the origin ${origin} is not that of the host ${host} and not in "allowedOrigins"`;
}

/**
 * The result of running middleware: all called `next`; one has responded, or the socket has closed; or one
 * has failed.
 */
type MiddlewareResult = 'passed' | 'responded' | { readonly status: number; readonly headers?: Headers };

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
function runMiddleware(
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
  let index = 0;
  let isFinished = false;

  function finish(result: MiddlewareResult): void {
    if (isFinished || res === undefined) return;
    isFinished = true;
    socket.off('close', onClose);
    if (res.headersSent || res.writableEnded) {
      // An incomplete response can no longer be completed.
      if (!res.writableEnded) socket.destroy();
      done('responded');
      return;
    }
    if (res.socket !== null) res.detachSocket(res.socket);
    done(result);
  }

  function next(error?: unknown): void {
    if (error !== undefined && error !== null && error !== 'route' && error !== 'router') {
      const status = statusOf(error);
      if (status >= 500) onError(error);
      else debug.subscriptions('middleware refused the upgrade: %O', error);
      finish(HttpError.is(error) ? error : { status });
      return;
    }
    const middleware = error === undefined || error === null ? list[index++] : undefined;
    if (isFinished) return;
    if (middleware === undefined) finish('passed');
    else call(middleware, req, res as ServerResponse, once(next));
  }

  const onClose = (): void => finish('responded');
  socket.once('close', onClose);
  res.once('finish', () => {
    destroyWhenWritten(socket);
    socket.end();
    finish('responded');
  });
  next();
  return (status) => finish({ status });
}

function call(
  middleware: Middleware,
  req: IncomingMessage,
  res: ServerResponse,
  next: (error?: unknown) => void,
): void {
  try {
    const result: unknown = middleware(req, res, next);
    // Middleware of Express 5 may be async, with promises of another library or JavaScript context too.
    if (isThenable(result)) Promise.resolve(result).catch((error) => next(toError(error)));
  } catch (error) {
    next(toError(error));
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

/** An Express app, with the prototypes of its requests and responses. */
interface ExpressApp extends Settings {
  readonly request: object;
  readonly response: object;
}

/**
 * Gives request and response the prototypes of the server's Express app, and the members that its middleware
 * expects.
 */
function applyAppPrototypes(server: Server, req: IncomingMessage, res: ServerResponse): void {
  const app = expressAppOf(server);
  if (app !== undefined) {
    Object.setPrototypeOf(req, app.request);
    Object.setPrototypeOf(res, app.response);
  }
  Object.assign(req, { res, originalUrl: req.url, baseUrl: '' });
  // Express 5 has a getter for `query`; in Express 4 the router parses the query string.
  if (!('query' in req)) Object.assign(req, { query: parse(queryOf(req)) });
  Object.assign(res, { locals: Object.create(null) });
}

function queryOf({ url = '' }: IncomingMessage): string {
  const mark = url.indexOf('?');
  return mark === -1 ? '' : url.slice(mark + 1);
}

/** The Express app that receives the requests of a server, if any. */
function expressAppOf(server: Server): ExpressApp | undefined {
  const listeners: unknown[] = server.listeners('request');
  return listeners.find(isApp);
}

function isApp(listener: unknown): listener is ExpressApp {
  const { request, response } = listener as Partial<ExpressApp>;
  return typeof request === 'object' && typeof response === 'object';
}

/** Creates the server that performs the WebSocket handshakes. */
function createWebSocketServer(
  { limits, perMessageDeflate }: UpgradeSettings,
  protocols: readonly SubscriptionProtocol[],
): WebSocketServer {
  return new (packages.ws().WebSocketServer)({
    noServer: true,
    clientTracking: false,
    maxPayload: limits.messageBytes,
    // ws negotiates, and decompresses what clients send. It never compresses: SocketQueue does, once for all sockets.
    perMessageDeflate: perMessageDeflate === 'shared' && {
      serverNoContextTakeover: true,
      clientNoContextTakeover: true,
      threshold: Number.MAX_SAFE_INTEGER,
      concurrencyLimit: 10,
      // Of the memory that a socket keeps once its client has compressed a message; 16 KiB by default.
      zlibInflateOptions: { chunkSize: 4096 },
    },
    // Uses the client's order. Without a common subprotocol the socket is accepted and closed with 4406,
    // which clients can read, unlike a refused handshake.
    handleProtocols: (offered) =>
      [...offered].find((name) => protocols.some((protocol) => protocol === name)) ?? false,
  });
}
