import type { IncomingMessage, ServerOptions as NodeHttpOptions, ServerResponse } from 'node:http';
import type {
  Http2ServerRequest,
  Http2ServerResponse,
  ServerOptions as NodeHttp2Options,
  SecureServerOptions as NodeSecureHttp2Options,
} from 'node:http2';
import type { ServerOptions as NodeHttpsOptions } from 'node:https';
import type { Duration, Middleware } from './connect.ts';

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

/** Every option of `http2.createSecureServer`. `allowHTTP1` is on by default: WebSockets need it. */
export interface SecureHttp2Options
  extends NodeSecureHttp2Options<RequestClass, ResponseClass, Http2RequestClass, Http2ResponseClass>,
    OverHttp2,
    HealthOptions {}

/** The state of a server. `draining` begins with `drain()` or with `close()` of the server. */
export type ServerState = 'starting' | 'ready' | 'draining';

/** A check of `createServer`. It fails by throwing, by rejecting, or by returning `false`. */
export type ReadinessCheck = () => unknown;

/** Options of `createServer` for its health. */
export interface HealthOptions {
  /**
   * Checks by name that must pass within 2 seconds before the server is ready, such as a connection to a database. The
   * readiness handler runs them for each request, but at most once a second.
   * @default none
   */
  checks?: Readonly<Record<string, ReadinessCheck>> | undefined;
}

/** Options of `drain()`. */
export interface DrainOptions {
  /**
   * The time in which the server still accepts requests, while the handlers send 503, so that load
   * balancers stop sending requests. A little more than the interval of their probes.
   * @default 0
   */
  delay?: Duration | undefined;
  /**
   * The time after the delay for requests, sockets and event streams to end. The others are then closed.
   * @default 10000
   */
  timeout?: Duration | undefined;
}

/** Bytes in use and the limit of a cache or a budget. */
export interface BudgetStats {
  readonly bytes: number;
  readonly maxBytes: number;
}

/** A cache with its number of entries. */
export interface CacheStats extends BudgetStats {
  readonly entries: number;
}

/** The delay of timers by other work of the event loop in milliseconds, and the share of its time in use. */
export interface EventLoopStats {
  readonly mean: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  /** From 0 to 1. */
  readonly utilization: number;
}

/** The sockets and event streams of the process. */
export interface LiveStats {
  /** Open sockets and event streams. */
  readonly connections: number;
  /** Operations in progress. */
  readonly operations: number;
  /** Source streams that are being read. */
  readonly sources: number;
  /** Source streams whose `return` has not finished. */
  readonly unreleased: number;
  /** Shared executions. */
  readonly groups: number;
}

/** The current numbers of the process, which all its servers share. */
export interface ProcessStats {
  /** Since the first call of a function that reads it, or the last half minute. */
  readonly eventLoop: EventLoopStats;
  /** Bytes of memory, as `process.memoryUsage()`. */
  readonly memory: { readonly rss: number; readonly heapUsed: number; readonly arrayBuffers: number };
  /** Sockets, event streams and their operations. */
  readonly live: LiveStats;
  /** The caches of prepared documents. */
  readonly documents: CacheStats;
  /** The caches of whole responses. */
  readonly responses: CacheStats;
  /** The caches of static files. */
  readonly files: CacheStats;
  /** The memory of uploads in progress. */
  readonly uploads: BudgetStats;
}

/** The current numbers of a server and its process. */
export interface ServerStats extends ProcessStats {
  readonly state: ServerState;
  /** Seconds since the server was created. */
  readonly uptime: number;
  /** Open TCP connections, WebSockets included. */
  readonly connections: number;
}

/** The members that `createServer` adds to the server. */
export interface ServerHealth {
  /**
   * Resolves when the server listens and every check has passed. Rejects if the server cannot listen, or is
   * draining.
   */
  ready(): Promise<void>;
  /** Sends 200, and 503 as soon as draining begins. */
  readonly liveness: Middleware;
  /** Sends 200 if the server listens and every check passes; otherwise, and as soon as draining begins, 503. */
  readonly readiness: Middleware;
  /**
   * Begins draining: the handlers send 503, then the server closes, with the sockets of `attachSubscriptions`.
   * Resolves when every connection is closed.
   */
  drain(options?: DrainOptions): Promise<void>;
  /** Returns the current numbers. */
  stats(): ServerStats;
}
