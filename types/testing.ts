import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Hook, MaybePromise, NextFunction } from './connect.ts';
import type { EventTransport } from './pubsub.ts';

/**
 * The target of `inject` and `subscribe`: a handler that `graphqlHTTP` or `staticFiles` returned, any other
 * middleware, an Express app, or a server that need not listen.
 */
export type InjectTarget =
  | Server
  | Hook<[req: IncomingMessage, res: ServerResponse, next: NextFunction], unknown>;

/** A parsed document. The types of its result and variables are known if a code generator has added them. */
export interface TypedDocument<Data, Variables> {
  readonly kind: string;
  readonly definitions: readonly object[];
  /** The member that `TypedDocumentNode` has for its types. */
  readonly __apiType?: ((variables: Variables) => Data) | undefined;
}

/** The members that all requests of `inject` and `subscribe` have. */
export interface InjectedConnection {
  /** The path with its query string. @default '/graphql' for an operation, otherwise '/' */
  path?: string | undefined;
  /** The headers, in addition to `Host: localhost`. */
  headers?: Readonly<Record<string, string | number | readonly string[] | undefined>> | undefined;
  /** The values of the `Cookie` header by name, such as `cookies` of an earlier response. They are sent as they are. */
  cookies?: Readonly<Record<string, string>> | undefined;
  /** The address of the client, `req.socket.remoteAddress`. @default '127.0.0.1' */
  remoteAddress?: string | undefined;
  /** Disconnects the client. The promise, or the next result, rejects with the reason of the signal. */
  signal?: AbortSignal | undefined;
}

/** A GraphQL operation as `inject` and `subscribe` send it. */
export interface InjectedOperation<Data, Variables> extends InjectedConnection {
  /** The text of the document, or a parsed document. */
  query: string | TypedDocument<Data, Variables>;
  variables?: Variables | undefined;
  operationName?: string | undefined;
  extensions?: Readonly<Record<string, unknown>> | undefined;
}

/**
 * An operation over HTTP. Each `File` or `Blob` among the variables is uploaded by the GraphQL multipart
 * request specification.
 */
export interface OperationRequest<Data, Variables> extends InjectedOperation<Data, Variables> {
  /** @default 'POST' */
  method?: 'GET' | 'POST' | undefined;
}

/** The body of an injected request. Objects and arrays are sent as JSON, iterables chunk by chunk. */
export type InjectedBody =
  | string
  | ArrayBuffer
  | ArrayBufferView
  | Blob
  | FormData
  | URLSearchParams
  | AsyncIterable<string | Uint8Array>
  | object;

/** Any other request. */
export interface HttpRequest extends InjectedConnection {
  /** @default 'POST' with a body, otherwise 'GET' */
  method?: string | undefined;
  /** It has the `Content-Type` that `fetch` sends for it, or `application/json`. */
  body?: InjectedBody | undefined;
}

/** A response that was received completely. */
export interface InjectedResponse {
  readonly status: number;
  readonly statusText: string;
  readonly headers: IncomingHttpHeaders;
  /** The headers as pairs of name and value, in their order and spelling. */
  readonly rawHeaders: readonly (readonly [name: string, value: string])[];
  readonly trailers: Readonly<Record<string, string | undefined>>;
  /** The values of the cookies that the response sets, by name, as they are; without those that it deletes. */
  readonly cookies: Readonly<Record<string, string>>;
  /** The bytes of the body, with the coding of `Content-Encoding`. */
  readonly body: Buffer;
  /** The body as UTF-8. */
  readonly text: string;
  /**
   * Parses the body as JSON.
   *
   * @throws Error with the status and the start of the body if it is not JSON
   */
  json<Value = unknown>(): Value;
}

/** An error of a GraphQL result. */
export interface ResultError {
  readonly message: string;
  readonly locations?: readonly { readonly line: number; readonly column: number }[];
  readonly path?: readonly (string | number)[];
  readonly extensions?: Readonly<Record<string, unknown>>;
}

/** The result of an operation, or of one event of a subscription. */
export interface OperationResult<Data> {
  readonly data?: Data | null;
  readonly errors?: readonly ResultError[];
  readonly extensions?: Readonly<Record<string, unknown>>;
}

/** The response to an operation, with the members of the result if its body is one. */
export interface OperationResponse<Data> extends InjectedResponse, OperationResult<Data> {}

/** A subscription, or another operation, as `subscribe` sends it. */
export interface SubscribeRequest<Data, Variables> extends InjectedOperation<Data, Variables> {
  /** The payload of `connection_init`. */
  connectionParams?: Readonly<Record<string, unknown>> | undefined;
  /** `'event-stream'` sends a POST that accepts server-sent events. An Express app supports only these. @default 'websocket' */
  transport?: 'websocket' | 'event-stream' | undefined;
}

/**
 * The results of an operation. Reading applies backpressure like a client: the server waits, or drops events, for
 * one that does not read. Leaving a `for await` loop ends the operation and disconnects the client.
 */
export interface SubscriptionResults<Data> extends AsyncIterableIterator<OperationResult<Data>> {
  /** The payload of `connection_ack`. */
  readonly acknowledgement: unknown;
  return(): Promise<IteratorResult<OperationResult<Data>, undefined>>;
}

/** Creates a transport that is not open, as another process would. All of them use the same broker. */
export type TransportFactory = () => MaybePromise<EventTransport>;

/** Options of `testTransport`. */
export interface TestTransportOptions {
  /**
   * Breaks the connections of the transports, for example by a proxy or by killing the server's sessions. Events are
   * published all the time. It resolves when connections are possible again.
   * @default none: interruptions are not tested
   */
  interrupt?: (() => unknown) | undefined;
  /** Publishes with the transport that subscribes, for one that serves a single process. @default false */
  single?: boolean | undefined;
}
