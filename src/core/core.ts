import { assertValidSchema, GraphQLSchema, version, versionInfo } from 'graphql';
import type { MaybePromise, OperationTransport } from '../../types/connect.ts';
import type { ContextDetails, SharedOperation } from '../../types/subscriptions.ts';
import { type Authorization, createAuthorization } from '../auth/authorization.ts';
import type { GuardedStore } from '../cache/store.ts';
import { resolveCost } from '../cost/cost-check.ts';
import {
  createErrorReporter,
  isDevelopment,
  noteUnsupportedVersion,
  type Reporter,
} from '../diagnostics/logging.ts';
import { createTimeLimits, type TimeLimit } from '../execution/deadline.ts';
import { isSupportedVersion, SUPPORTED_VERSIONS } from '../execution/graphql-version.ts';
import { hasBatchResolvers } from '../execution/resolve-many.ts';
import { type EngineSettings, type ErrorOrigin, withNativePromise } from '../execution/types.ts';
import { createHostCheck, type HostCheck } from '../http/routing.ts';
import type { Idempotency } from '../idempotency/options.ts';
import type { CursorSettings } from '../live/cursors.ts';
import { assertSync, type OptionScope, settle } from '../options/rules.ts';
import { GRAPHQL_OPTIONS } from '../options/scopes.ts';
import { createAdmission, createOperationHook, type OperationHook } from './admission.ts';
import { type CoreDocuments, type CoreParts, createCoreDocuments } from './by-id.ts';
import type { Prepare } from './documents.ts';
import { assertIncremental, mayBeIncremental } from './engines.ts';
import { createErrorFormatter, createErrorMask, errorDetails, type FormatErrors } from './errors.ts';
import type { CoreSettings, OnOperation } from './options.ts';
import {
  notASchema,
  noteHandler,
  ReplaceableSchema,
  type ReplaceListener,
  type ReplaceSteps,
} from './schema.ts';
import { createProtectionCheck } from './unenforced.ts';

/** Returns the context value of a request, a connection or an operation. */
export type ContextFactory = (
  source: unknown,
  operation?: SharedOperation,
  connectionParams?: Readonly<Record<string, unknown>>,
  transport?: OperationTransport,
) => MaybePromise<unknown>;

/**
 * One schema with its settings. HTTP and WebSockets share it and its cache: a document that was prepared for
 * one transport is in the cache for the other.
 */
export interface GraphQLCore {
  schemaFor(
    request: unknown,
    connectionParams?: Readonly<Record<string, unknown>>,
    transport?: OperationTransport,
  ): MaybePromise<GraphQLSchema>;
  /** Replaces the schema for new operations; older ones should end within `milliseconds`. */
  replace(schema: unknown, milliseconds: number): Promise<void>;
  /** Calls a function after each replacement. */
  onReplace(listener: ReplaceListener): void;
  /** The schema of all requests; undefined if it depends on the request. */
  readonly currentSchema: GraphQLSchema | undefined;
  /** Whether all requests have the same schema. */
  readonly hasOneSchema: boolean;
  /** Turns a document text into a prepared operation. */
  readonly prepare: Prepare;
  /** The documents that clients request by id; undefined without the option `documents`. */
  readonly documents: CoreDocuments | undefined;
  /** The response cache; undefined if it is off. */
  readonly cacheStore: GuardedStore | undefined;
  /** Whether responses may be incremental. */
  readonly mayBeIncremental: boolean;
  /** The limit of values in the variables of one operation. */
  readonly maxVariables: number;
  readonly hasContextFunction: boolean;
  /** Whether `rootValue`, `introspection`, `documents.only` or `idempotency.user` is a function of the request or WebSocket. */
  readonly readsSource: boolean;
  /**
   * Returns the context value: the value of the option, or the return value of its function for the request
   * or WebSocket. `connectionParams` are the connection parameters of a WebSocket.
   */
  readonly contextFor: ContextFactory;
  /** Returns the hook of an endpoint: its own option `onOperation`, or the option of the handler. */
  operationHookFor(onOperation?: OnOperation): OperationHook | undefined;
  /** Checks the caller of each event of a subscription; undefined without the option `auth`. */
  readonly authorizeEvent: Authorization['authorizeEvent'] | undefined;
  /** The time that a function of the application may take; undefined if it is not limited. */
  readonly timeLimit: TimeLimit | undefined;
  /** The option `cursors`; undefined if it is not set. */
  readonly cursors: CursorSettings | undefined;
  /** Counts the operations; undefined without the option `usage`. */
  readonly usage: CoreSettings['usage'];
  /** The highest cost of one batch; undefined if costs are not limited. */
  readonly maxCost: number | undefined;
  /** Returns the root value for a request or WebSocket. */
  rootValueFor(source: unknown): unknown;
  /** Origins whose pages count as same-site. */
  readonly allowedOrigins: readonly string[];
  /** Whether the option `allowedHosts` allows the host of a request; undefined allows every host. */
  readonly isHostAllowed: HostCheck | undefined;
  /** Masks and formats errors for the client, and reports unexpected errors. */
  readonly formatErrors: FormatErrors;
  /**
   * Reports an unexpected error that no response contains, such as an error after the socket was closed.
   * Never throws.
   */
  reportError(error: unknown, origin: ErrorOrigin): void;
  /**
   * Like `reportError`, for an error that is also passed to `next(error)`, where the application's error
   * handlers log it.
   */
  reportForwardedError(error: unknown, origin: ErrorOrigin): void;
}

/**
 * The property of a `graphqlHTTP` handler that holds its core. `Symbol.for` makes it equal in the CommonJS
 * and the ES build.
 */
export const CORE: unique symbol = Symbol.for('espalier.core');

/** Returns the core of a `graphqlHTTP` handler, or undefined for any other value. */
export function coreOf(handler: unknown): GraphQLCore | undefined {
  return typeof handler === 'function' ? (handler as { [CORE]?: GraphQLCore })[CORE] : undefined;
}

type Callable = (source: unknown) => unknown;
type ContextFunction = (source: unknown, details: ContextDetails) => unknown;

/** Creates the factory of the option `context`: a value, or a function of the source and its details. */
export function createContextFactory(context: unknown): ContextFactory {
  if (typeof context !== 'function') return () => context;
  const create = context as ContextFunction;
  return (
    source,
    operation,
    connectionParams,
    transport = connectionParams === undefined ? 'http' : 'websocket',
  ) => {
    return withNativePromise(create(source, { transport, connectionParams, operation }));
  };
}

/**
 * Creates the core of one schema, or of a function that returns one per request.
 *
 * @throws TypeError if `schema` is neither a GraphQLSchema nor a function, or if the schema is invalid.
 */
export function createCore(scope: OptionScope, schema: unknown, settings: CoreSettings): GraphQLCore {
  if (!isSupportedVersion(versionInfo)) noteUnsupportedVersion(version, SUPPORTED_VERSIONS);
  assertIncremental(scope, schema, settings);
  const reporter = createErrorReporter(settings.onError);
  const authorization = createAuthorization(settings.auth, schema);
  const admission = createAdmission(settings, schema, authorization);
  const report: CoreParts['report'] = (error, details) =>
    reporter.reportBackground(error, { ...errorDetails(undefined), ...details });
  const idempotency = settings.createIdempotency?.(schema, report);
  const engineSettings = createEngineSettings(schema, settings, reporter, {
    ...authorization?.engine,
    price: admission.price,
    idempotent: idempotency?.idempotent,
  });
  const { formatErrors } = engineSettings;
  const timeLimit = engineSettings.timeLimitOf?.(undefined);
  const { context, rootValue } = settings;
  const source = schemaSource(scope, schema, settings, idempotency);
  const options = withRule(settings, idempotency);
  const { replaceable } = source;
  const documents = createCoreDocuments({ schema: source.one ?? schema, options, engineSettings, report });
  return {
    ...forCallers(source, authorization, idempotency),
    ...documents,
    ...replacement(replaceable, documents.warm, (next) => checkSchema(scope, next, settings, source.serve)),
    get currentSchema() {
      return source.hasOneSchema && authorization?.schemaFor === undefined ? replaceable.current : undefined;
    },
    cacheStore: settings.cacheStore,
    get mayBeIncremental() {
      return mayBeIncremental(source.one === undefined ? schema : replaceable.current, settings);
    },
    maxVariables: settings.limits.variables,
    hasContextFunction: typeof context === 'function',
    readsSource: readsSource(settings),
    contextFor: createContextFactory(context),
    operationHookFor: (onOperation = settings.onOperation) =>
      bounded(admission.hookFor(createOperationHook(onOperation, engineSettings), engineSettings), timeLimit),
    timeLimit,
    authorizeEvent: authorization?.authorizeEvent,
    maxCost: admission.maxCost,
    usage: settings.usage,
    cursors: settings.cursorSettings,
    rootValueFor: createRootValue(rootValue),
    allowedOrigins: settings.allowedOrigins,
    isHostAllowed: settings.allowedHosts && createHostCheck(settings.allowedHosts),
    formatErrors,
    reportError: (error, origin) => reporter.report(error, errorDetails(origin)),
    reportForwardedError: (error, origin) => reporter.reportForwarded(error, errorDetails(origin)),
  };
}

function withRule(settings: CoreSettings, idempotency: Idempotency | undefined): CoreSettings {
  if (idempotency === undefined) return settings;
  return { ...settings, validationRules: [...settings.validationRules, idempotency.rule] };
}

/** Limits the time of a hook. */
function bounded(hook: OperationHook | undefined, limit: TimeLimit | undefined): OperationHook | undefined {
  if (hook === undefined || limit === undefined) return hook;
  return (prepared, inputs, source) => limit.bound(hook(prepared, inputs, source), inputs.origin);
}

function createEngineSettings(
  schema: unknown,
  settings: CoreSettings,
  reporter: Pick<Reporter, 'report'>,
  checks: Pick<EngineSettings, 'price' | 'guards' | 'requirementOf' | 'secured' | 'idempotent'>,
): EngineSettings {
  const debug = isDevelopment();
  // Suggestions reveal names of the schema and help only in development. With the option `auth` they might be names that
  // the caller may not see.
  const hidesNames = checks.guards !== undefined && !hasSchemaPerCaller(settings);
  const hideSuggestions =
    hidesNames || !(settings.suggestions ?? (debug && settings.introspection !== false));
  const masking = { debug, hideSuggestions };
  const formatErrors = createErrorFormatter(settings, reporter, masking);
  const limitOf = createTimeLimits({
    formatErrors,
    report: (error, origin) => reporter.report(error, errorDetails(origin)),
  });
  return {
    timeLimitOf: (milliseconds = settings.timeout) => limitOf(milliseconds),
    fieldResolver: settings.fieldResolver,
    typeResolver: settings.typeResolver,
    maxErrors: settings.limits.errors,
    hideSuggestions,
    coordinates: settings.errors.coordinate,
    ...checks,
    caching: settings.createCaching?.(schema),
    formatErrors,
    maskError: createErrorMask(settings, reporter, masking),
  };
}

const hasSchemaPerCaller = ({ auth }: Pick<CoreSettings, 'auth'>): boolean =>
  (auth as { readonly schemaFor?: unknown }).schemaFor !== undefined;

/** Creates the function of the option `rootValue`: a value, or a function of the source. */
function createRootValue(rootValue: unknown): GraphQLCore['rootValueFor'] {
  if (typeof rootValue !== 'function') return () => rootValue;
  return (source) => assertSync((rootValue as Callable)(source), GRAPHQL_OPTIONS, 'rootValue');
}

/** Whether a function of the options gets the request or WebSocket. */
function readsSource({ documents, introspection, rootValue, createIdempotency }: CoreSettings): boolean {
  const { only } = (documents ?? {}) as { readonly only?: unknown };
  // The wing has a required function, `user`.
  return [rootValue, introspection, only, createIdempotency].some((each) => typeof each === 'function');
}

/** Replaces the schema by that of the caller, with the option `auth.schemaFor`. */
function forCallers(
  source: SchemaOfRequest,
  authorization: Authorization | undefined,
  idempotency: Idempotency | undefined,
): SchemaOfRequest {
  const choose = authorization?.schemaFor?.((schema) => idempotency?.withDirective(schema) ?? schema);
  if (choose === undefined) return source;
  return {
    schemaFor: (request, connectionParams, transport) =>
      settle(source.schemaFor(request), (schema) => choose(schema, request, connectionParams, transport)),
    hasOneSchema: false,
  };
}

type SchemaOfRequest = Pick<GraphQLCore, 'schemaFor' | 'hasOneSchema'>;

interface SchemaSource extends SchemaOfRequest {
  readonly one: GraphQLSchema | undefined;
  readonly replaceable: ReplaceableSchema;
  /** Returns a schema with what the options add to it. */
  serve(schema: GraphQLSchema): GraphQLSchema;
}

const replacement = (
  schema: ReplaceableSchema,
  warm: ReplaceSteps['warm'],
  check: ReplaceSteps['check'],
): Pick<GraphQLCore, 'replace' | 'onReplace'> => ({
  replace: (next, milliseconds) => schema.replace(next, milliseconds, { check, warm }),
  onReplace: (listener) => schema.onReplace(listener),
});

/** Checks the schema that replaces the one of a handler. */
function checkSchema(
  scope: OptionScope,
  schema: unknown,
  settings: CoreSettings,
  serve: SchemaSource['serve'],
): GraphQLSchema {
  if (!(schema instanceof GraphQLSchema)) throw notASchema({ ...scope, name: 'replace' }, schema);
  assertValidSchema(schema);
  hasBatchResolvers(schema);
  assertIncremental(scope, schema, settings);
  createAuthorization(settings.auth, schema);
  resolveCost(settings.cost, schema);
  settings.createCaching?.(schema);
  noteHandler(schema);
  return serve(schema);
}

function schemaSource(
  scope: OptionScope,
  schema: unknown,
  settings: CoreSettings,
  idempotency: Idempotency | undefined,
): SchemaSource {
  const assertProtected = createProtectionCheck(scope, settings);
  const served = (given: GraphQLSchema): GraphQLSchema => {
    assertProtected(given);
    return idempotency?.withDirective(given) ?? given;
  };
  if (typeof schema !== 'function') {
    if (!(schema instanceof GraphQLSchema)) throw notASchema(scope, schema);
    assertValidSchema(schema);
    hasBatchResolvers(schema);
    if (scope === GRAPHQL_OPTIONS) noteHandler(schema);
    const one = served(schema);
    const replaceable = new ReplaceableSchema(scope, one);
    return { one, replaceable, serve: served, schemaFor: () => replaceable.current, hasOneSchema: true };
  }
  const assertSchema = (value: unknown): GraphQLSchema => {
    if (!(value instanceof GraphQLSchema)) throw notASchema(scope, value);
    return served(value);
  };
  return {
    schemaFor: (request) => settle(withNativePromise((schema as Callable)(request)), assertSchema),
    hasOneSchema: false,
    one: undefined,
    replaceable: new ReplaceableSchema(scope, undefined),
    serve: served,
  };
}
