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
import type { CacheControlOptions } from './caching.ts';
import type { ConnectRequest, ContextSource, Hook, MaybePromise, NextFunction } from './connect.ts';
import type { BudgetOptions, CostOptions } from './cost.ts';
import type { CursorOptions } from './cursors.ts';
import type { DocumentsOptions } from './documents.ts';
import type { ErrorReporter } from './errors.ts';
import type { GraphiQLOption } from './graphiql.ts';
import type { GraphQLLimits } from './limits.ts';
import type { OperationDecision, OperationDetails, StreamedResults } from './operation.ts';
import type { CacheInvalidator, ResponseCacheOptions } from './response-cache.ts';
import type { EventStreamOptions, IncrementalOptions } from './streaming.ts';
import type { ContextDetails, SubscriptionProtocol, WebsocketHandler } from './subscriptions.ts';
import type { UploadOptions } from './uploads.ts';

export type { ErrorDetails, ErrorReporter } from './errors.ts';

/** The request that option functions receive; `state` is always set. */
export interface GraphQLRequest extends ConnectRequest {
  state: Record<string, unknown>;
}

/** A context that is not a function. */
type Plain = object | string | number | boolean | bigint | symbol | null | undefined;

/** The schema, or a function of the request that returns it. */
export type SchemaSource<Req = GraphQLRequest> =
  | GraphQLSchema
  | Hook<[req: Req], MaybePromise<GraphQLSchema>>;

/** Replaces graphql-js's `execute`. Only sockets deliver several results. */
export type ExecuteFunction = (args: ExecutionArgs) => MaybePromise<ExecutionResult | StreamedResults>;

/**
 * Options that HTTP and sockets share. Their functions get the request or, over sockets, the WebSocket. `Source`
 * has the members of both, unless a function declares another type.
 */
export interface GraphQLCoreOptions<Source = ContextSource> {
  /** The context of resolvers: a value, or an (async) function of the request or, over sockets, of the WebSocket. @default none */
  context?: Hook<[source: Source, details: ContextDetails], unknown> | Plain;
  /** The source of root fields, or a function of the request or WebSocket. @default none */
  rootValue?: Hook<[source: Source], unknown> | Plain;
  /** Resolver of fields that have none. @default graphql-js's property resolver */
  fieldResolver?: Hook<Parameters<GraphQLFieldResolver<unknown, unknown>>, unknown> | undefined;
  /** Type resolver of abstract types that have none. @default graphql-js's `__typename` resolver */
  typeResolver?:
    | Hook<Parameters<GraphQLTypeResolver<unknown, unknown>>, MaybePromise<string | undefined>>
    | undefined;
  /** Validation rules in addition to those of the specification. @default [] */
  validationRules?: readonly ValidationRule[] | undefined;
  /** Changes an error after masking; receives the original too. @default the masked error */
  formatError?:
    | ((formatted: GraphQLFormattedError, error: GraphQLError) => GraphQLFormattedError)
    | undefined;
  /**
   * Called once for each unexpected error: one that the client sees as "Internal server error", and one that
   * goes to `next(error)`. `false` reports nothing. It must not throw; an error that it throws is logged.
   * @default logs to the console, except errors that go to `next(error)`
   */
  onError?: false | ErrorReporter | undefined;
  /** Called once for each operation, between validation and execution; may refuse it, or add `extensions` to its response. @default none */
  onOperation?: Hook<[operation: OperationDetails<Source>], MaybePromise<OperationDecision>> | undefined;
  /** Adds signed cursors to the results of subscriptions with a history; clients continue after them. @default none */
  cursors?: CursorOptions | undefined;
  /** Computes the cost of each operation from the schema's directives and refuses expensive ones. @default off */
  cost?: boolean | CostOptions | undefined;
  /** Limits the cost or the number of operations per client and time; more is 429. @default none */
  budget?: BudgetOptions<Source> | undefined;
  /** Whether documents may select `__schema` and `__type`, or a function of the request or WebSocket. @default true */
  introspection?: boolean | Hook<[source: Source], boolean> | undefined;
  /** Whether messages may contain "Did you mean …?", which reveals the schema. @default false when NODE_ENV is production */
  suggestions?: boolean | undefined;
  /**
   * The engine that executes operations: closures that write JSON (the same results for several times less CPU
   * time), graphql-js, or a function that takes `execute`'s arguments. @default 'compiled'
   */
  engine?: 'compiled' | 'graphql-js' | ExecuteFunction | undefined;
  /** Incremental delivery of `@defer` and `@stream` (graphql 17). @default on if the schema declares the directives */
  incremental?: boolean | IncrementalOptions | undefined;
  /**
   * Bytes of memory for prepared documents: their text, their nodes, and their compiled form. One document
   * may take about a tenth of it; a larger one is prepared for each request, or is executed by graphql-js.
   * @default 33554432
   */
  documentCacheBytes?: number | undefined;
  /** Documents that clients request by id: trusted documents, and automatic persisted queries. @default off */
  documents?: DocumentsOptions<Source> | undefined;
}

/** The type of the first argument of `context`: `Req` if it was declared, otherwise what requests and WebSockets share. */
export type SourceOf<Req> = GraphQLRequest extends Req ? ContextSource : Req;

/** The type of the request of the other functions: `Source` if a function declared a request, otherwise the default. */
export type RequestOf<Source> = ConnectRequest & (Source extends ConnectRequest ? Source : GraphQLRequest);

/**
 * Options of `graphqlHTTP`. `Req` is the request that functions declare, such as Express's. `Source` is that of
 * the functions that sockets call too.
 */
export interface GraphQLOptions<Req = GraphQLRequest, Source = SourceOf<Req>>
  extends GraphQLCoreOptions<Source> {
  /** GraphiQL on GET requests that prefer HTML: a boolean, its options, or a function of the request. @default true */
  graphiql?: GraphiQLOption<Req> | undefined;
  /**
   * The allowed methods; any other gets 405 with `Allow` (RFC 9110 §15.5.6). QUERY is a GET with the body of
   * a POST (RFC 10008).
   * @default [GET, POST, HEAD, QUERY]
   */
  methods?: readonly MethodName[] | undefined;
  /**
   * Mutations over GET: `'guarded'` runs them unless the request may come from another site's page or a link
   * previewer, `false` sends 405 as the specification requires, `true` runs them all.
   * @default 'guarded'
   */
  getMutations?: 'guarded' | boolean | undefined;
  /** Origins whose pages count as same-site, such as `https://app.example.com`. No CORS header is sent for them. @default [] */
  trustedOrigins?: readonly string[] | undefined;
  /** Whether pages of other sites may send a GET with a cookie whose response they cannot read; its timing could leak information. @default false */
  crossSiteReads?: boolean | undefined;
  /** Allowed values of `Host`; others get 421. Protects against DNS rebinding if no proxy checks the host. @default any host */
  allowedHosts?: readonly string[] | undefined;
  /** Whether a POST may contain a list of operations; they share the limits of one. @default false */
  batching?: boolean | undefined;
  /** `'draft'` uses 422 for invalid requests and 294 for partial data, for both media types, as the newest draft requires. @default 'legacy' */
  statusCodes?: 'legacy' | 'draft' | undefined;
  /** Whether compressed JSON bodies are accepted (gzip, deflate, br); limits count the decompressed bytes. Otherwise 415. @default false */
  inflate?: boolean | undefined;
  /** Indents responses, always or for some requests; costs a second pass over the response. @default false */
  pretty?: boolean | Hook<[req: Req], boolean> | undefined;
  /** Sends a `Server-Timing` header: milliseconds to prepare, create the context and execute. Anyone can read it. @default false */
  serverTiming?: boolean | undefined;
  /**
   * Caching over HTTP: `@cacheControl` in the schema and `info.cacheControl` of resolvers decide about
   * `Cache-Control` of GET and QUERY responses, which get an ETag. `false`: `no-store`.
   * @default false
   */
  cacheControl?: boolean | CacheControlOptions | undefined;
  /**
   * Stores the results of queries, and sends them to later requests without an execution. The lifetimes are those of
   * `@cacheControl` and `info.cacheControl`, also if the option `cacheControl` is off.
   * @default false
   */
  cache?: boolean | ResponseCacheOptions<Req> | undefined;
  /** Limits of documents and requests. */
  limits?: GraphQLLimits | undefined;
  /** Uploads by the GraphQL multipart request specification; `false`: 415, and nothing is parsed. @default true */
  multipartUploadsEnabled?: boolean | undefined;
  /** Limits of uploads, and how they are received. */
  uploads?: UploadOptions | undefined;
  /**
   * Subscriptions over HTTP, for requests that accept `text/event-stream` or Apollo's multipart protocol;
   * `false`: 400. They have the limits, sharing and statistics of `attachSubscriptions`. They do not call its
   * `onConnect`: with that option they are off unless `eventStreams` is set.
   * @default on
   */
  eventStreams?: false | EventStreamOptions<Req> | undefined;
  /** The subprotocols that `websocketHandler` accepts. @default ['graphql-transport-ws', 'graphql-ws'] */
  subscriptionProtocols?: readonly SubscriptionProtocol[] | undefined;
}

/** A method that `graphqlHTTP` supports. */
export type MethodName = 'GET' | 'POST' | 'HEAD' | 'QUERY';

/** Options of `openapi`. */
export interface OpenApiOptions {
  /** The version of the application's document. Only 3.2 can describe QUERY. @default '3.1' */
  readonly version?: '3.1' | '3.2' | undefined;
}

/** An OpenAPI fragment to merge into an application's document. */
export interface OpenApiFragment {
  readonly paths: Record<string, Record<string, object>>;
  readonly components: { readonly schemas: Record<string, object> };
}

/** The middleware that `graphqlHTTP` returns. It serves WebSockets too. */
export interface GraphQLHandler extends CacheInvalidator {
  (req: IncomingMessage, res: ServerResponse, next?: NextFunction): void;
  /** For a WebSocket route: `app.ws(path, handler.websocketHandler)` of express-ws, or a WebSocketServer's `connection` event. */
  readonly websocketHandler: WebsocketHandler;
  /**
   * Describes the route mounted at `path`, with the current options.
   *
   * @throws TypeError (code `ERR_OPTION`) if `path` is not a path, or for a wrong option.
   */
  openapi(path: string, options?: OpenApiOptions): OpenApiFragment;
}

/** The target of `attachSubscriptions`: the handler that `graphqlHTTP` returned, or a schema. */
export type SubscriptionTarget = GraphQLSchema | GraphQLHandler;
