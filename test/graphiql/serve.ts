import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

/** An app on a free port, with the requests and bytes that it served. */
export async function serve(app: RequestListener) {
  const server = createServer(app);
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => sockets.add(socket));
  // This middleware is the first, because a mount strips the URL.
  server.prependListener('request', ({ method, url }) => requests.push(`${method} ${url}`));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    server,
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** The requests received until now, in order. */
    requests,
    /** Bytes on the wire from the server, headers included. */
    sent: (): number => [...sockets].reduce((sum, socket) => sum + socket.bytesWritten, 0),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

export type Served = Awaited<ReturnType<typeof serve>>;
