import type { Server } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { closeParts } from '../../http/server-parts.ts';
import type { Connections } from './connections.ts';

/** Milliseconds between two attempts to close idle connections. */
const STEP = 100;

/** Sockets get half of the timeout, so that their close frames reach the clients before it ends. */
const SOCKET_SHARE = 0.5;

interface HttpServer extends Server {
  closeIdleConnections?(): void;
}

/** Closes a server with its parts. Resolves when every connection is closed. */
export async function drainServer(
  server: HttpServer,
  connections: Connections,
  { delay, timeout }: { readonly delay: number; readonly timeout: number },
): Promise<void> {
  if (delay > 0) await sleep(delay);
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
