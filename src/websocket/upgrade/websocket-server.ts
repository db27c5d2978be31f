import { WebSocketServer } from 'ws';
import type { SubscriptionProtocol } from '../../../types/subscriptions.ts';

/** The settings that are passed to `ws`. */
export interface WebSocketServerSettings {
  readonly maxPayload: number;
  readonly perMessageDeflate: boolean;
}

/** Performs the WebSocket handshake. */
export function createWebSocketServer(
  { maxPayload, perMessageDeflate }: WebSocketServerSettings,
  protocols: readonly SubscriptionProtocol[],
): WebSocketServer {
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
    // Uses the client's order. Without a common subprotocol the socket is accepted and closed with 4406, which clients
    // can read, unlike a refused handshake.
    handleProtocols: (offered) =>
      [...offered].find((name) => protocols.some((protocol) => protocol === name)) ?? false,
  });
}
