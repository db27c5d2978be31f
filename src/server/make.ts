import * as http from 'node:http';
import * as http2 from 'node:http2';
import * as https from 'node:https';
import type {
  App,
  Http2App,
  Http2Options,
  HttpOptions,
  HttpsOptions,
  SecureHttp2Options,
} from '../../types/server.ts';
import { type Classes, classesOf, NODE_CLASSES } from './classes.ts';
import { isExpress } from './express.ts';
import { forExpress, type Http2Classes, likeHttp1, NODE_HTTP2_CLASSES } from './http2.ts';
import { asksForTls } from './tls.ts';

export type AnyOptions = HttpOptions | HttpsOptions | Http2Options | SecureHttp2Options;
export type AnyServer = http.Server | https.Server | http2.Http2Server | http2.Http2SecureServer;

/** The server of Node's own that options ask for, with the classes that suit the app. */
export function makeServer(app: App & Http2App, options: AnyOptions): AnyServer {
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

/** Classes that the app's prototypes are the prototypes of. */
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
  const base = likeHttp1({
    Http2ServerRequest: given.Http2ServerRequest ?? NODE_HTTP2_CLASSES.Http2ServerRequest,
    Http2ServerResponse: given.Http2ServerResponse ?? NODE_HTTP2_CLASSES.Http2ServerResponse,
  });
  return isExpress(app) ? forExpress(base) : base;
}
