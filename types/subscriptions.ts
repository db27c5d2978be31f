import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Caller } from './caller.ts';
import type {
  ByteSize,
  ContextSource,
  Duration,
  Hook,
  MaybePromise,
  NextFunction,
  OperationTransport,
  WebSocketLike,
} from './connect.ts';

export type { ErrorDetails, ErrorReporter, WebSocketLike } from './connect.ts';

/**
 * The WebSocket that `context` functions get: with `headers`, `url`, `socket`, `state` and `get` of the upgrade request,
 * and the members that middleware has added to it, such as `session` and `user`. A function that reads them works
 * over HTTP and over sockets.
 */
export interface ContextWebSocket extends WebSocketLike, ContextSource {
  /** Returns a header of the upgrade request, as `req.get(name)` of Express. */
  get(name: string): string | undefined;
}

/** The second argument of `context` functions. */
export interface ContextDetails<C extends Caller = Caller> {
  readonly transport: OperationTransport;
  /** The payload of the client's `connection_init`; undefined over HTTP. */
  readonly connectionParams: Readonly<Record<string, unknown>> | undefined;
  /** The operation; undefined for the context of a connection, which `onConnect` gets. */
  readonly operation: SharedOperation | undefined;
  /** What the option `caller` has returned: null if nobody is signed in, undefined without the option. */
  readonly caller: C | null | undefined;
  /** The response of an HTTP request, for example to set a cookie; undefined on other transports. */
  readonly response: ServerResponse | undefined;
}

/** A subprotocol: `graphql-transport-ws` is the current one, `graphql-ws` the legacy one (subscriptions-transport-ws). */
export type SubscriptionProtocol = 'graphql-transport-ws' | 'graphql-ws';

/** A connection as `onConnect` and `disconnect` see it. Hooks may declare the type of its context. */
export interface SubscriptionConnection<Context = unknown> {
  /** The payload of the client's `connection_init`; `{}` if it sent none. */
  readonly connectionParams: Readonly<Record<string, unknown>>;
  /** The context of this connection; members that `onConnect` adds to it are members of the context of each operation. */
  readonly context: Context;
  readonly protocol: SubscriptionProtocol;
  readonly websocket: WebSocketLike;
}

/** How a connection has ended. */
export interface SubscriptionEnd {
  readonly code: number;
  readonly reason: string;
  /** Whether the connection was accepted. */
  readonly accepted: boolean;
}

/** A protocol of event streams: GraphQL over server-sent events, or Apollo's multipart subscription protocol. */
export type StreamProtocol = 'graphql-sse' | 'multipart';

/** A streaming response of `graphqlHTTP` as `disconnect` sees it. */
export interface StreamConnection<Context = unknown> {
  /** Always empty. */
  readonly connectionParams: Readonly<Record<string, unknown>>;
  /** The context of the operation. */
  readonly context: Context;
  readonly protocol: StreamProtocol;
  readonly websocket: undefined;
  /** The request that opened the stream. */
  readonly request: IncomingMessage;
}

/** The argument of `onConnect`. */
export interface ConnectingSubscription<Context = unknown> extends SubscriptionConnection<Context> {
  /** The upgrade request with the members that middleware added. */
  readonly request: IncomingMessage;
}

/**
 * The return value of `onConnect`. `false` refuses the connection (4403). An object is the payload of
 * `connection_ack`, except for its `expiresAt`: a Date, milliseconds since 1970, or seconds as in a JWT's
 * `exp`. At that time the socket is closed with 4403, and clients connect again with a new token.
 */
export type ConnectResult =
  | boolean
  | undefined
  | ReturnType<() => void>
  | { expiresAt?: Date | number; [key: string]: unknown };

/** An operation as the functions `share` and `context` see it. */
export interface SharedOperation {
  readonly query: string;
  readonly operationName: string | undefined;
  readonly variables: Readonly<Record<string, unknown>> | undefined;
}

/** A middleware of Express, of Connect or of `node:http`, with any declared types of request and response. */
export type UpgradeMiddleware = Hook<
  [req: IncomingMessage, res: ServerResponse, next: NextFunction],
  unknown
>;

/** The option `limits` of `attachSubscriptions`. All but `connections` apply to each connection. */
export interface SubscriptionLimits {
  /** Concurrent operations, which together may have 4 MiB of documents and variables; one more gets an `error`. @default 100 */
  operations?: number | undefined;
  /** Bytes of one message; the sender of a larger one is closed with 1009. @default 1048576 (1 MiB) */
  messageBytes?: ByteSize | undefined;
  /** Bytes queued for a slow client before it is closed with 1013. @default 1048576 (1 MiB) */
  bufferedBytes?: ByteSize | undefined;
  /** Concurrent connections of all clients; one more gets 503. @default 100000 */
  connections?: number | undefined;
  /** The time from the upgrade until `connection_init`; then 4408. Also the limit of `middleware`; then 503. @default 10000 */
  initTimeout?: Duration | undefined;
}

/** Options of `attachSubscriptions`. The hooks declare the type of the context. */
export interface SubscriptionOptions<Context = unknown> {
  /** The path, with or without a trailing slash. @default '/graphql' */
  path?: string | undefined;
  /** The context of resolvers: a value, copied for each connection, or an (async) function of the WebSocket. @default the handler's, or none */
  context?:
    | (Context & object)
    | ((websocket: ContextWebSocket, details: ContextDetails) => MaybePromise<Context>)
    | undefined;
  /**
   * When a `context` function is called: for the connection and each operation, also for each event of a
   * subscription (in event streams too), or for the connection only.
   * @default 'operation'
   */
  contextPer?: 'operation' | 'event' | 'connection' | undefined;
  /** Called once per connection, when `connection_init` arrives; a thrown GraphQLError refuses with its message (4403). @default accepts */
  onConnect?: Hook<[connection: ConnectingSubscription<Context>], MaybePromise<ConnectResult>> | undefined;
  /** Called once for each connection, when it has closed, whoever closed it, and its `onConnect` has returned. @default none */
  onClose?: Hook<[connection: SubscriptionConnection<Context>, end: SubscriptionEnd], unknown> | undefined;
  /** Middleware that runs on the upgrade request before it is accepted: sessions, authentication, rate limits. @default [] */
  middleware?: readonly UpgradeMiddleware[] | undefined;
  /** Origins whose pages may connect, in addition to our own host: a list, `'*'`, or a function. Others get 403. @default the handler's, or [] */
  allowedOrigins?:
    | '*'
    | readonly string[]
    | Hook<[origin: string, request: IncomingMessage], boolean>
    | undefined;
  /**
   * The time between pings, and until a silent peer is terminated; legacy clients also get `ka`, and event streams of the
   * handler what keeps them open through proxies. `false`: none of these. @default 12000
   */
  ping?: Duration | false | undefined;
  /** Limits of connections and of their operations. */
  limits?: SubscriptionLimits | undefined;
  /**
   * `'shared'`: compresses the messages to clients that offer it (RFC 7692) without context takeover, so that an event is
   * compressed once for all sockets: events of several sockets from 128 bytes, other messages from 1 KiB.
   * @default false
   */
  perMessageDeflate?: false | 'shared' | undefined;
  /**
   * Returns the share key of a subscription. Subscriptions with equal document, operation name, variables and
   * key have one source, one execution and one serialisation per event, with the context of the first one.
   * `undefined` or `null`: private.
   * @default none
   */
  share?:
    | Hook<[context: Context, operation: SharedOperation], string | number | null | undefined>
    | undefined;
}

/** The current numbers of the sockets of one server and of the event streams of its handler. */
export interface SubscriptionStats {
  /** Open sockets and event streams. */
  readonly connections: number;
  /** Operations in progress. */
  readonly operations: number;
  /** Source streams that are being read. */
  readonly sources: number;
  /** Source streams whose `return` was called and has not finished. A growing number means a source that cannot be cancelled. */
  readonly unreleased: number;
  /** Shared executions. */
  readonly groups: number;
}

/** The return value of `attachSubscriptions`. */
export interface Subscriptions {
  /** Refuses new connections (503) and closes the others with 1001, spread over the time `drain`. @default drain 0 */
  close(options?: { drain?: Duration | undefined }): Promise<void>;
  /**
   * Closes the connections that the predicate selects and returns their number. Event streams end without a
   * code. Connections that are not accepted yet have no complete context: for them an exception of the
   * predicate counts as `false`, and it decides again when `onConnect` has accepted the socket. It also decides about
   * event streams whose context is being created.
   * @default code 4403, reason 'Forbidden'
   */
  disconnect<Context = unknown>(
    predicate: Hook<[connection: SubscriptionConnection<Context> | StreamConnection<Context>], boolean>,
    code?: number,
    reason?: string,
  ): number;
  /** Returns the current numbers. */
  stats(): SubscriptionStats;
}

/** Serves a WebSocket that another library has accepted. */
export type WebsocketHandler = (websocket: WebSocketLike, request: IncomingMessage) => void;
