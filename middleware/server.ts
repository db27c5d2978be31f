import * as http from 'node:http';
import * as http2 from 'node:http2';
import * as https from 'node:https';
import { type Classes, classesOf, NODE_CLASSES } from '../src/server/classes.ts';
import { isExpress } from '../src/server/express.ts';
import { forExpress, type Http2Classes, NODE_HTTP2_CLASSES, withHttp1Headers } from '../src/server/http2.ts';
import { checkArguments } from '../src/server/options.ts';
import { asksForTls } from '../src/server/tls.ts';
import type {
  App,
  Http2App,
  Http2Options,
  HttpOptions,
  HttpsOptions,
  SecureHttp2Options,
  TlsIdentity,
} from '../types/server.ts';

/**
 * A server of Node's own for an app, whose requests and responses are born with the prototypes that Express gives them.
 * The app behaves as behind `app.listen`, at a fraction of the CPU time on Node 20 and 22.
 *
 * @param app an Express 4 or 5 app, a Connect app or a plain listener
 * @param options every option of the server that it makes: `node:https` with any TLS option, `node:http2` with
 * `http2: true`, else `node:http`
 * @throws TypeError (code `ERR_OPTION`) for an argument that cannot work
 */
export function createServer(
  app: Http2App,
  options: SecureHttp2Options & TlsIdentity,
): http2.Http2SecureServer;
export function createServer(app: Http2App, options: Http2Options): http2.Http2Server;
export function createServer(app: App, options: HttpsOptions & TlsIdentity): https.Server;
export function createServer(app: App, options?: HttpOptions): http.Server;
export function createServer(
  app: App & Http2App,
  options: HttpOptions | HttpsOptions | Http2Options | SecureHttp2Options = {},
): http.Server | https.Server | http2.Http2Server | http2.Http2SecureServer {
  checkArguments(app, options);
  const secure = asksForTls(options);
  if (options.http2) return secure ? secureHttp2Server(app, options) : http2Server(app, options);
  const settled = { ...options, ...bornFor(app, options) };
  return secure ? https.createServer(settled, app) : http.createServer(settled, app);
}

function http2Server(app: Http2App, options: Http2Options): http2.Http2Server {
  return http2.createServer({ ...options, ...http2ClassesFor(app, options) }, app);
}

function secureHttp2Server(app: Http2App, options: SecureHttp2Options): http2.Http2SecureServer {
  const { IncomingMessage, ServerResponse } = bornFor(app, {
    IncomingMessage: options.Http1IncomingMessage,
    ServerResponse: options.Http1ServerResponse,
  });
  const http1 = {
    allowHTTP1: options.allowHTTP1 ?? true,
    Http1IncomingMessage: IncomingMessage,
    Http1ServerResponse: ServerResponse,
  };
  return http2.createSecureServer({ ...options, ...http1, ...http2ClassesFor(app, options) }, app);
}

function bornFor(app: App, given: { [Name in keyof Classes]?: Classes[Name] | undefined }): Classes {
  const base = {
    IncomingMessage: given.IncomingMessage ?? NODE_CLASSES.IncomingMessage,
    ServerResponse: given.ServerResponse ?? NODE_CLASSES.ServerResponse,
  };
  return isExpress(app) ? classesOf(app, base) : base;
}

function http2ClassesFor(
  app: Http2App,
  given: { [Name in keyof Http2Classes]?: Http2Classes[Name] | undefined },
): Http2Classes {
  const base = withHttp1Headers({
    Http2ServerRequest: given.Http2ServerRequest ?? NODE_HTTP2_CLASSES.Http2ServerRequest,
    Http2ServerResponse: given.Http2ServerResponse ?? NODE_HTTP2_CLASSES.Http2ServerResponse,
  });
  return isExpress(app) ? forExpress(base) : base;
}
