import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { SubscriptionProtocol, WebSocketLike } from '../../../types/subscriptions.ts';

/** A new WebSocket with its request. */
export interface OpenedWebSocket {
  readonly websocket: WebSocketLike;
  readonly request: IncomingMessage;
  /** The underlying socket, if we may write frames to it. */
  readonly socket: Duplex | undefined;
  readonly protocol: SubscriptionProtocol;
}

/** The members that every request has, and internal members of Express. */
const OWN_MEMBERS: ReadonlySet<string> = new Set([
  ...Object.keys(new IncomingMessage(new Socket())),
  'res',
  'next',
]);

/**
 * Gives the WebSocket the members of the upgrade request that context functions read: `headers`, `url`,
 * `socket`, `state`, and the members that middleware has added. Does not change members of the WebSocket
 * itself.
 */
export function exposeRequest(
  websocket: WebSocketLike,
  request: IncomingMessage & { state?: unknown },
): void {
  const { headers, url, socket } = request;
  request.state ??= {};
  define(websocket, 'headers', headers);
  define(websocket, 'url', url);
  define(websocket, 'socket', socket);
  for (const name of Object.keys(request)) {
    if (OWN_MEMBERS.has(name) || name in websocket) continue;
    define(websocket, name, request[name as keyof IncomingMessage]);
  }
}

function define(websocket: WebSocketLike, name: string, value: unknown): void {
  Object.defineProperty(websocket, name, { value, writable: true, enumerable: true, configurable: true });
}
