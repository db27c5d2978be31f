import type { Http2Session } from 'node:http2';
import type { Server, Socket } from 'node:net';

/** The open connections of a server. */
export class Connections {
  readonly #sockets = new Set<Socket>();
  readonly #sessions = new Set<Http2Session>();

  constructor(server: Server) {
    server.on('connection', (socket: Socket) => track(this.#sockets, socket));
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
