import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:net';
import { parse } from 'node:querystring';
import type { Duplex } from 'node:stream';
import type { WebSocketServer } from 'ws';
import type { Middleware } from '../../types/connect.ts';
import type { SubscriptionProtocol } from '../../types/subscriptions.ts';
import { debug } from '../diagnostics/logging.ts';
import { toError } from '../http/reply.ts';
import { isOwnOrigin, publicHostOf, type Settings } from '../http/routing.ts';
import { assertSync, isThenable } from '../options/rules.ts';
import { SUBSCRIPTION_OPTIONS } from '../options/scopes.ts';
import { graphqlWs } from './protocols.ts';
import {
  createUpgradeResponse,
  destroyWhenWritten,
  rejectUpgrade,
  type UpgradeListener,
} from './upgrade-router.ts';
import type { WebSocketEndpoint } from './websocket.ts';

/** The options of the upgrade. */
export interface UpgradeSettings extends WebSocketServerSettings {
  readonly path: string;
  readonly middleware: readonly Middleware[];
  readonly allowedOrigins: AllowedOrigins;
  readonly maxConnections: number;
}

/** The upgrades of one path. */
interface UpgradeHandler {
  readonly handle: UpgradeListener;
  /** Rejects all later upgrades. */
  close(): void;
}

const CLOSING = 'subscriptions are being closed';

/** Decides on upgrade requests in steps: capacity, origin, middleware; then sends the 101. */
export function createUpgradeHandler(
  server: Server,
  target: WebSocketEndpoint,
  settings: UpgradeSettings,
): UpgradeHandler {
  const { subscriptionProtocols, connectionInitWaitTimeout } = target.settings;
  const hasContext = settings.middleware.length > 0;
  const loader = new WebSocketServerLoader(settings, subscriptionProtocols);
  const reject = createReject();
  /** The functions that stop waiting for the middleware of an upgrade. */
  const waiting = new Set<() => void>();
  let pending = 0;
  let isClosed = false;

  function handle(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (isClosed || target.connectionCount + pending + loader.waiting >= settings.maxConnections) {
      reject(req, socket, 503, isClosed ? CLOSING : 'the limit "maxConnections" is reached');
      return;
    }
    if (!target.isHostAllowed(req)) {
      reject(req, socket, 421, `the host ${JSON.stringify(req.headers.host)} is not in "allowedHosts"`);
      return;
    }
    const status = statusOfOrigin(req, { server, target, settings });
    if (status === 403) {
      reject(req, socket, status, originRefusal(req, settings.allowedOrigins, expressAppOf(server)));
    } else if (status === 500) reject(req, socket, status, '"allowedOrigins" failed');
    else if (settings.middleware.length === 0) accept(req, socket, head);
    else acceptAfterMiddleware(req, socket, head);
  }

  function acceptAfterMiddleware(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    pending++;
    const onResult = (result: MiddlewareResult): void => {
      clearTimeout(deadline);
      pending--;
      waiting.delete(stopWaiting);
      if (result === 'responded') return;
      const reason = isClosed ? CLOSING : 'a middleware failed or took too long';
      if (result !== 'passed') reject(req, socket, result.status, reason);
      else if (isClosed) reject(req, socket, 503, CLOSING);
      else accept(req, socket, head);
    };
    let giveUp = (_status: number): void => undefined;
    const stopWaiting = (): void => giveUp(503);
    const deadline = setTimeout(stopWaiting, connectionInitWaitTimeout).unref();
    waiting.add(stopWaiting);
    const exchange = { server, req, socket, onError: (error: unknown) => target.reportError(error, req) };
    giveUp = runMiddleware(settings.middleware, exchange, onResult);
  }

  function accept(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    const shakeHands = (server: WebSocketServer): void => {
      try {
        if (isClosed) reject(req, socket, 503, CLOSING);
        else
          server.handleUpgrade(req, socket, head, (websocket) =>
            target.open(websocket, req, socket, { hasContext }),
          );
      } catch (error) {
        // Another listener has upgraded the same socket.
        debug.subscriptions('upgrade of %s failed: %O', req.url, error);
      }
    };
    loader.use(socket, shakeHands, (error) => target.reportError(error, req));
  }

  return {
    handle,
    close() {
      isClosed = true;
      for (const stopWaiting of waiting) stopWaiting();
    },
  };
}

/** The server, the connections and the options that a check of the origin needs. */
interface OriginCheck {
  readonly server: Server;
  readonly target: WebSocketEndpoint;
  readonly settings: UpgradeSettings;
}

/** Checks the origin. The option may be a function of the application, which may throw. */
function statusOfOrigin(req: IncomingMessage, { server, target, settings }: OriginCheck): 101 | 403 | 500 {
  try {
    return isOriginAllowed(req, settings.allowedOrigins, expressAppOf(server)) ? 101 : 403;
  } catch (error) {
    target.reportError(error, req);
    return 500;
  }
}

type Reject = (req: IncomingMessage, socket: Duplex, status: number, reason: string) => void;

/**
 * Creates the function that refuses an upgrade. Outside production the response contains the reason; the
 * debug log always does.
 */
function createReject(): Reject {
  const isProduction = process.env['NODE_ENV'] === 'production';
  return (req, socket, status, reason) => {
    debug.subscriptions('%d for an upgrade of %s: %s', status, req.url, reason);
    const headers = status === 503 ? { 'Retry-After': '5' } : {};
    rejectUpgrade(socket, status, isProduction ? { headers } : { headers, reason });
  };
}

/** The option `allowedOrigins`. */
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
type MiddlewareResult = 'passed' | 'responded' | { readonly status: number };

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

/** The settings that are passed to `ws`. */
interface WebSocketServerSettings {
  readonly maxPayload: number;
  readonly perMessageDeflate: boolean;
}

/** Loads `ws` and graphql-ws, and creates the server of `ws`. Handshakes that arrive meanwhile wait. */
class WebSocketServerLoader {
  /** The number of handshakes that wait. */
  waiting = 0;
  #server: WebSocketServer | undefined;
  readonly #loading: Promise<void>;

  constructor(settings: WebSocketServerSettings, protocols: readonly SubscriptionProtocol[]) {
    this.#loading = loadWebSocketServer(settings, protocols).then((server) => {
      this.#server = server;
    });
    // The handshakes report the error.
    this.#loading.catch(() => {});
  }

  /** Calls `shakeHands` synchronously, or when the server has been created. */
  use(
    socket: Duplex,
    shakeHands: (server: WebSocketServer) => void,
    onError: (error: unknown) => void,
  ): void {
    if (this.#server !== undefined) {
      shakeHands(this.#server);
      return;
    }
    const destroy = (): void => void socket.destroy();
    // A connection that is lost meanwhile must not become an uncaught error.
    socket.on('error', destroy);
    this.waiting++;
    const settle = (error?: unknown): void => {
      this.waiting--;
      socket.off('error', destroy);
      if (this.#server === undefined) {
        destroy();
        onError(error);
      } else if (!socket.destroyed) shakeHands(this.#server);
    };
    this.#loading.then(() => settle(), settle);
  }
}

/** Creates the server that performs the WebSocket handshakes. */
async function loadWebSocketServer(
  { maxPayload, perMessageDeflate }: WebSocketServerSettings,
  protocols: readonly SubscriptionProtocol[],
): Promise<WebSocketServer> {
  // Loading them takes longer than the rest of the package without graphql.
  const [{ WebSocketServer }] = await Promise.all([import('ws'), graphqlWs.load()]);
  return new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload,
    perMessageDeflate: perMessageDeflate && {
      serverNoContextTakeover: true,
      clientNoContextTakeover: true,
      threshold: 1024,
      concurrencyLimit: 10,
    },
    // Uses the client's order. Without a common subprotocol the socket is accepted and closed with 4406,
    // which clients can read, unlike a refused handshake.
    handleProtocols: (offered) =>
      [...offered].find((name) => protocols.some((protocol) => protocol === name)) ?? false,
  });
}
