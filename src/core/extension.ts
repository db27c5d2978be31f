import type { GraphQLSchema, ValidationRule } from 'graphql';
import type { Caller } from '../../types/caller.ts';
import type { MaybePromise, OperationTransport } from '../../types/connect.ts';
import type { GraphQLHandler } from '../../types/graphql.ts';
import type {
  Caching,
  EngineSettings,
  ErrorOrigin,
  ExecuteOperation,
  Guard,
  Guards,
  MemoryAccount,
  OperationHooks,
  PreparedOperation,
  RequestError,
} from '../execution/types.ts';
import type { Exchange, GraphQLResponse } from '../http/exchange.ts';
import type { HttpError, Reply } from '../http/reply.ts';
import type { OptionScope } from '../options/rules.ts';
import { settle } from '../options/values.ts';

/**
 * A capability that a handler can do without: what it adds to the way of every operation, on all transports. Each member
 * is optional, and costs nothing if it is absent. The order of a handler's extensions is that of the list that creates
 * them.
 */
export interface Extension {
  /**
   * Checks the schema of a handler, or the one that replaces it.
   *
   * @throws TypeError (code `ERR_OPTION`).
   */
  readonly check?: (schema: GraphQLSchema) => void;
  /** Returns a schema with what the extension adds to it, such as a directive. */
  readonly serve?: (schema: GraphQLSchema) => GraphQLSchema;
  /** Called with each schema that is served, for warnings. @throws TypeError (code `ERR_OPTION`) in development. */
  readonly noteUnenforced?: (schema: GraphQLSchema) => void;
  /** Chooses the schema whose names a caller may use. */
  readonly schemaFor?: SchemaChoice;
  /** Whether messages must not suggest names of the schema. */
  readonly hidesNames?: boolean;
  /** Whether a function of the application gets the request or WebSocket. */
  readonly readsSource?: boolean;
  /** Whether the caller of each event is checked. */
  readonly checksEvents?: boolean;
  /** Refuses documents, in addition to the rules of GraphQL. */
  readonly rule?: ValidationRule;
  /** Checks fields and values while they are executed: compiled into both engines. */
  readonly guards?: Guards;
  /** Follows the fields of an execution: compiled into both engines. */
  readonly caching?: Caching;
  /** Limits what each client may do. */
  readonly clients?: ClientGate;
  /** Prepares what the extension does with one operation, once for each document. Undefined if that is nothing. */
  readonly prepare?: (operation: PreparedOperation, parts: PrepareParts) => OperationHooks | undefined;
  /** Called when a WebSocket is accepted. */
  readonly onSocket?: (websocket: object, connectionParams: Readonly<Record<string, unknown>>) => void;
  /** What the extension adds to the HTTP responses of results. */
  readonly response?: ResponseHooks;
  /** The members that the handler of `graphqlHTTP` gets. */
  readonly handler?: Partial<Pick<GraphQLHandler, keyof GraphQLHandler>>;
}

/** The limits of each client: of a caller, of an address if nobody has signed in, or of a key of the application. */
export interface ClientGate {
  /** Counts an operation, before it is prepared. Returns why it must not run. */
  operation(source: unknown, caller: Caller | null | undefined): MaybePromise<RequestError | undefined>;
  /**
   * Counts a WebSocket: its handshake and, for another client than that of its place, its `connection_init`. Returns why it
   * must not be opened.
   */
  connect(
    source: unknown,
    caller: Caller | null | undefined,
    held?: ClientPlaces,
  ): MaybePromise<HttpError | undefined>;
  /** Takes places of a client until `release`. @throws HttpError 429 if it has none. */
  hold(source: unknown, caller: Caller | null | undefined, ...kinds: readonly PlaceKind[]): ClientPlaces;
  release(places: ClientPlaces, ...kinds: readonly PlaceKind[]): void;
}

export type PlaceKind = 'connections' | 'subscriptions';

/** What one client has open: one object for all who hold a place of it, so that each of them keeps a reference only. */
export interface ClientPlaces extends Record<PlaceKind, number> {
  readonly key: string;
}

/** What `prepare` of an extension gets. */
export interface PrepareParts {
  readonly settings: EngineSettings;
  /** Counts the memory that is kept for the operation. */
  readonly account: MemoryAccount;
}

/** What an extension adds to the HTTP response of a result, before it is sent. */
export interface ResponseHooks {
  /**
   * Changes the reply, for example its headers. `encoding` identifies the coding that the body will have.
   *
   * @throws HttpError to send an error in place of the result.
   */
  readonly onReply: (
    exchange: Exchange,
    response: GraphQLResponse,
    reply: Reply,
    encoding: string | undefined,
  ) => void;
  /** Returns the strong ETag of a result without a coding; undefined if it has none. */
  readonly tagOf: (exchange: Exchange, response: GraphQLResponse) => string | undefined;
}

/** What the extensions of a handler are created with. */
export interface ExtensionParts {
  /** The function whose options these are, for messages. */
  readonly scope: OptionScope;
  /** Reports an error that belongs to no request. */
  reportBackground(error: unknown): void;
  /** Reports an unexpected error that no response contains. */
  reportError(error: unknown, origin: ErrorOrigin): void;
  /** Whether all callers have the same schema. Known when the first operation is prepared. */
  hasOneSchema(): boolean;
}

export type CreateExtensions = (parts: ExtensionParts) => readonly Extension[];

/** Returns the schema whose names a caller may use; `serve` adds what extensions add to schemas. */
type SchemaChoice = (
  serve: (schema: GraphQLSchema) => GraphQLSchema,
) => (schema: GraphQLSchema, source: unknown, origin: SchemaOrigin) => MaybePromise<GraphQLSchema>;

/** What is known of a request or WebSocket when its schema is chosen. */
export interface SchemaOrigin {
  readonly transport: OperationTransport;
  readonly connectionParams?: Readonly<Record<string, unknown>> | undefined;
  readonly caller?: Caller | null | undefined;
}

type Hook<Name extends keyof OperationHooks> = NonNullable<OperationHooks[Name]>;

/** Creates the function that adds the hooks of all extensions to an operation, each folded into one function. */
export function createHooks(
  extensions: readonly Extension[],
  settings: EngineSettings,
): (operation: PreparedOperation, account: MemoryAccount) => PreparedOperation {
  return (operation, account) => {
    const all = extensions.flatMap(({ prepare }) => prepare?.(operation, { settings, account }) ?? []);
    const admit = all.flatMap((hooks) => hooks.admit ?? []).reduceRight(firstRefusal, PASS);
    const event = all.flatMap((hooks) => hooks.event ?? []).reduceRight(firstRefusal, PASS);
    const around = all.flatMap((hooks) => hooks.around ?? []).reduceRight(outside, DIRECT);
    const execute = all
      .flatMap((hooks) => hooks.execute ?? [])
      .reduceRight<ExecuteOperation>((next, outer) => (inputs) => outer(inputs, next), operation.execute);
    return {
      ...operation,
      execute,
      admit: admit === PASS ? undefined : admit,
      event: event === PASS ? undefined : event,
      around: around === DIRECT ? undefined : around,
      scopes: all.flatMap((hooks) => hooks.scopes ?? [])[0],
    };
  };
}

/** The checks of all extensions as one; undefined if there are none. Of several refusals the first counts. */
export function foldGuards(extensions: readonly Extension[]): Guards | undefined {
  const all = extensions.flatMap(({ guards }) => guards ?? []);
  if (all.length < 2) return all[0];
  const first = (guards: readonly (Guard | undefined)[]): Guard | undefined => {
    const checks = guards.filter((guard) => guard !== undefined);
    if (checks.length < 2) return checks[0];
    return (...call) => {
      for (const check of checks) {
        const refusal = check(...call);
        if (refusal !== undefined) return refusal;
      }
      return undefined;
    };
  };
  return {
    appliesTo: (inputs) => all.some((guards) => guards.appliesTo(inputs)),
    fieldGuard: (...field) => first(all.map((guards) => guards.fieldGuard(...field))),
    valueGuard: (...type) => first(all.map((guards) => guards.valueGuard?.(...type))),
    authOf: all.find(({ authOf }) => authOf !== undefined)?.authOf,
  };
}

const PASS = (): undefined => undefined;
const DIRECT: Hook<'around'> = (_call, _prepared, next) => next();

type Check<Args extends readonly unknown[]> = (...args: Args) => MaybePromise<RequestError | undefined>;

const firstRefusal = <Args extends readonly unknown[]>(next: Check<Args>, first: Check<Args>): Check<Args> =>
  next === PASS ? first : (...args) => settle(first(...args), (refusal) => refusal ?? next(...args));

const outside = (inner: Hook<'around'>, outer: Hook<'around'>): Hook<'around'> =>
  inner === DIRECT
    ? outer
    : (call, prepared, next) => outer(call, prepared, () => inner(call, prepared, next));
