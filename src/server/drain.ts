import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2Session } from 'node:http2';
import type { Server, Socket } from 'node:net';
import { setImmediate as nextImmediate, setTimeout as sleep } from 'node:timers/promises';
import { closeParts } from '../http/server-parts.ts';

/** Milliseconds between two attempts to close idle connections. */
const STEP = 100;

/** Sockets get half of the timeout, so that their close frames reach the clients before it ends. */
const SOCKET_SHARE = 0.5;

/** Milliseconds in which a server that is to be closed accepts connections that arrive without a pause. */
const LAST_ACCEPTS = 500;

/**
 * Accepts the connections that wait in the kernel, which would be reset with their requests when the server closes. They
 * are all accepted when none was for a whole iteration of the event loop.
 */
async function acceptWaiting(server: Server): Promise<void> {
  const end = performance.now() + LAST_ACCEPTS;
  let quiet = 0;
  const onConnection = (): void => {
    quiet = 0;
  };
  server.on('connection', onConnection);
  // The first of two immediates may run before the event loop has looked for connections.
  while (quiet++ < 2 && performance.now() < end) await nextImmediate();
  server.off('connection', onConnection);
}

/** Closes a server with its parts. Resolves when every connection is closed. */
export async function drainServer(
  server: Server & { closeIdleConnections?(): void },
  connections: Connections,
  { delay, timeout }: { readonly delay: number; readonly timeout: number },
): Promise<void> {
  if (delay > 0) {
    await sleep(delay);
    await acceptWaiting(server);
  }
  const closed = new Promise<void>((resolve) => {
    // A server that does not listen calls back with an error, but may have connections.
    server.close(() => resolve());
  });
  const closeIdle = (): void => {
    server.closeIdleConnections?.();
    connections.closeSessions();
    connections.closeWithoutRequest();
  };
  closeIdle();
  // Node closes a connection that becomes idle later only after `keepAliveTimeout`.
  const step = setInterval(closeIdle, STEP);
  const end = setTimeout(() => connections.destroy(), timeout);
  await Promise.all([closed, closeParts(server, timeout * SOCKET_SHARE)]);
  // The server closes before its last sockets report that they are closed.
  await connections.closed();
  clearInterval(step);
  clearTimeout(end);
}

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

  /**
   * Tells clients not to send further requests on their connections, before these are closed: a request that meets the
   * close is lost (RFC 9112 §9.6, RFC 9113 §6.8).
   */
  announceClose(server: Server): void {
    for (const session of this.#sessions) shutDown(session);
    for (const sockets of [this.#sockets, this.#secure]) {
      // The response to the request in progress, which Node has no other way to.
      for (const socket of sockets) closeAfter((socket as Socket & { _httpMessage?: unknown })._httpMessage);
    }
    // Before the application, which may send the response at once.
    server.prependListener('request', (req: IncomingMessage | Http2ServerRequest, res: ServerResponse) => {
      if (!('stream' in req)) closeAfter(res);
      else if (req.stream.session !== undefined) shutDown(req.stream.session);
    });
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

/** Lets a response end its connection. The header stays when the body of a request with `Expect` is read. */
function closeAfter(res: unknown): void {
  if (res instanceof ServerResponse && !res.headersSent) res.setHeader('Connection', 'close');
}

/** The last id of a stream: requests that cross the GOAWAY are still handled. */
const ANY_STREAM = 2 ** 31 - 1;
const shutDowns = new WeakSet<Http2Session>();

function shutDown(session: Http2Session): void {
  if (shutDowns.has(session) || session.closed || session.destroyed) return;
  shutDowns.add(session);
  session.goaway(0, ANY_STREAM);
}

function track<T extends Socket | Http2Session>(open: Set<T>, value: T): void {
  open.add(value);
  value.once('close', () => open.delete(value));
}
