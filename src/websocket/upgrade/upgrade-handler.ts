import type { IncomingMessage } from 'node:http';
import type { Server } from 'node:net';
import type { Duplex } from 'node:stream';
import type { WebSocketServer } from 'ws';
import type { Middleware } from '../../../types/connect.ts';
import type { SubscriptionProtocol, WebSocketLike } from '../../../types/subscriptions.ts';
import { debug } from '../../logging/debug.ts';
import type { IntervalTimer } from '../../subscriptions/interval-timer.ts';
import { expressAppOf } from './app-prototypes.ts';
import { type AllowedOrigins, isOriginAllowed, originRefusal } from './origin.ts';
import { rejectUpgrade } from './reject-upgrade.ts';
import { type MiddlewareResult, runMiddleware } from './run-middleware.ts';
import type { UpgradeListener } from './upgrade-router.ts';
import { WebSocketServerLoader, type WebSocketServerSettings } from './websocket-server.ts';

/** The options of the upgrade. */
export interface UpgradeSettings extends WebSocketServerSettings {
  readonly path: string;
  readonly middleware: readonly Middleware[];
  readonly allowedOrigins: AllowedOrigins;
  readonly maxConnections: number;
}

/** Serves the WebSockets that were accepted. */
export interface UpgradeTarget {
  readonly settings: {
    readonly subscriptionProtocols: readonly SubscriptionProtocol[];
    readonly connectionInitWaitTimeout: number;
  };
  readonly connectionCount: number;
  readonly timer: IntervalTimer;
  isHostAllowed(request: IncomingMessage): boolean;
  /** Reports an unexpected error of an option or a middleware. */
  reportError(error: unknown, request: IncomingMessage): void;
  open(websocket: WebSocketLike, request: IncomingMessage, socket: Duplex): void;
  /** Calls `check` at each tick of the timer until it returns false. */
  watch(check: (now: number) => boolean): void;
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
  target: UpgradeTarget,
  settings: UpgradeSettings,
): UpgradeHandler {
  const { subscriptionProtocols, connectionInitWaitTimeout } = target.settings;
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
    const deadline = target.timer.now() + connectionInitWaitTimeout;
    const onResult = (result: MiddlewareResult): void => {
      isWaiting = false;
      pending--;
      waiting.delete(stopWaiting);
      if (result === 'responded') return;
      const reason = isClosed ? CLOSING : 'a middleware failed or took too long';
      if (result !== 'passed') reject(req, socket, result.status, reason);
      else if (isClosed) reject(req, socket, 503, CLOSING);
      else accept(req, socket, head);
    };
    let isWaiting = true;
    let giveUp = (_status: number): void => undefined;
    const stopWaiting = (): void => giveUp(503);
    const exchange = { server, req, socket, onError: (error: unknown) => target.reportError(error, req) };
    giveUp = runMiddleware(settings.middleware, exchange, onResult);
    if (!isWaiting) return;
    waiting.add(stopWaiting);
    target.watch((now) => {
      if (isWaiting && now >= deadline) stopWaiting();
      return isWaiting;
    });
  }

  function accept(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    const shakeHands = (server: WebSocketServer): void => {
      try {
        if (isClosed) reject(req, socket, 503, CLOSING);
        else server.handleUpgrade(req, socket, head, (websocket) => target.open(websocket, req, socket));
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
      // The timer of the deadlines stops with the last connection.
      for (const stopWaiting of waiting) stopWaiting();
    },
  };
}

/** The server, the connections and the options that a check of the origin needs. */
interface OriginCheck {
  readonly server: Server;
  readonly target: UpgradeTarget;
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
