import type {
  DocumentNode,
  FieldNode,
  GraphQLError,
  GraphQLField,
  GraphQLFormattedError,
  GraphQLObjectType,
  GraphQLResolveInfo,
  GraphQLSchema,
  OperationDefinitionNode,
  SourceLocation,
} from 'graphql';
import type { AuthCheck } from '../../types/auth.ts';
import type { CacheControl, CacheHint, CachePolicy } from '../../types/caching.ts';
import type { Caller } from '../../types/caller.ts';
import type { MaybePromise } from '../../types/connect.ts';
import type { ErrorDetails } from '../../types/graphql.ts';
import type {
  OperationDecision,
  OperationDetails,
  ResultAdditions,
  ResultDetails,
} from '../../types/operation.ts';
import type { Exchange } from '../http/exchange.ts';
import { isThenable } from '../options/values.ts';
import type { TimeLimit } from './deadline.ts';

// The types that HTTP, WebSockets and the engines share: plain values without any transport.

export { isThenable };

/** Has all members of another type, also those that are optional there. */
export type Complete<T> = { [Name in keyof Required<T>]: T[Name] };

/** The parameters of a GraphQL request after their types were checked (GraphQL over HTTP, "Request Parameters"). */
export interface GraphQLParams {
  /** The text of the document. Empty if the request has only the id, until the document is prepared. */
  readonly query: string;
  /** The id in the request, with the option `documents`; `isPersistedQuery` if it is a hash of Apollo's protocol. */
  readonly document?: { readonly id: string; readonly isPersistedQuery: boolean } | undefined;
  readonly operationName: string | undefined;
  readonly variables: Record<string, unknown> | undefined;
  readonly extensions: Record<string, unknown> | undefined;
  /** The place in a batch; undefined for a single operation. */
  readonly index?: BatchIndex;
}

/** The place of an operation in a batch of requests, of variables, or of both. */
interface BatchIndex {
  readonly request: number | undefined;
  readonly variables: number | undefined;
}

/** One operation of a document that passed parsing, limits and validation. */
export interface ValidatedOperation {
  readonly kind: 'operation' | 'prepared';
  /** Executes the operation. */
  readonly schema: GraphQLSchema;
  /** The part of `schema` whose names the caller may use, and that introspection shows; undefined for the whole one. */
  readonly visible?: GraphQLSchema | undefined;
  /** The source text that the document was parsed from. */
  readonly source: string;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  /** The size, measured before validation; the operations of one batch share the limits. */
  readonly size?:
    | { readonly fields: number; readonly rootFields: number; readonly introspection: number }
    | undefined;
}

/** A validated operation with the function that executes it. The document cache stores it. */
export interface PreparedOperation extends ValidatedOperation, Omit<OperationHooks, 'execute'> {
  readonly kind: 'prepared';
  /** The coercion of variables stops after this many errors. */
  readonly maxErrors: number;
  readonly execute: ExecuteOperation;
  /** The time that the subscribe step of a subscription may take; `execute` has its own limit. */
  readonly timeLimit?: TimeLimit | undefined;
  /**
   * The format of incremental responses to clients that name none; undefined if the operation has no deferred
   * parts.
   */
  readonly incremental?: IncrementalFormat | undefined;
}

/** What extensions do with one operation, on all transports. An absent hook costs nothing. */
export interface OperationHooks {
  /** Returns why the operation must not be executed. Called once, with the context and before the execution. */
  readonly admit?: ((call: OperationCall) => MaybePromise<RequestError | undefined>) | undefined;
  /** Returns why an event with its own context must not be executed. */
  readonly event?:
    | ((inputs: ExecutionInputs, source: unknown) => MaybePromise<RequestError | undefined>)
    | undefined;
  /** Executes the operation, or an event of it, within its time. */
  readonly execute?:
    | ((inputs: ExecutionInputs, next: ExecuteOperation) => MaybePromise<ExecutionOutcome>)
    | undefined;
  /** Surrounds the execution of a query or mutation, or of an event. It may leave out `next`, or change its result. */
  readonly around?:
    | ((
        call: ExecutionInputs,
        prepared: PreparedOperation,
        next: () => MaybePromise<ExecutionOutcome>,
      ) => MaybePromise<ExecutionOutcome>)
    | undefined;
  /** The scopes that every caller needs, for descriptions. */
  readonly scopes?: (() => readonly string[]) | undefined;
}

/** A format of the payloads of `@defer` and `@stream`: of the specification's drafts since 2024, and of 2022. */
export type IncrementalFormat = 'v0.2' | '20220824';

/**
 * The reason why a request cannot be executed: a syntax error, a limit, a validation error, or an unknown
 * operation name.
 */
export interface RequestError {
  readonly kind: 'error';
  readonly errors: readonly GraphQLError[];
  /** HTTP status for strict media types: 400, or 413 for some limits. */
  readonly status: number;
  /**
   * The text has a syntax error. The current draft of GraphQL over HTTP distinguishes that from an invalid
   * document.
   */
  readonly unparsable?: boolean;
  /**
   * The status applies to every media type: a rule of this server refuses the document, such as a limit, or the server
   * has failed.
   */
  readonly limit?: boolean;
}

/** The inputs of one execution. Variables are as received, not coerced. */
export interface ExecutionInputs {
  rootValue: unknown;
  contextValue: unknown;
  variableValues: Record<string, unknown> | undefined;
  /** Aborts when the client disconnects. */
  signal?: AbortSignal | undefined;
  /** The origin of the operation, for reports of unexpected errors. */
  readonly origin?: ErrorOrigin | undefined;
  /** Whether the transport delivers several results of one operation. */
  readonly acceptsStreams?: boolean;
  /** The format of the payloads if the client accepts several; otherwise deferred parts are part of the result. */
  incremental?: IncrementalFormat | undefined;
  /** Whether the execution continues when the client disconnects. */
  outlivesClient?: boolean;
  /** The place of the operation in a batch. */
  readonly index?: BatchIndex | undefined;
  /** Sets a header of the HTTP response; undefined over sockets. */
  setHeader?(name: string, value: string): void;
  /** The cache policy of the execution; undefined if its result is not cached. */
  caching?: ExecutionCaching | undefined;
  /** What the option `caller` has returned: null for nobody, undefined without the option. */
  caller?: Caller | null | undefined;
  /** What the caller may see; undefined if all callers see the same. */
  access?: CallerAccess | undefined;
  /** The fields that are left out, with the seconds after which the client may request them again. */
  refused?: ReadonlyMap<FieldNode, number> | undefined;
  /** The parameters of the WebSocket that the operation came from. */
  readonly connectionParams?: Readonly<Record<string, unknown>> | undefined;
  /** Whether the result is sent to several clients. */
  readonly isShared?: boolean;
  /** The HTTP request with its response; undefined on other transports, and for events. */
  readonly exchange?: Exchange | undefined;
  /** The parameters of the request; undefined for events. */
  readonly params?: GraphQLParams | undefined;
}

/** An operation on its way to its execution, as extensions see it on all transports. */
export interface OperationCall extends ExecutionInputs {
  readonly params: GraphQLParams;
  /** The request or the WebSocket that functions of the application get. */
  readonly source: unknown;
  /** What the operations of one batch share; undefined for a single operation. */
  readonly batch: object | undefined;
  /** The operation as the subscribers of `espalier:graphql:operation` see it; undefined without subscribers. */
  readonly observed: { client: CallClient | undefined } | undefined;
  /** The JSON text of the `extensions` to add to each result. */
  extensions: string | undefined;
  /** Says that the result is changed after the execution, so that it must not be compressed before. */
  willExtend(): void;
  /** Ends a subscription at a time, in milliseconds since 1970. */
  expireBy(time: number): void;
}

/** The application that sent an operation. */
interface CallClient {
  readonly name: string;
  readonly version: string | undefined;
}

export type OnOperation = (operation: OperationDetails<unknown>) => MaybePromise<OperationDecision>;

export type OnResult = (result: ResultDetails<unknown>) => MaybePromise<ResultAdditions>;

/** What the caller of an execution may see. Only callers with equal keys may get the same result. */
export interface CallerAccess {
  /** Whether the caller may see everything that the operation selects. */
  readonly isUnrestricted: boolean;
  /** Whether something that the operation selects has a requirement. */
  readonly hasConditions: boolean;
  /** What the caller has of that which the operation requires; empty if it requires nothing. */
  readonly key: string;
  /** Like `key`, for stored results: a later version of the schema may require something else. */
  readonly storedKey: string;
}

/** The origin of an operation, for reports of unexpected errors. */
export interface ErrorOrigin extends Omit<ErrorDetails, 'path'> {
  /** The client disconnected, so the resulting errors are not reported. */
  readonly aborted?: boolean;
  /** The context of the operation; undefined before there is one. */
  readonly contextValue?: unknown;
  readonly caller?: ExecutionInputs['caller'];
}

/** The result of one execution, with the JSON text of the GraphQL response. */
export interface ExecutionOutcome {
  /**
   * `data`: no errors. `partial`: `errors` and a `data` member, which may be null. `refused`: a request
   * error, no `data` member.
   */
  readonly kind: 'data' | 'partial' | 'refused';
  /**
   * The response map `{"errors":...,"data":...}`: text, or UTF-8 bytes that stay unchanged until `release` is
   * called.
   */
  readonly body: string | Buffer;
  /** Returns the buffer of a long response to the pool. Optional: only the sole reader of `body` may call it. */
  readonly release?: (() => void) | undefined;
  /** The errors before masking; empty if there are none. */
  readonly errors: readonly GraphQLError[];
  /**
   * The results after `body`, as JSON text: payloads of deferred parts, or further results of the option
   * `engine`. The reader must read all of them or call `return`.
   */
  readonly rest?: RemainingResults | undefined;
  /** The `extensions` in `body`, if the option `engine` returned some. */
  readonly extensions?: Readonly<Record<string, unknown>> | undefined;
  /** The HTTP status of a refused operation. @default 400 */
  readonly status?: number | undefined;
  /** All errors were masked by `maskError`; `errors` are created when they are read. */
  readonly isMasked?: boolean;
}

/**
 * Returns an outcome with another `rest`. Some outcomes create their errors when they are read: a spread would read them,
 * or lose the getter of a class.
 */
export const withRest = (outcome: ExecutionOutcome, rest: RemainingResults): ExecutionOutcome => ({
  kind: outcome.kind,
  body: outcome.body,
  release: outcome.release,
  rest,
  extensions: outcome.extensions,
  status: outcome.status,
  isMasked: outcome.isMasked === true,
  get errors() {
    return outcome.errors;
  },
});

/** Returns results whose reads a function observes. */
export const observedResults = (
  rest: RemainingResults,
  observe: (read: RemainingResults['next']) => ReturnType<RemainingResults['next']>,
): RemainingResults => ({
  next: () => observe(() => rest.next()),
  return: () => observe(() => rest.return()),
  openIds: rest.openIds,
});

/** The results of one operation after the first one. */
export interface RemainingResults {
  next(): Promise<IteratorResult<string, undefined>>;
  /** Stops the execution. */
  return(): Promise<IteratorResult<string, undefined>>;
  /** The ids of the parts that were announced and are not complete; undefined if the format has none. */
  readonly openIds?: ReadonlySet<string> | undefined;
}

/**
 * Executes one prepared operation. Returns a promise only if a resolver did. Field errors are part of the
 * outcome; they are not thrown.
 */
export type ExecuteOperation = (inputs: ExecutionInputs) => MaybePromise<ExecutionOutcome>;

/**
 * Returns what a function of the application returned, with a promise of Node instead of any other thenable: `then` of
 * another library may return nothing, call its handlers twice, or start its work at each call.
 */
export function withNativePromise<T>(returned: MaybePromise<T>): MaybePromise<T> {
  return isThenable(returned) ? Promise.resolve(returned) : returned;
}

// The signature and the settings of all engines.

/** Counts the memory of one operation against the budget of the document cache. */
export interface MemoryAccount {
  /**
   * Adds bytes that the operation retains from now on. Returns false if they are more than one operation may
   * have: the operation should release them.
   */
  charge(bytes: number): boolean;
}

/**
 * Creates the function that executes an operation: with graphql-js, the compiled engine, or a user's
 * function. Without `account` the memory of the operation is not limited.
 */
export type Engine = (
  operation: ValidatedOperation,
  settings: EngineSettings,
  account?: MemoryAccount,
) => ExecuteOperation;

/**
 * Creates the function that executes an operation with deferred parts: the first payload is the outcome, the
 * others are its `rest`.
 */
export type IncrementalEngine = (
  operation: ValidatedOperation,
  settings: EngineSettings,
  format: IncrementalFormat,
  account?: MemoryAccount,
) => ExecuteOperation;

export interface EngineSettings {
  fieldResolver: unknown;
  typeResolver: unknown;
  /** The coercion of variables stops after this many errors. */
  maxErrors: number;
  /** Omits "Did you mean ...?" from messages. */
  hideSuggestions: boolean;
  /** Follows the fields of an execution; undefined if caching is off. */
  caching?: Caching | undefined;
  /** What executions check of their callers; undefined if nothing is checked. */
  guards?: Guards | undefined;
  /** Adds the hooks of extensions to an operation. */
  withHooks?: ((operation: PreparedOperation, account: MemoryAccount) => PreparedOperation) | undefined;
  /** The limit of each operation; undefined if their time is not limited. */
  timeLimit?: TimeLimit | undefined;
  /** Masks and formats the errors of one response, in order, and reports unexpected errors. */
  formatErrors(errors: readonly GraphQLError[], origin?: ErrorOrigin): readonly GraphQLFormattedError[];
  /**
   * Like `formatErrors`, for an error that a resolver threw and that has no properties of a GraphQLError: no
   * GraphQLError is created for it. Undefined if the format of such errors depends on more than the
   * arguments.
   */
  readonly maskError?:
    | ((error: Error, place: ErrorPlace, origin?: ErrorOrigin) => GraphQLFormattedError)
    | undefined;
}

/** The place of a field error, as the response contains it. */
interface ErrorPlace {
  readonly locations: readonly SourceLocation[] | undefined;
  readonly path: readonly (string | number)[];
}

/** Checks the caller of an execution. Returns the error of a field that the caller may not see. */
export type Guard = (
  inputs: ExecutionInputs,
  node: FieldNode,
  operation: OperationDefinitionNode,
) => GraphQLError | undefined;

/** The checks that the engines make while they execute an operation. */
export interface Guards {
  /** Whether an execution may refuse anything; the others run without any check. */
  appliesTo(inputs: ExecutionInputs): boolean;
  /** The check of a field before its resolver is called; undefined for a field that everyone may see. */
  fieldGuard(
    schema: GraphQLSchema,
    parentType: GraphQLObjectType,
    definition: GraphQLField<unknown, unknown>,
  ): Guard | undefined;
  /** The check of a value of an interface or union; undefined for an object type that everyone may see. */
  valueGuard?: ((schema: GraphQLSchema, type: GraphQLObjectType) => Guard | undefined) | undefined;
  /** Creates `info.auth` of resolvers, in every execution. */
  authOf?: ((inputs: ExecutionInputs) => AuthCheck) | undefined;
}

// The types of caching that engines and transports use. The policies are in core/caching.

/** Receives the `info` of each field, with its parent value, before its resolver is called. */
export type FieldTracker = (info: GraphQLResolveInfo, source: unknown) => void;

/** The cache policies of one handler. Part of the settings of engines if caching is on. */
export interface Caching {
  /**
   * Whether a field has a static hint that a resolver may replace. `isRootField`: a field of the operation's
   * root type.
   */
  isCounted(definition: GraphQLField<unknown, unknown>, isRootField: boolean): boolean;
  /** The tags of objects of a type in which a field is executed; undefined if there are none. */
  objectTagsOf(type: GraphQLObjectType, definition: GraphQLField<unknown, unknown>): ObjectTags | undefined;
  /**
   * Creates `info.cacheControl` of one call of a resolver. Its hints have no effect if `execution` is
   * undefined: over sockets nothing is cached.
   */
  controlFor(
    execution: ExecutionCaching | undefined,
    definition: GraphQLField<unknown, unknown>,
    isRoot: boolean,
  ): CacheControl;
}

/** Tags whose values are properties of an object. */
export type ObjectTags = readonly {
  /** Returns the tags of an object; undefined if a property is missing. */
  of(source: unknown): readonly string[] | undefined;
}[];

/** The cache policy of one execution: the static policy, changed by `info.cacheControl`. */
export interface ExecutionCaching {
  /** Counts the execution of a field for which `isCounted` is true. */
  count(definition: GraphQLField<unknown, unknown>): void;
  /** The engine reports fields through a guard. If it reports none, the result is not cacheable. */
  expectFields(): void;
  addTags(tags: readonly string[]): void;
  addObjectTags(tags: ObjectTags, source: unknown): void;
  /** Returns the tags of the result, after the execution. */
  tags(): readonly string[];
  /**
   * Removes the results with the tags of this one from the response cache, after a mutation or an event. Undefined
   * if that is done, or a promise that is resolved soon and never rejects.
   */
  invalidate(): Promise<void> | undefined;
  /** Makes the policy of the whole result stricter. */
  restrict(hint: CacheHint): void;
  /** Returns the policy of the result, after the execution. */
  policy(): CachePolicy;
}
