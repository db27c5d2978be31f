import type { Duplex } from 'node:stream';
import type { WebSocketServer } from 'ws';
import type { SubscriptionProtocol } from '../../../types/subscriptions.ts';

/** The settings that are passed to `ws`. */
export interface WebSocketServerSettings {
  readonly maxPayload: number;
  readonly perMessageDeflate: boolean;
}

/** Loads `ws` and creates its server. Handshakes that arrive meanwhile wait. */
export class WebSocketServerLoader {
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

/** Loads `ws`, and creates the server that performs the WebSocket handshakes. */
async function loadWebSocketServer(
  { maxPayload, perMessageDeflate }: WebSocketServerSettings,
  protocols: readonly SubscriptionProtocol[],
): Promise<WebSocketServer> {
  // Loading `ws` takes as long as the rest of the package without graphql.
  const { WebSocketServer } = await import('ws');
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
