import type { IncomingMessage, ServerResponse } from 'node:http';
import * as http from 'node:http';
import type * as http2 from 'node:http2';
import type * as https from 'node:https';
import type {
  App,
  Http2App,
  Http2Options,
  HttpOptions,
  HttpsOptions,
  SecureHttp2Options,
} from '../../types/server.ts';
import { deferContinue } from '../http/body.ts';
import {
  type Classes,
  classesOfApp,
  type Http2Classes,
  isExpressApp,
  loadHttp2,
  NODE_CLASSES,
  withHttp1Headers,
  withOwnMembers,
} from './classes.ts';
import { acceptWebSockets, releaseResetStreams } from './http2-streams.ts';
import { hasTlsOption } from './options.ts';

export type AnyOptions = HttpOptions | HttpsOptions | Http2Options | SecureHttp2Options;
export type AnyServer = http.Server | https.Server | http2.Http2Server | http2.Http2SecureServer;

/** Creates the Node server that the options select, with classes that match the app. */
export function createNodeServer(app: App & Http2App, options: AnyOptions): AnyServer {
  const secure = hasTlsOption(options);
  if (options.http2) {
    const probing = withKeepAlive(options);
    const given = options.webSockets ? withConnectProtocol(probing) : probing;
    const server = secure ? secureHttp2Server(app, given) : http2Server(app, given);
    releaseResetStreams(server);
    if (options.webSockets) acceptWebSockets(server);
    return server;
  }
  const withClasses = { ...options, ...http1ClassesFor(app, options) };
  return secure
    ? process.getBuiltinModule('node:https').createServer(withClasses, app)
    : http.createServer(withClasses, app);
}

/**
 * Turns on the probes of TCP, which find clients that have disappeared. Node has no time limit for idle connections
 * over HTTP/2; those of HTTP/1.1 end after `keepAliveTimeout`.
 */
const withKeepAlive = <Options extends Http2Options | SecureHttp2Options>(options: Options): Options => ({
  ...options,
  keepAlive: options.keepAlive ?? true,
  keepAliveInitialDelay: options.keepAliveInitialDelay ?? 60_000,
});

/** Announces the extended CONNECT of RFC 8441 to clients. */
const withConnectProtocol = <Options extends Http2Options | SecureHttp2Options>(
  options: Options,
): Options => ({
  ...options,
  settings: { ...options.settings, enableConnectProtocol: true },
});

function http2Server(app: Http2App, options: Http2Options): http2.Http2Server {
  return loadHttp2().createServer({ ...options, ...http2ClassesFor(app, options) }, app);
}

function secureHttp2Server(app: Http2App, options: SecureHttp2Options): http2.Http2SecureServer {
  const { IncomingMessage, ServerResponse } = http1ClassesFor(app, {
    IncomingMessage: options.Http1IncomingMessage,
    ServerResponse: options.Http1ServerResponse,
  });
  const http1 = {
    allowHTTP1: options.allowHTTP1 ?? true,
    Http1IncomingMessage: IncomingMessage,
    Http1ServerResponse: ServerResponse,
  };
  return loadHttp2().createSecureServer({ ...options, ...http1, ...http2ClassesFor(app, options) }, app);
}

/** Returns classes whose instances have the prototypes of the app. */
function http1ClassesFor(app: App, given: { [Name in keyof Classes]?: Classes[Name] | undefined }): Classes {
  const base = {
    IncomingMessage: given.IncomingMessage ?? NODE_CLASSES.IncomingMessage,
    ServerResponse: given.ServerResponse ?? NODE_CLASSES.ServerResponse,
  };
  return isExpressApp(app) ? classesOfApp(app, base) : base;
}

function http2ClassesFor(
  app: Http2App,
  given: { [Name in keyof Http2Classes]?: Http2Classes[Name] | undefined },
): Http2Classes {
  const node = loadHttp2();
  const base = withHttp1Headers({
    Http2ServerRequest: given.Http2ServerRequest ?? node.Http2ServerRequest,
    Http2ServerResponse: given.Http2ServerResponse ?? node.Http2ServerResponse,
  });
  return isExpressApp(app) ? withOwnMembers(base) : base;
}

/** The members of a server that are used here. */
interface ContinueServer {
  on(event: 'checkContinue', listener: (req: IncomingMessage, res: ServerResponse) => void): unknown;
  listenerCount(event: 'checkContinue'): number;
  emit(event: 'request', req: IncomingMessage, res: ServerResponse): unknown;
}

/**
 * Lets an app refuse a request with `Expect: 100-continue` before the client sends the body (RFC 9110
 * §10.1.1). If the user listens to `checkContinue`, that listener alone handles these requests, as on any
 * Node server.
 */
export function handleExpectContinue(server: ContinueServer): void {
  server.on('checkContinue', (req, res) => {
    if (server.listenerCount('checkContinue') > 1) return;
    if (req.httpVersionMajor < 2) deferContinue(req, res);
    else res.writeContinue();
    server.emit('request', req, res);
  });
}
