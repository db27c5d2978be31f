import type { IncomingMessage, ServerResponse } from 'node:http';
import type {
  ExecutionArgs,
  ExecutionResult,
  GraphQLError,
  GraphQLFieldResolver,
  GraphQLFormattedError,
  GraphQLResolveInfo,
  GraphQLSchema,
  GraphQLTypeResolver,
  ValidationRule,
} from 'graphql';
import type { AuthOptions } from './auth.ts';
import type { CacheControlOptions } from './caching.ts';
import type { Caller, CallerFunction, UserOptions } from './caller.ts';
import type {
  ByteSize,
  ConnectRequest,
  ContextSource,
  Duration,
  ErrorDetails,
  ErrorReporter,
  Hook,
  MaybePromise,
  NextFunction,
} from './connect.ts';
import type { Executed, ExecuteRequest } from './execute.ts';
import type { GraphiQLOption } from './graphiql.ts';
import type { IdempotencyOptions } from './idempotency.ts';
import type {
  OperationDecision,
  OperationDetails,
  ResultAdditions,
  ResultDetails,
  StreamedResults,
} from './operation.ts';
import type { RedisSource } from './redis.ts';
import type { CacheInvalidator, ResponseCacheOptions } from './response-cache.ts';
import type { ContextDetails, SubscriptionProtocol, WebsocketHandler } from './subscriptions.ts';
import type { UploadOptions } from './uploads.ts';
import type { SchemaUsage, UsageOptions } from './usage.ts';

export type { ErrorDetails, ErrorReporter } from './connect.ts';

/** What `formatError` gets besides the error. */
export interface FormatErrorDetails<Context = unknown, C extends Caller = Caller> extends ErrorDetails {
  /** The context of the operation; undefined before there is one. */
  readonly context: Context | undefined;
  /** What the option `caller` has returned: null if nobody is signed in, undefined without the option. */
  readonly caller: C | null | undefined;
}

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

/**
 * A batch resolver, `extensions: { resolveMany }` of a field of an object type: called once for all objects (`parents`) of
 * an execution that reach the field in one turn of the event loop, which are usually all objects of a list. The same use
 * of the field in the document has the same `args` for all of them; `info` is that of the first object, and so is
 * `info.path`. Returns one value for each parent, in their order: null where there is none. An `Error` in place of a value
 * is the error of that parent's field; an exception, or an array of another length, is the error of all of them.
 */
export type ResolveMany<
  Parent = unknown,
  Value = unknown,
  Context = unknown,
  Args = Record<string, unknown>,
> = (
  parents: readonly Parent[],
  args: Args,
  context: Context,
  info: GraphQLResolveInfo,
) => MaybePromise<readonly (MaybePromise<Value | null | undefined> | Error)[]>;

/**
 * The function that `resolveReferences` takes: loads all entities of a type that a router asks for in one `_entities`. Returns
 * one entity for each reference, in their order: null for one that does not exist, and an `Error` for one that fails. If it
 * throws or returns an array of another length, all of them fail. `info` is that of `_entities`.
 */
export type ResolveReferences<Reference, Entity, Context = unknown> = (
  references: readonly Reference[],
  context: Context,
  info: GraphQLResolveInfo,
) => MaybePromise<readonly (MaybePromise<Entity | null | undefined> | Error)[]>;

/** Replaces graphql-js's `execute`. Only sockets deliver several results. */
export type ExecuteFunction = (args: ExecutionArgs) => MaybePromise<ExecutionResult | StreamedResults>;

/**
 * Options that HTTP and sockets share. Their functions get the request or, over sockets, the WebSocket. `Source`
 * has the members of both, unless a function declares another type.
 */
export interface GraphQLCoreOptions<Source = ContextSource, Context = unknown, C extends Caller = Caller> {
  /** The context of resolvers: a value, or an (async) function of the request or, over sockets, of the WebSocket. @default none */
  context?: Hook<[source: Source, details: ContextDetails<C>], MaybePromise<Context>> | (Context & Plain);
  /**
   * Says who sends a request, or opens a WebSocket: asked once for each of them, before the context, and for each event
   * if the context is per event. `context`, `auth`, `budget`, `clientLimits`, `responseCache`, `idempotency`, `cursors` and
   * `usage` use its answer. @default unknown
   */
  caller?: CallerFunction<Source, C> | undefined;
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
  /**
   * Returns what clients see of an error: gets the masked error, the original one, and details. If it fails, the failure is
   * reported, and clients see a masked error. @default the masked error
   */
  formatError?:
    | ((
        formatted: GraphQLFormattedError,
        error: GraphQLError,
        details: FormatErrorDetails<Context, C>,
      ) => GraphQLFormattedError)
    | undefined;
  /**
   * Called once for each unexpected error: one that the client sees as "Internal server error", and one that
   * goes to `next(error)`. `false` reports nothing. It must not throw; an error that it throws is logged.
   * @default logs to the console, except errors that go to `next(error)`
   */
  onError?: false | ErrorReporter | undefined;
  /** Called once for each operation, between validation and execution; may refuse it, or add `extensions` to its response. @default none */
  onOperation?:
    | Hook<[operation: OperationDetails<Source, Context, C>], MaybePromise<OperationDecision>>
    | undefined;
  /**
   * Called with each result of a query or mutation before it is sent, including those of the response cache and the first
   * part of an incremental one. It may add `extensions` and `headers`. If it fails, the failure is reported, and the result
   * is sent without them. @default none
   */
  onResult?: Hook<[result: ResultDetails<Source, Context, C>], MaybePromise<ResultAdditions>> | undefined;
  /**
   * Adds signed cursors to the results of subscriptions with a history; clients continue after them. A cursor is valid for
   * its user, or with `share` for its key; without either for all. @default none
   */
  cursors?: CursorOptions<Source, Context> | undefined;
  /**
   * Enforces `@authenticated`, `@requiresScopes` and `@policy` of the schema. `true` uses the scopes of the option `caller`.
   * `false` says that something else enforces them, such as a router. Without the option, a schema with these directives is
   * an error in development and a warning in production. @default off
   */
  auth?: boolean | AuthOptions<Source, Context> | undefined;
  /**
   * Computes the cost of each operation from the schema's directives, refuses expensive ones, and sends the cost in the
   * header `GraphQL-Cost`, such as `42;max=1000`. @default off
   */
  cost?: boolean | CostOptions | undefined;
  /** Limits the cost or the number of operations per client and time; more is 429. @default none */
  budget?: BudgetOptions<Source, Context> | undefined;
  /**
   * Limits what each client may have open and start over HTTP, sockets and event streams, and enforces `@rateLimit` of
   * the schema: `true` does only that. `false` says that other code enforces it. @default none
   */
  clientLimits?: boolean | ClientLimitOptions<Source, C> | undefined;
  /**
   * Executes a repeated mutation once: a repetition with the same key gets the stored result, on all transports. Needs the
   * option `caller`, or its own `user`. @default off
   */
  idempotency?: boolean | IdempotencyOptions<Source, Context> | undefined;
  /**
   * Whether documents may select `__schema` and `__type`, or a function of the request or WebSocket. With `false`, and
   * unless `NODE_ENV` is `development` or `test`, no message contains "Did you mean …?", which reveals the schema.
   * @default true
   */
  introspection?: boolean | Hook<[source: Source], boolean> | undefined;
  /**
   * The engine that executes operations: closures that write JSON (the same results for several times less CPU
   * time), graphql-js, or a function that takes `execute`'s arguments. @default 'compiled'
   */
  engine?: 'compiled' | 'graphql-js' | ExecuteFunction | undefined;
  /**
   * The time that an operation, or an event of a subscription, may take. Then its resolvers are aborted
   * (`info.getAbortSignal()`), later fields of a mutation do not start, and the client gets an error with the code
   * `OPERATION_TIMEOUT` (504 with `application/graphql-response+json`). `false`: no limit. A subscription may stay open.
   * @default 60000
   */
  timeout?: Duration | false | undefined;
  /**
   * Incremental delivery of `@defer` and `@stream` (graphql 17). The format for clients that name none: of the
   * specification's drafts since 2024 (`'v0.2'`, with `pending` and `id`), or of 2022 (`'20220824'`, with `path`).
   * `true`: the first, and the second for documents with `@stream`.
   * @default on if the schema declares the directives
   */
  incremental?: boolean | 'v0.2' | '20220824' | undefined;
  /** Documents that clients request by id (trusted documents, automatic persisted queries), and the memory for prepared ones. @default {} */
  documents?: DocumentsOptions<Source> | undefined;
}

/** The type of the first argument of `context`: `Req` if it was declared, otherwise what requests and WebSockets share. */
export type SourceOf<Req> = GraphQLRequest extends Req ? ContextSource : Req;

/** The type of the request of the other functions: `Source` if a function declared a request, otherwise the default. */
export type RequestOf<Source> = ConnectRequest & (Source extends ConnectRequest ? Source : GraphQLRequest);

/** A response whose status the option `statusCodes` may change. */
export interface ResponseStatus {
  /** The status without the function. */
  readonly status: number;
  /** The media type of the response. */
  readonly type: string;
  /** `data`: no errors. `partial`: errors and a member `data`, which may be null. `refused`: not executed. */
  readonly kind: 'data' | 'partial' | 'refused';
  /** The errors before masking. */
  readonly errors: readonly GraphQLError[];
}

/**
 * Options of `graphqlHTTP`. `Req` is the request that functions declare, such as Express's. `Source` is that of
 * the functions that sockets call too.
 */
export interface GraphQLOptions<
  Req = GraphQLRequest,
  Source = SourceOf<Req>,
  Context = unknown,
  C extends Caller = Caller,
> extends GraphQLCoreOptions<Source, Context, C> {
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
  /** Origins whose pages count as same-site, such as `https://app.example.com`, also for sockets and reads with cookies. No CORS header is sent for them. @default [] */
  allowedOrigins?: readonly string[] | undefined;
  /** Allowed values of `Host`; others get 421. Protects against DNS rebinding if no proxy checks the host. @default any host */
  allowedHosts?: readonly string[] | undefined;
  /**
   * Whether a POST may contain a list of operations, or of variables for one; they share the limits of one. A number is
   * the most operations of a list, `true` is 10; more is 413.
   * @default false
   */
  batching?: boolean | number | undefined;
  /**
   * `'spec'` uses 422 for invalid requests and 294 for partial data, for both media types, as the draft of GraphQL over HTTP requires.
   * `'apollo'` uses 400 for invalid documents and variables also with `application/json`, as Apollo Server. A function
   * returns the status of a response, or undefined to keep it.
   * @default 'legacy'
   */
  statusCodes?: 'legacy' | 'spec' | 'apollo' | ((response: ResponseStatus) => number | undefined) | undefined;
  /**
   * Caching over HTTP: `@cacheControl` in the schema and `info.cacheControl` of resolvers decide about
   * `Cache-Control` of GET and QUERY responses, which get an ETag. `false`: `no-store`.
   * @default false
   */
  httpCache?: boolean | CacheControlOptions | undefined;
  /**
   * Stores the results of queries, and sends them to later requests without an execution. The lifetimes are those of
   * `@cacheControl` and `info.cacheControl`, also if the option `httpCache` is off.
   * @default false
   */
  responseCache?: boolean | ResponseCacheOptions<Req, Context> | undefined;
  /**
   * Compresses results and streams for clients that accept a coding. `true` leaves out responses to requests with cookies, or
   * other credentials that browsers add themselves, unless a cache policy declares them public: their length may tell other
   * sites what they contain (BREACH). `'all'` compresses them too.
   * @default false
   */
  compress?: boolean | 'all' | undefined;
  /**
   * Counts which clients use which fields, arguments, input fields and enum values.
   * @default off
   */
  usage?: boolean | UsageOptions<Source, Context> | undefined;
  /** Limits of documents and requests. */
  limits?: GraphQLLimits | undefined;
  /** Uploads by the GraphQL multipart request specification; `false`: 415, and nothing is parsed. @default true */
  multipartUploadsEnabled?: boolean | undefined;
  /** Limits of uploads, and how they are received; `false` is `multipartUploadsEnabled: false`. */
  uploads?: UploadOptions | false | undefined;
  /**
   * Subscriptions over HTTP, for requests that accept `text/event-stream` or Apollo's multipart protocol;
   * `false`: 400. They have the `ping`, limits, sharing and statistics of `attachSubscriptions`. They do not call its
   * `onConnect`: with that option they are off unless `eventStreams` is `true`.
   * @default on
   */
  eventStreams?: boolean | undefined;
  /** Accepted subprotocols of WebSockets; a client that offers none of them is closed with 4406. @default ['graphql-transport-ws', 'graphql-ws'] */
  subscriptionProtocols?: readonly SubscriptionProtocol[] | undefined;
}

/** A method that `graphqlHTTP` supports. */
export type MethodName = 'GET' | 'POST' | 'HEAD' | 'QUERY';

/** The middleware that `graphqlHTTP` returns. It serves WebSockets too. */
export interface GraphQLHandler<Context = unknown, C extends Caller = Caller> extends CacheInvalidator {
  (req: IncomingMessage, res: ServerResponse, next?: NextFunction): void;
  /** For a WebSocket route: `app.ws(path, handler.websocketHandler)` of express-ws, or a WebSocketServer's `connection` event. */
  readonly websocketHandler: WebsocketHandler;
  /**
   * Executes an operation without a request over HTTP, for example in a job or while you render a page, with the same checks,
   * limits and masking. Resolves with the result, which contains the errors, or with an async iterator of the results of a
   * subscription. Rejects if the signal ends it.
   * @throws TypeError (code `ERR_OPTION`) if the request has neither a `query` nor a `documentId`.
   */
  execute(request: ExecuteRequest<Context, C>): Promise<Executed>;
  /**
   * Uses another schema for new operations, as soon as the cached and trusted documents are prepared for it. If the schema is
   * invalid, or if the handler was created with a function, it rejects and keeps the earlier one. Subscriptions continue with
   * the earlier schema for the option `timeout`, or a minute without a limit. Then their sockets are closed with 1012 and their
   * event streams end, so that clients reconnect.
   */
  replace(schema: GraphQLSchema): Promise<void>;
  /** The counts of the option `usage`; without it there are none. */
  readonly usage: SchemaUsage;
}

/** The target of `attachSubscriptions`: the handler that `graphqlHTTP` returned, or a schema. */
export type SubscriptionTarget<Context = unknown> = GraphQLSchema | GraphQLHandler<Context>;

/** Limits of one document, checked once per document, before validation. `Infinity` means no limit. */
export interface DocumentLimits {
  /**
   * Lexical tokens. Per token of the limit, a document may have 20 characters (at least 100000) and one line (at least 5000);
   * per ten tokens, one fragment.
   * @default 5000
   */
  tokens?: number | undefined;
  /**
   * Levels of nested fields, fragments counted where they are spread; introspection has its own limit.
   * @default 50
   */
  depth?: number | undefined;
  /**
   * Fields of one operation, fragments counted at each spread. Validation compares fields with the same name in the same
   * place: at most two pairs per field of the limit.
   * @default 10000
   */
  fields?: number | undefined;
  /** Fields at the root of one operation. @default 100 */
  rootFields?: number | undefined;
  /**
   * Aliases in one operation, fragments counted at each spread. It may have a fifth as many directives, at least 200.
   * @default 1000
   */
  aliases?: number | undefined;
}

/** The limits of a request over HTTP. */
export interface GraphQLLimits extends DocumentLimits {
  /**
   * Bytes of a JSON body, counted after decompression (gzip, deflate, br), and of `operations` and `map` of an upload;
   * more is 413. Variables may have 20000 values for each MiB of it, at least 20000.
   * @default 1048576
   */
  bodyBytes?: ByteSize | undefined;
  /** The time until a body is complete, and for each 16 KiB of an upload; then 408. @default 30000 */
  bodyTimeout?: Duration | undefined;
}

/** The manifest that Apollo's `generate-persisted-query-manifest` writes. */
export interface PersistedQueryManifest {
  readonly format: 'apollo-persisted-query-manifest';
  readonly version: 1;
  readonly operations: readonly {
    readonly id: string;
    readonly body: string;
    readonly name?: string | undefined;
    readonly type?: string | undefined;
  }[];
}

/** The texts of documents by id. Ids are compared as they are: a hash, or any other name. */
export type DocumentMap = Readonly<Record<string, string>>;

/** Returns the text of a document by its id, or undefined for an unknown id. */
export type FindDocument = (id: string) => MaybePromise<string | null | undefined>;

/**
 * The trusted documents: a file, a directory, an object, a Map or a function. A file contains Apollo's manifest
 * or a JSON object of texts by id, as Relay and graphql-codegen write it. A directory contains one
 * `<id>.graphql` per document.
 */
export type DocumentSource =
  | string
  | URL
  | DocumentMap
  | PersistedQueryManifest
  | ReadonlyMap<string, string>
  | FindDocument;

/** Options of automatic persisted queries. */
export interface PersistedQueryOptions {
  /**
   * The Redis that keeps the queries of all processes, for a day after each registration. If it fails or is slow, the query
   * counts as not found.
   * @default none: the document cache of this process
   */
  redis?: RedisSource | undefined;
}

/** The option `documents` of `graphqlHTTP`: how documents are kept, and which of them clients request by id. */
export interface DocumentsOptions<Source = ContextSource> {
  /**
   * The trusted documents. All of them are validated and prepared when the middleware is created. A file or
   * directory is read again when it changes; the previous documents stay in use if it cannot be read.
   * @default none
   */
  from?: DocumentSource | undefined;
  /**
   * Whether all other documents are refused (403, code `DOCUMENT_NOT_TRUSTED`). `'report'` executes them, and passes
   * an error with that code to `onError` once per document, 1000 at most. Or a function of the request or WebSocket
   * that returns one of these.
   * @default false
   */
  only?: boolean | 'report' | Hook<[source: Source], boolean | 'report'> | undefined;
  /**
   * Automatic persisted queries: clients register the hashes of their queries. This saves bandwidth and protects
   * nothing, because any client can register any query.
   * @default false
   */
  apq?: boolean | PersistedQueryOptions | undefined;
  /**
   * Bytes of memory for prepared documents: their text, their nodes, and their compiled form. One document
   * may take about a tenth of it; a larger one is prepared for each request, or is executed by graphql-js.
   * @default 33554432
   */
  cacheBytes?: ByteSize | undefined;
}

/**
 * Options of the cost of operations, which `@cost` and `@listSize` of the IBM specification set in the schema
 * (https://ibm.github.io/graphql-specs/cost-spec.html).
 */
export interface CostOptions {
  /** The highest cost of an operation, and of a batch; more is refused with the code `COST_LIMIT`. @default 1000 */
  maxCost?: number | undefined;
  /** Refuses no operation; the header and the channel `espalier:graphql:cost` show its cost. @default false */
  reportOnly?: boolean | undefined;
}

/** What `budget` and `clientLimits` have in common. `Key` is a function that says who a client is. */
export interface BucketOptions<Key> {
  /** The time in which a used-up limit becomes available again. @default 60000 */
  window?: Duration | undefined;
  /**
   * Returns who is counted: a user, a company, an API key. It gets the request or, over sockets, the WebSocket. `undefined`
   * means no limit.
   * @default the id of the option `caller`; for nobody the client's address: `req.ip`, or that of the socket; the first 64 bits
   * of an IPv6 address
   */
  key?: Key | undefined;
  /** The Redis that counts for all its processes together. @default none: each process counts for itself */
  redis?: RedisSource | undefined;
}

/**
 * Options of budgets: each key has a token bucket, which operations take tokens from. The second argument of `key` is the
 * context.
 */
export interface BudgetOptions<Source = ContextSource, Context = unknown>
  extends BucketOptions<Hook<[source: Source, context: Context], MaybePromise<string | undefined>>> {
  /** The tokens of a full bucket. */
  limit: number;
  /** The meaning of one token: a unit of the operation's cost, or one operation. @default 'cost' */
  unit?: 'cost' | 'operations' | undefined;
  /**
   * When Redis is unavailable: `'local'` uses buckets of this process, `'open'` executes every operation, and
   * `'closed'` refuses every operation with 503. @default 'local'
   */
  onUnavailable?: 'local' | 'open' | 'closed' | undefined;
}

/**
 * Limits of each client. What a client reaches is refused with 429 and the code `RATE_LIMITED`. `window` is the time of
 * `newConnections` and `newOperations`; `redis` counts for them and for `@rateLimit`. The second argument of `key` is the caller, undefined while a
 * WebSocket is opened; it must not return a promise.
 */
export interface ClientLimitOptions<Source = ContextSource, C extends Caller = Caller>
  extends BucketOptions<Hook<[source: Source, caller: C | null | undefined], string | undefined>> {
  /** WebSockets and event streams that are open at a time, in this process. @default Infinity */
  connections?: number | undefined;
  /** Subscriptions that are active at a time, in this process. @default Infinity */
  subscriptions?: number | undefined;
  /** WebSockets that may be opened within `window`. @default Infinity */
  newConnections?: number | undefined;
  /** Operations that may be started within `window`, also invalid ones. @default Infinity */
  newOperations?: number | undefined;
}

/** A secret of at least 32 bytes. */
export type CursorKey = string | Uint8Array;

/** Options of cursors, with which clients continue a subscription after the last event that they received. */
export interface CursorOptions<Source = ContextSource, Context = unknown>
  extends UserOptions<Source, Context> {
  /**
   * The secret that signs cursors, at least 32 bytes long; equal in all processes. Of a list, the first one
   * signs, and cursors of all are accepted: put a new secret first, and remove the old one after `maxAge`.
   */
  key: CursorKey | readonly CursorKey[];
  /** The time for which a cursor is valid. @default 86_400_000 (a day) */
  maxAge?: Duration | undefined;
}
