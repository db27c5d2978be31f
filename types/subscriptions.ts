import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Hook, MaybePromise, NextFunction } from './connect.ts';

/** What we need of a WebSocket: those of `ws` (7 and 8) and of express-ws fit. */
export interface WebSocketLike {
  /** The subprotocol in force, '' for none. */
  readonly protocol: string;
  /** The extensions in force, '' for none. */
  readonly extensions: string;
  readonly readyState: number;
  readonly bufferedAmount: number;
  /** The upgrade request with what middlewares added to it; ours, there until the connection is accepted or refused. */
  request?: IncomingMessage | undefined;
  send(data: string | Uint8Array, options: { binary: boolean }, sent?: () => void): void;
  ping(): void;
  close(code?: number, reason?: string): void;
  terminate(): void;
  on(event: string, listener: (...args: never[]) => void): unknown;
}

/** A subprotocol: `graphql-transport-ws` is today's, `graphql-ws` the legacy one (subscriptions-transport-ws). */
export type SubscriptionProtocol = 'graphql-transport-ws' | 'graphql-ws';

/** The connection as `onConnect` and `disconnect` see it; they may declare the type of its context. */
export interface SubscriptionConnection<Context = unknown> {
  /** What the client sent as the payload of `connection_init`; `{}` when it sent none. */
  readonly connectionParams: Readonly<Record<string, unknown>>;
  /** The context of this connection's operations; hooks may add to it. */
  readonly context: Context;
  readonly protocol: SubscriptionProtocol;
  readonly websocket: WebSocketLike;
}

/** What `onConnect` gets. */
export interface ConnectingSubscription<Context = unknown> extends SubscriptionConnection<Context> {
  /** The upgrade request, with what the middlewares added to it. */
  readonly request: IncomingMessage;
}

/**
 * What `onConnect` may answer: `false` refuses (4403); an object is the payload of `connection_ack`, except for its
 * `expiresAt` (a Date, milliseconds since 1970, or seconds as in a JWT's `exp`): then the socket is closed with 4403, after
 * which clients connect again with a fresh token.
 */
export type ConnectAnswer =
  | boolean
  | undefined
  | ReturnType<() => void>
  | { expiresAt?: Date | number; [key: string]: unknown };

/** An operation as the `share` function sees it. */
export interface SharedOperation {
  readonly query: string;
  readonly operationName: string | undefined;
  readonly variables: Readonly<Record<string, unknown>> | undefined;
}

/** A middleware however it declares its request and response: Express's, Connect's, a plain one. */
export type UpgradeMiddleware = Hook<
  [req: IncomingMessage, res: ServerResponse, next: NextFunction],
  unknown
>;

/** Options of `attachSubscriptions`. */
export interface SubscriptionOptions {
  /** The exact path. @default '/graphql' */
  path?: string | undefined;
  /** The context of resolvers: a value, copied for each connection, or an (async) function of the WebSocket. @default the handler's, or none */
  context?: object | ((websocket: WebSocketLike) => unknown) | undefined;
  /** Accepted subprotocols; others are closed with 4406. @default ['graphql-transport-ws', 'graphql-ws'] */
  subscriptionProtocols?: readonly SubscriptionProtocol[] | undefined;
  /** Called once for each connection, when its `connection_init` arrives; throwing a GraphQLError refuses with its message. @default accepts */
  onConnect?: Hook<[connection: ConnectingSubscription], MaybePromise<ConnectAnswer>> | undefined;
  /** Middlewares run on the upgrade request before it is accepted: sessions, authentication, rate limits. @default [] */
  middleware?: readonly UpgradeMiddleware[] | undefined;
  /** Origins, beside our own host, whose pages may connect: a list, `'*'`, or a function. Others get 403. @default [] */
  allowedOrigins?:
    | '*'
    | readonly string[]
    | Hook<[origin: string, request: IncomingMessage], boolean>
    | undefined;
  /** Kinds of operation that may run over the socket; others get an `error`. @default ['query', 'mutation', 'subscription'] */
  operations?: readonly ('query' | 'mutation' | 'subscription')[] | undefined;
  /** Milliseconds from the upgrade until `connection_init`; later is 4408. Also how long `middleware` may take (503). @default 10000 */
  connectionInitWaitTimeout?: number | undefined;
  /** Milliseconds between pings, and until a silent peer is cut off; legacy clients also get `ka`. 0 switches both off. @default 12000 */
  keepAlive?: number | undefined;
  /** Operations of one connection at a time; one more gets an `error`. @default 100 */
  maxOperations?: number | undefined;
  /** Bytes of one message; more is 1009. @default 1048576 */
  maxPayload?: number | undefined;
  /** Bytes a connection may owe to a slow reader before it is closed with 1013. @default 1048576 */
  maxBufferedBytes?: number | undefined;
  /** `'oldest'`: a slow reader loses its oldest events instead of its connection. @default false */
  drop?: false | 'oldest' | undefined;
  /** UTF-16 units of an operation's id; longer is 4400. @default 256 */
  maxIdLength?: number | undefined;
  /** Connections at a time; one more is answered 503. @default 100000 */
  maxConnections?: number | undefined;
  /** Compresses messages of a KiB and more for clients that offer it: costs memory per socket, and shared writes. @default false */
  perMessageDeflate?: boolean | undefined;
  /**
   * Names who may share: subscriptions equal in document, operation name, variables and this key have one source, one
   * execution and one serialisation per event, made with the context of whoever came first. `undefined` or `null`: private. @default none
   */
  share?:
    | Hook<[context: unknown, operation: SharedOperation], string | number | null | undefined>
    | undefined;
}

/** Counts of the moment. */
export interface SubscriptionStats {
  /** Open sockets. */
  readonly connections: number;
  /** Operations in progress. */
  readonly operations: number;
  /** Source streams being read. */
  readonly sources: number;
  /** Sources told to stop that have not done so yet; a number that grows tells of a source that cannot be cancelled. */
  readonly unreleased: number;
  /** Shared executions. */
  readonly groups: number;
}

/** What `attachSubscriptions` returns. */
export interface Subscriptions {
  /** Refuses new connections (503) and closes the others with 1001, spread over `drain` milliseconds. @default drain 0 */
  close(options?: { drain?: number | undefined }): Promise<void>;
  /** Closes the connections a predicate picks, and says how many. @default code 4403, reason 'Forbidden' */
  disconnect(
    predicate: Hook<[connection: SubscriptionConnection], boolean>,
    code?: number,
    reason?: string,
  ): number;
  stats(): SubscriptionStats;
}

/** Serves a WebSocket that somebody else has accepted. */
export type WebsocketHandler = (websocket: WebSocketLike, request: IncomingMessage) => void;
