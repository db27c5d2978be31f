import type { IncomingMessage, ServerOptions as NodeHttpOptions, ServerResponse } from 'node:http';
import type {
  Http2ServerRequest,
  Http2ServerResponse,
  ServerOptions as NodeHttp2Options,
  SecureServerOptions as NodeSecureHttp2Options,
} from 'node:http2';
import type { ServerOptions as NodeHttpsOptions } from 'node:https';

/** What answers requests: an Express 4 or 5 app, a Connect app, or a plain listener. */
export type App = (req: IncomingMessage, res: ServerResponse) => unknown;

interface OverEither {
  // As a method its parameters may be narrower: an app that knows nothing of HTTP/2 is welcome, see docs/server.md.
  app(req: IncomingMessage | Http2ServerRequest, res: ServerResponse | Http2ServerResponse): unknown;
}

/** The same for an HTTP/2 server, where a plain listener gets the compatibility API of `node:http2`. */
export type Http2App = OverEither['app'];

type RequestClass = typeof IncomingMessage;
type ResponseClass = typeof ServerResponse<IncomingMessage>;
type Http2RequestClass = typeof Http2ServerRequest;
type Http2ResponseClass = typeof Http2ServerResponse<Http2ServerRequest>;

interface OverHttp1 {
  /**
   * `true`: an HTTP/2 server (RFC 9113).
   * @default false
   */
  http2?: false | undefined;
}

interface OverHttp2 {
  /** An HTTP/2 server: with TLS options `node:http2`'s secure one, without them cleartext with prior knowledge. */
  http2: true;
}

/** Every option of `http.createServer`. */
export interface HttpOptions extends NodeHttpOptions<RequestClass, ResponseClass>, OverHttp1 {}

/** Every option of `https.createServer`; any TLS option makes it an HTTPS server. */
export interface HttpsOptions extends NodeHttpsOptions<RequestClass, ResponseClass>, OverHttp1 {}

/** Options of which any one makes a server that speaks TLS. */
export type TlsIdentity = { key: unknown } | { cert: unknown } | { pfx: unknown } | { SNICallback: unknown };

/** Every option of `http2.createServer`. */
export interface Http2Options
  extends NodeHttp2Options<RequestClass, ResponseClass, Http2RequestClass, Http2ResponseClass>,
    OverHttp2 {}

/** Every option of `http2.createSecureServer`. */
export interface SecureHttp2Options
  extends NodeSecureHttp2Options<RequestClass, ResponseClass, Http2RequestClass, Http2ResponseClass>,
    OverHttp2 {
  /**
   * Also speak HTTP/1.1 with clients that offer nothing newer; WebSockets need it.
   * @default true
   */
  allowHTTP1?: boolean | undefined;
}
