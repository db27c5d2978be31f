import type { IncomingMessage, ServerOptions as NodeHttpOptions, ServerResponse } from 'node:http';
import type {
  Http2ServerRequest,
  Http2ServerResponse,
  ServerOptions as NodeHttp2Options,
  SecureServerOptions as NodeSecureHttp2Options,
} from 'node:http2';
import type { ServerOptions as NodeHttpsOptions } from 'node:https';
import type { HealthOptions } from './health.ts';

/** Handles requests: an Express 4 or 5 app, a Connect app, or a request listener of `node:http`. */
export type App = (req: IncomingMessage, res: ServerResponse) => unknown;

interface OverEither {
  // A method, so that its parameters may be narrower: apps typed for HTTP/1 only are accepted, see
  // docs/server.md.
  app(req: IncomingMessage | Http2ServerRequest, res: ServerResponse | Http2ServerResponse): unknown;
}

/** Handles requests of an HTTP/2 server. A request listener gets the compatibility API of `node:http2`. */
export type Http2App = OverEither['app'];

type RequestClass = typeof IncomingMessage;
type ResponseClass = typeof ServerResponse<IncomingMessage>;
type Http2RequestClass = typeof Http2ServerRequest;
type Http2ResponseClass = typeof Http2ServerResponse<Http2ServerRequest>;

interface OverHttp1 {
  /**
   * `true` creates an HTTP/2 server (RFC 9113).
   * @default false
   */
  http2?: false | undefined;
}

interface OverHttp2 {
  /**
   * Creates an HTTP/2 server (RFC 9113): secure with TLS options, otherwise cleartext with prior knowledge
   * (§3.3).
   */
  http2: true;
  /**
   * Accepts WebSockets over HTTP/2 (RFC 8441), which then share a connection with requests. They reach the
   * server's `upgrade` listeners, such as `attachSubscriptions`.
   * @default false
   */
  webSockets?: boolean | undefined;
  /**
   * Lets the operating system probe idle connections (`SO_KEEPALIVE`), and close those of clients that have
   * disappeared, which Node would keep.
   * @default true
   */
  keepAlive?: boolean | undefined;
  /**
   * Milliseconds without a byte until the first probe of `keepAlive`.
   * @default 60_000
   */
  keepAliveInitialDelay?: number | undefined;
}

/** Every option of `http.createServer`. */
export interface HttpOptions extends NodeHttpOptions<RequestClass, ResponseClass>, OverHttp1, HealthOptions {}

/** Every option of `https.createServer`. Any TLS option selects HTTPS. */
export interface HttpsOptions
  extends NodeHttpsOptions<RequestClass, ResponseClass>,
    OverHttp1,
    HealthOptions {}

/** Any of these options selects TLS. */
export type TlsIdentity = { key: unknown } | { cert: unknown } | { pfx: unknown } | { SNICallback: unknown };

/** Every option of `http2.createServer`. */
export interface Http2Options
  extends NodeHttp2Options<RequestClass, ResponseClass, Http2RequestClass, Http2ResponseClass>,
    OverHttp2,
    HealthOptions {}

/** Every option of `http2.createSecureServer`. */
export interface SecureHttp2Options
  extends NodeSecureHttp2Options<RequestClass, ResponseClass, Http2RequestClass, Http2ResponseClass>,
    OverHttp2,
    HealthOptions {
  /**
   * Whether the server also accepts HTTP/1.1 clients. WebSockets need it.
   * @default true
   */
  allowHTTP1?: boolean | undefined;
}
