import type { IncomingMessage, ServerResponse } from 'node:http';
import type {
  ExecutionArgs,
  ExecutionResult,
  GraphQLError,
  GraphQLFieldResolver,
  GraphQLFormattedError,
  GraphQLSchema,
  GraphQLTypeResolver,
  ValidationRule,
} from 'graphql';
import type { ConnectRequest, Hook, MaybePromise, NextFunction } from './connect.ts';
import type { GraphiQLOption } from './graphiql.ts';
import type { SubscriptionProtocol, WebSocketLike, WebsocketHandler } from './subscriptions.ts';
import type { UploadOptions } from './uploads.ts';

/** The request as `context`, `rootValue` and the schema function get it: `state` is always there. */
export interface GraphQLRequest extends ConnectRequest {
  state: Record<string, unknown>;
}

/** What a context may be beside a function. */
type Plain = object | string | number | boolean | bigint | symbol | null | undefined;

/** The schema, or a function of the request that says which one. */
export type SchemaSource<Req = GraphQLRequest> =
  | GraphQLSchema
  | Hook<[req: Req], MaybePromise<GraphQLSchema>>;

/** Replaces graphql-js's `execute`. */
export type ExecuteFunction = (args: ExecutionArgs) => MaybePromise<ExecutionResult>;

/** What one document may ask for; each is checked once per document, before validation. `Infinity` switches one off. */
export interface DocumentLimits {
  /** Lexical tokens. @default 5000 */
  tokens?: number | undefined;
  /** Characters of a document; a twentieth of it is the limit of its lines. @default 100000 */
  characters?: number | undefined;
  /** Levels of nested fields, fragments counted where they are spread; introspection has an allowance of its own. @default 50 */
  depth?: number | undefined;
  /** Fields of one operation, fragments counted at each spread. @default 10000 */
  fields?: number | undefined;
  /** Fields at the root of one operation. @default 100 */
  rootFields?: number | undefined;
  /** Aliases in one operation, fragments counted at each spread. @default 1000 */
  aliases?: number | undefined;
  /** Directives in one operation, fragments counted at each spread. @default 200 */
  directives?: number | undefined;
  /** Fragments of one document. @default 500 */
  fragments?: number | undefined;
  /** Pairs of fields with the same name in the same place, fragments included: validation compares each pair. @default 20000 */
  merges?: number | undefined;
  /** Validation and coercion stop after so many errors; the errors of resolvers are all told. @default 10 */
  errors?: number | undefined;
  /** Values in the variables of one request, lists and objects counted by their members. @default 20000 */
  variables?: number | undefined;
}

/** The limits of a request over HTTP. */
export interface GraphQLLimits extends DocumentLimits {
  /** Bytes of a JSON body, counted after decompression; more is 413. @default 1048576 */
  bodyBytes?: number | undefined;
  /** Milliseconds a body may take to arrive; slower is 408. @default 30000 */
  bodyTimeout?: number | undefined;
  /** Operations in one batch; more is 413. @default 10 */
  batch?: number | undefined;
}

/**
 * Options that HTTP and sockets share. `Req` is the request as hooks declare it, such as Express's; over sockets those that
 * are asked there get the WebSocket.
 */
export interface GraphQLCoreOptions<Req = GraphQLRequest> {
  /** The context of resolvers: a value, or an (async) function of the request or, over sockets, of the WebSocket. @default none */
  context?: Hook<[req: Req], unknown> | Plain;
  /** The value root fields resolve from, or a function of the request. @default none */
  rootValue?: Hook<[req: Req], unknown> | Plain;
  /** Resolver of fields that have none. @default graphql-js's property resolver */
  fieldResolver?: Hook<Parameters<GraphQLFieldResolver<unknown, unknown>>, unknown> | undefined;
  /** Type resolver of abstract types that have none. @default graphql-js's `__typename` resolver */
  typeResolver?:
    | Hook<Parameters<GraphQLTypeResolver<unknown, unknown>>, MaybePromise<string | undefined>>
    | undefined;
  /** Validation rules beside those of the specification. @default [] */
  validationRules?: readonly ValidationRule[] | undefined;
  /** Last word on an error, after masking; gets the original too. @default the masked error */
  formatError?:
    | ((formatted: GraphQLFormattedError, error: GraphQLError) => GraphQLFormattedError)
    | undefined;
  /**
   * Called once for each unexpected error: one that the client sees as "Internal server error", and one that goes to
   * `next(error)`. `false` reports nothing. It must not throw; what it throws is logged. @default logs to the console,
   * except errors that go to `next(error)`
   */
  onError?: false | ErrorReporter | undefined;
  /** Whether `__schema` and `__type` may be asked, or a function of the request that says so. @default true */
  introspection?: boolean | Hook<[req: Req], boolean> | undefined;
  /** Whether errors may say "Did you mean …?", which tells of the schema. @default false when NODE_ENV is production */
  suggestions?: boolean | undefined;
  /**
   * How operations are executed: compiled into closures that write JSON (the same answers, several times cheaper), by
   * graphql-js, or by a function that takes `execute`'s arguments. @default 'compiled'
   */
  engine?: 'compiled' | 'graphql-js' | ExecuteFunction | undefined;
  /**
   * Bytes of memory for prepared documents: their text, their nodes, and their compiled form. One document may take about a
   * tenth of it; a larger one is prepared for each request, or is executed by graphql-js. @default 33554432
   */
  documentCacheBytes?: number | undefined;
}

/** Where an unexpected error occurred. */
export interface ErrorDetails {
  readonly transport: 'http' | 'websocket';
  /** The name of the operation; undefined for an anonymous one, and before a document is parsed. */
  readonly operationName: string | undefined;
  /** The response path of the field; undefined outside of the execution of fields. */
  readonly path: readonly (string | number)[] | undefined;
  /** The request; over WebSocket the upgrade request, while it is retained. */
  readonly request: IncomingMessage | undefined;
  /** The WebSocket; undefined over HTTP. */
  readonly socket: WebSocketLike | undefined;
}

/** Reports an unexpected error to the operator. */
export type ErrorReporter = (error: unknown, details: ErrorDetails) => unknown;

/** Options of `graphqlHTTP`. */
export interface GraphQLOptions<Req = GraphQLRequest> extends GraphQLCoreOptions<Req> {
  /** The IDE on GET where HTML is preferred: a boolean, its options, or a function of the request. @default true */
  graphiql?: GraphiQLOption<Req> | undefined;
  /** The methods that are answered; any other is 405 with `Allow` (RFC 9110 §15.5.6). @default [GET, POST, HEAD] */
  methods?: readonly MethodName[] | undefined;
  /**
   * Mutations over GET: `'guarded'` runs them unless the request may come from another site's page, `false` answers 405 as
   * the specification asks, `true` runs them all.
   * @default 'guarded'
   */
  getMutations?: 'guarded' | boolean | undefined;
  /** Origins whose pages count as our own, as `https://app.example.com`. No CORS header is sent for them. @default [] */
  trustedOrigins?: readonly string[] | undefined;
  /** Whether pages of other sites may read over GET with a cookie and without CORS, where only timing tells them something. @default false */
  crossSiteReads?: boolean | undefined;
  /** The values of `Host` that are served, others are 421: against DNS rebinding where nothing in front checks it. @default any host */
  allowedHosts?: readonly string[] | undefined;
  /** Whether a POST may hold a list of operations; they share the limits of one. @default false */
  batching?: boolean | undefined;
  /** `'draft'` uses 422 for what is not valid and 294 for partial data, for both media types, as the newest draft asks. @default 'legacy' */
  statusCodes?: 'legacy' | 'draft' | undefined;
  /** Whether compressed JSON bodies are taken (gzip, deflate, br), counted after decompression; else they are 415. @default false */
  inflate?: boolean | undefined;
  /** Indents answers, always or for some requests; costs a second pass over the answer. @default false */
  pretty?: boolean | Hook<[req: Req], boolean> | undefined;
  /** Sends a `Server-Timing` header: milliseconds to prepare, make the context and execute. Tells outsiders about timing. @default false */
  serverTiming?: boolean | undefined;
  /** What a request may ask for. */
  limits?: GraphQLLimits | undefined;
  /** Uploads by the GraphQL multipart request specification; `false` answers them 415 with nothing parsed. @default true */
  multipartUploadsEnabled?: boolean | undefined;
  /** Limits of uploads, and how they are received. */
  uploads?: UploadOptions | undefined;
  /** The subprotocols that `websocketHandler` accepts. @default ['graphql-transport-ws', 'graphql-ws'] */
  subscriptionProtocols?: readonly SubscriptionProtocol[] | undefined;
}

/** The methods that `graphqlHTTP` answers. */
export type MethodName = 'GET' | 'POST' | 'HEAD';

/** An OpenAPI 3.1 fragment: to be merged into an application's document. */
export interface OpenApiFragment {
  readonly paths: Record<string, Record<string, object>>;
  readonly components: { readonly schemas: Record<string, object> };
}

/** What `graphqlHTTP` returns: a middleware, which serves WebSockets too. */
export interface GraphQLHandler {
  (req: IncomingMessage, res: ServerResponse, next?: NextFunction): void;
  /** For a WebSocket route: `app.ws(path, handler.websocketHandler)` of express-ws, or a WebSocketServer's `connection` event. */
  readonly websocketHandler: WebsocketHandler;
  /**
   * Describes the route as it is mounted at `path`, by the options in force.
   *
   * @throws TypeError (code `ERR_OPTION`) for what is no path.
   */
  openapi(path: string): OpenApiFragment;
}

/** The target of `attachSubscriptions`: the handler that `graphqlHTTP` returned, or a schema. */
export type SubscriptionTarget = GraphQLSchema | GraphQLHandler;
