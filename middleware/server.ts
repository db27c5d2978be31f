import type * as http from 'node:http';
import type * as http2 from 'node:http2';
import type * as https from 'node:https';
import { answerContinue } from '../src/server/continue.ts';
import { type AnyOptions, type AnyServer, makeServer } from '../src/server/make.ts';
import { checkArguments } from '../src/server/options.ts';
import type {
  App,
  Http2App,
  Http2Options,
  HttpOptions,
  HttpsOptions,
  SecureHttp2Options,
  TlsIdentity,
} from '../types/server.ts';

export type * from '../types/server.ts';

/**
 * A server of Node's own for an app, whose requests and responses are born with the prototypes that Express gives them.
 * The app behaves as behind `app.listen`, at a fraction of the CPU time on Node 20 and 22.
 *
 * @param app - an Express 4 or 5 app, a Connect app or a plain listener
 * @param options - every option of the server that it makes: `node:https` with any TLS option, `node:http2` with
 * `http2: true`, else `node:http`
 * @throws TypeError (code `ERR_OPTION`) for an argument that cannot work
 */
export function createServer(
  app: Http2App,
  options: SecureHttp2Options & TlsIdentity,
): http2.Http2SecureServer;
export function createServer(app: Http2App, options: Http2Options): http2.Http2Server;
export function createServer(app: App, options: HttpsOptions & TlsIdentity): https.Server;
export function createServer(app: App, options?: HttpOptions | HttpsOptions): http.Server;
export function createServer(app: App & Http2App, options: AnyOptions = {}): AnyServer {
  checkArguments(app, options);
  const server = makeServer(app, options);
  answerContinue(server);
  return server;
}
