import { createServer, type RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { listen } from '../kit.ts';

/** An app on a free port, with the requests and bytes that it served. */
export async function serve(app: RequestListener) {
  const server = createServer(app);
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => sockets.add(socket));
  // This middleware is the first, because a mount strips the URL.
  server.prependListener('request', ({ method, url }) => requests.push(`${method} ${url}`));
  const { port, url: origin, close } = await listen(server);
  return {
    server,
    port,
    origin,
    close,
    /** The requests received until now, in order. */
    requests,
    /** Bytes on the wire from the server, headers included. */
    sent: (): number => [...sockets].reduce((sum, socket) => sum + socket.bytesWritten, 0),
  };
}

export type Served = Awaited<ReturnType<typeof serve>>;
