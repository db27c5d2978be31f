import type { IncomingMessage } from 'node:http';
import type { Server } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';
import { debug } from '../logging/debug.ts';
import { admit } from './admission.ts';
import type { Route } from './gate.ts';
import type { Hub } from './hub.ts';
import { isOriginAllowed } from './origin.ts';
import { refuse } from './refuse.ts';
import type { UpgradeSettings } from './settings.ts';

/** The upgrades of one path. */
export interface Upgrades {
  readonly route: Route;
  /** Refuses all from now on. */
  close(): void;
}

/** Takes upgrade requests step by step: capacity, origin, middlewares, then the 101. */
export function createUpgrades(server: Server, hub: Hub, settings: UpgradeSettings): Upgrades {
  const sockets = createSocketServer(hub, settings);
  let pending = 0;
  let closed = false;

  const isFull = (): boolean => closed || hub.connections.size + pending >= settings.maxConnections;

  function route(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (isFull()) {
      reject(req, socket, 503, closed ? CLOSING : 'there are maxConnections sockets');
      return;
    }
    const verdict = statusOfOrigin(req, settings);
    if (verdict !== 101) {
      const origin = JSON.stringify(req.headers.origin);
      reject(
        req,
        socket,
        verdict,
        verdict === 403 ? `its origin ${origin} is not in allowedOrigins` : FAILED,
      );
      return;
    }
    if (settings.middleware.length === 0) {
      accept(req, socket, head);
      return;
    }
    pending++;
    const deadline = hub.sweep.now() + hub.settings.connectionInitWaitTimeout;
    let waiting = true;
    const giveUp = admit(server, settings.middleware, { req, socket }, (status) => {
      waiting = false;
      pending--;
      if (status === undefined && closed) reject(req, socket, 503, CLOSING);
      else if (status === undefined) accept(req, socket, head);
      else if (status !== 0) reject(req, socket, status, 'refused by a middleware, or too slow');
    });
    if (!waiting) return;
    hub.watch((now) => {
      if (waiting && now >= deadline) giveUp(503);
      return waiting;
    });
  }

  function accept(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    try {
      sockets.handleUpgrade(req, socket, head, (websocket) => hub.open(websocket, req, socket));
    } catch (error) {
      // Another listener has taken this very socket.
      debug.subscriptions('upgrade of %s failed: %O', req.url, error);
    }
  }

  return {
    route,
    close() {
      closed = true;
    },
  };
}

/** A function of the application is asked, and nobody behind us would catch what it throws. */
function statusOfOrigin(req: IncomingMessage, { allowedOrigins }: UpgradeSettings): 101 | 403 | 500 {
  try {
    return isOriginAllowed(req, allowedOrigins) ? 101 : 403;
  } catch (error) {
    debug.subscriptions('allowedOrigins failed: %O', error);
    return 500;
  }
}

const CLOSING = 'subscriptions are being closed';
const FAILED = 'allowedOrigins failed';

function reject(req: IncomingMessage, socket: Duplex, status: number, why: string): void {
  debug.subscriptions('%d for an upgrade of %s: %s', status, req.url, why);
  refuse(socket, status, status === 503 ? { 'Retry-After': '5' } : {});
}

function createSocketServer(hub: Hub, settings: UpgradeSettings): WebSocketServer {
  const { subscriptionProtocols } = hub.settings;
  return new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: settings.maxPayload,
    perMessageDeflate: settings.perMessageDeflate && {
      serverNoContextTakeover: true,
      clientNoContextTakeover: true,
      threshold: 1024,
      concurrencyLimit: 10,
    },
    // The client's order decides. None: accepted without, then closed with 4406, which clients can read.
    handleProtocols: (offered) =>
      [...offered].find((name) => subscriptionProtocols.some((protocol) => protocol === name)) ?? false,
  });
}
