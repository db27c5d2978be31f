import type { Http2Session } from 'node:http2';
import type { Server, Socket } from 'node:net';

/** Milliseconds in which the first bytes of a request have to arrive on a connection that is to be closed. */
const REQUEST_START = 1000;

/** The open connections of a server. */
export class Connections {
  readonly #sockets = new Set<Socket>();
  readonly #sessions = new Set<Http2Session>();
  /** The time (`performance.now()`) at which each socket was opened, or its TLS handshake ended. */
  readonly #opened = new WeakMap<Socket, number>();
  readonly #secure = new Set<Socket>();

  constructor(server: Server) {
    const onOpen = (open: Set<Socket>) => (socket: Socket) => {
      track(open, socket);
      this.#opened.set(socket, performance.now());
    };
    server.on('connection', onOpen(this.#sockets));
    // Emitted by TLS servers only. The bytes of the encrypted socket include those of the handshake.
    server.on('secureConnection', onOpen(this.#secure));
    // Emitted by HTTP/2 servers only.
    server.on('session', (session: Http2Session) => track(this.#sessions, session));
  }

  get size(): number {
    return this.#sockets.size;
  }

  /** Closes HTTP/2 sessions after the streams that are open. */
  closeSessions(): void {
    for (const session of this.#sessions) if (!session.closed) session.close();
  }

  /**
   * Closes connections on which no request has begun. Browsers open some in advance, and Node counts them as
   * active until its `headersTimeout`.
   */
  closeWithoutRequest(): void {
    const latest = performance.now() - REQUEST_START;
    for (const sockets of [this.#sockets, this.#secure]) {
      for (const socket of sockets) {
        if (socket.bytesRead === 0 && (this.#opened.get(socket) ?? latest) <= latest) socket.destroy();
      }
    }
  }

  /** Resolves when the last connection is closed. */
  async closed(): Promise<void> {
    for (const socket of this.#sockets) await new Promise((resolve) => socket.once('close', resolve));
  }

  destroy(): void {
    for (const session of this.#sessions) session.destroy();
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** A value that emits `close` once. */
interface Closable {
  once(event: 'close', listener: () => void): unknown;
}

function track<T extends Closable>(open: Set<T>, value: T): void {
  open.add(value);
  value.once('close', () => open.delete(value));
}
