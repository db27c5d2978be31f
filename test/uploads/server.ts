import * as http from 'node:http';
import { type Listening, listen } from '../kit.ts';

/** A running server, also for `await using`. */
export interface TestServer extends Listening, AsyncDisposable {}

/** Starts a server of node:http, which `configure` may change before. */
export async function startServer(
  listener: http.RequestListener,
  configure: (server: http.Server) => void = () => {},
): Promise<TestServer> {
  const server = http.createServer(listener);
  configure(server);
  const listening = await listen(server);
  return { ...listening, [Symbol.asyncDispose]: listening.close };
}
