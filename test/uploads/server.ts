import { once } from 'node:events';
import * as http from 'node:http';
import type { AddressInfo } from 'node:net';

/** A running server for `await using`. */
export interface TestServer extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  readonly server: http.Server;
}

/** Starts an http server on a free port of the loopback interface. */
export async function startServer(
  listener: http.RequestListener,
  configure: (server: http.Server) => void = () => {},
): Promise<TestServer> {
  const server = http.createServer(listener);
  configure(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    server,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
