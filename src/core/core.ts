import { assertValidSchema, GraphQLSchema, version, versionInfo } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import type { ContextDetails, SubscriptionProtocol } from '../../types/subscriptions.ts';
import {
  createErrorReporter,
  isDevelopment,
  noteUnsupportedVersion,
  type Reporter,
} from '../diagnostics/logging.ts';
import { createTimeLimit, type TimeLimit } from '../execution/deadline.ts';
import { isSupportedVersion, SUPPORTED_VERSIONS } from '../execution/graphql-version.ts';
import { hasBatchResolvers } from '../execution/resolve-many.ts';
import { type EngineSettings, type ErrorOrigin, withNativePromise } from '../execution/types.ts';
import { createHostCheck, type HostCheck } from '../http/routing.ts';
import type { CursorSettings } from '../live/cursors.ts';
import { assertSync, type OptionScope } from '../options/rules.ts';
import { GRAPHQL_OPTIONS } from '../options/scopes.ts';
import { settle } from '../options/values.ts';
import type { CoreDocuments } from './by-id.ts';
import { createFindCaller, type FindCaller } from './caller.ts';
import { type CoreParts, createPlainDocuments, type Prepare } from './documents.ts';
import { assertIncremental, mayBeIncremental } from './engines.ts';
import { createErrorFormatter, createErrorMask, errorDetails, type FormatErrors } from './errors.ts';
import {
  type ClientGate,
  type CreateExtensions,
  createHooks,
  type Extension,
  foldGuards,
  type ResponseHooks,
  type SchemaOrigin,
} from './extension.ts';
import { optional } from './optional.ts';
import { type CoreSettings, MAX_ERRORS } from './options.ts';
import { notASchema, noteHandler, ReplaceableSchema, type ReplaceSteps } from './schema.ts';

/** Returns the context value of a request, a connection or an operation. */
export type ContextFactory = (
  source: unknown,
  details: Partial<ContextDetails> & Pick<ContextDetails, 'transport'>,
) => MaybePromise<unknown>;

/**
 * One schema with its settings. HTTP and WebSockets share it and its cache: a document that was prepared for
 * one transport is in the cache for the other.
 */
export interface GraphQLCore {
  schemaFor(request: unknown, origin: SchemaOrigin): MaybePromise<GraphQLSchema>;
  /** Replaces the schema for new operations; older ones should end within `milliseconds`. */
  replace(schema: unknown): Promise<void>;
  /** Calls a function after each replacement. */
  onReplace(listener: () => void): void;
  /** The schema of all requests; undefined if it depends on the request. */
  readonly currentSchema: GraphQLSchema | undefined;
  /** Whether all requests have the same schema. */
  readonly hasOneSchema: boolean;
  /** Turns a document text into a prepared operation. */
  readonly prepare: Prepare;
  /** The documents that clients request by id; undefined without the option `documents`. */
  readonly documents: CoreDocuments | undefined;
  /** Whether responses may be incremental. */
  readonly mayBeIncremental: boolean;
  /** The limit of values in the variables of one operation. */
  readonly maxVariables: number;
  readonly hasContextFunction: boolean;
  /** Whether a function of the options, other than `context`, gets the request or WebSocket. */
  readonly readsSource: boolean;
  /**
   * Returns the context value: the value of the option, or the return value of its function for the request
   * or WebSocket. `connectionParams` are the connection parameters of a WebSocket.
   */
  readonly contextFor: ContextFactory;
  /** Finds the caller; undefined without the option `caller`. */
  readonly findCaller: FindCaller | undefined;
  /** Whether the caller of each event of a subscription is checked. */
  readonly checksEvents: boolean;
  /** The limits of each client; undefined if there are none. */
  readonly clients: ClientGate | undefined;
  /** Called when a WebSocket is accepted. */
  onSocket(websocket: object, connectionParams: Readonly<Record<string, unknown>>): void;
  /** What extensions add to HTTP responses, in their order. */
  readonly responses: readonly ResponseHooks[];
  /** What extensions add to the handler. */
  readonly handler: NonNullable<Extension['handler']>;
  /** The time that a function of the application may take; undefined if it is not limited. */
  readonly timeLimit: TimeLimit | undefined;
  /** The option `cursors`; undefined if it is not set. */
  readonly cursors: CursorSettings | undefined;
  /** Returns the root value for a request or WebSocket. */
  rootValueFor(source: unknown): unknown;
  /** Origins whose pages count as same-site. */
  readonly allowedOrigins: readonly string[];
  readonly subscriptionProtocols: readonly SubscriptionProtocol[];
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
  return (source, { transport, operation, connectionParams, caller, response }) => {
    return withNativePromise(create(source, { transport, connectionParams, operation, caller, response }));
  };
}

/**
 * Creates the core of one schema, or of a function that returns one per request.
 *
 * @throws TypeError if `schema` is neither a GraphQLSchema nor a function, or if the schema is invalid.
 */
export function createCore(
  scope: OptionScope,
  schema: unknown,
  settings: CoreSettings,
  createExtensions: CreateExtensions,
): GraphQLCore {
  if (!isSupportedVersion(versionInfo)) noteUnsupportedVersion(version, SUPPORTED_VERSIONS);
  assertIncremental(scope, schema, settings);
  const reporter = createErrorReporter(settings.onError);
  const { report, reportError, reportForwardedError } = reportsOf(reporter);
  const hasOneSchema = (): boolean => core.hasOneSchema;
  const extensions = createExtensions({ scope, reportBackground: report, reportError, hasOneSchema });
  if (schema instanceof GraphQLSchema) for (const { check } of extensions) check?.(schema);
  const engineSettings = createEngineSettings(settings, reporter, extensions);
  const source = schemaSource(scope, schema, extensions);
  const rules = extensions.flatMap(({ rule }) => rule ?? []);
  const options = { ...settings, validationRules: [...settings.validationRules, ...rules] };
  const { replaceable } = source;
  const create =
    options.documents === undefined ? createPlainDocuments : optional.documents().createCoreDocuments;
  const documents = create({ schema: source.one ?? schema, options, engineSettings, report });
  const core: GraphQLCore = {
    ...forCallers(source, extensions),
    ...documents,
    ...replacement(replaceable, documents.warm, (next) =>
      checkSchema(scope, next, settings, { extensions, serve: source.serve }),
    ),
    get currentSchema() {
      return core.hasOneSchema ? replaceable.current : undefined;
    },
    get mayBeIncremental() {
      return mayBeIncremental(source.one === undefined ? schema : replaceable.current, settings);
    },
    maxVariables: settings.maxVariables,
    readsSource: readsSource(settings, extensions),
    ...functionsOf(settings),
    timeLimit: engineSettings.timeLimit,
    ...membersOf(extensions),
    cursors: settings.cursorSettings,
    allowedOrigins: settings.allowedOrigins,
    subscriptionProtocols: settings.subscriptionProtocols,
    isHostAllowed: settings.allowedHosts && createHostCheck(settings.allowedHosts),
    formatErrors: engineSettings.formatErrors,
    reportError,
    reportForwardedError,
  };
  return core;
}

/** The members of a core that call functions of the options. */
const functionsOf = ({
  caller,
  context,
  rootValue,
}: CoreSettings): Pick<GraphQLCore, 'findCaller' | 'hasContextFunction' | 'contextFor' | 'rootValueFor'> => ({
  findCaller: caller && createFindCaller(caller),
  hasContextFunction: typeof context === 'function',
  contextFor: createContextFactory(context),
  rootValueFor: createRootValue(rootValue),
});

/** The members of a core that its extensions determine. */
const membersOf = (
  extensions: readonly Extension[],
): Pick<GraphQLCore, 'checksEvents' | 'clients' | 'onSocket' | 'responses' | 'handler'> => ({
  clients: extensions.find(({ clients }) => clients !== undefined)?.clients,
  checksEvents: extensions.some((each) => each.checksEvents === true),
  onSocket(websocket, connectionParams) {
    for (const { onSocket } of extensions) onSocket?.(websocket, connectionParams);
  },
  responses: extensions.flatMap(({ response }) => response ?? []),
  handler: Object.assign({}, ...extensions.map(({ handler }) => handler)),
});

/** The reports of errors, with what is known of their origin. */
function reportsOf(
  reporter: Reporter,
): Pick<GraphQLCore, 'reportError' | 'reportForwardedError'> & Pick<CoreParts, 'report'> {
  return {
    report: (error, details) => reporter.reportBackground(error, { ...errorDetails(undefined), ...details }),
    reportError: (error, origin) => reporter.report(error, errorDetails(origin)),
    reportForwardedError: (error, origin) => reporter.reportForwarded(error, errorDetails(origin)),
  };
}

function createEngineSettings(
  settings: CoreSettings,
  reporter: Pick<Reporter, 'report'>,
  extensions: readonly Extension[],
): EngineSettings {
  const debug = isDevelopment();
  // Suggestions reveal names of the schema and help only in development.
  const hidesNames = extensions.some((each) => each.hidesNames === true);
  const hideSuggestions = hidesNames || !debug || settings.introspection === false;
  const masking = { debug, hideSuggestions };
  const formatErrors = createErrorFormatter(settings, reporter, masking);
  const timeLimit = createTimeLimit(settings.timeout, {
    formatErrors,
    report: (error, origin) => reporter.report(error, errorDetails(origin)),
  });
  const engineSettings: EngineSettings = {
    timeLimit,
    fieldResolver: settings.fieldResolver,
    typeResolver: settings.typeResolver,
    maxErrors: MAX_ERRORS,
    hideSuggestions,
    guards: foldGuards(extensions),
    caching: extensions.find(({ caching }) => caching !== undefined)?.caching,
    withHooks: (operation, account) => withHooks(operation, account),
    formatErrors,
    maskError: createErrorMask(settings, reporter, masking),
  };
  const withHooks = createHooks(extensions, engineSettings);
  return engineSettings;
}

/** Creates the function of the option `rootValue`: a value, or a function of the source. */
function createRootValue(rootValue: unknown): GraphQLCore['rootValueFor'] {
  if (typeof rootValue !== 'function') return () => rootValue;
  return (source) => assertSync((rootValue as Callable)(source), GRAPHQL_OPTIONS, 'rootValue');
}

/** Whether a function of the options gets the request or WebSocket. */
function readsSource(
  { caller, cursors, documents, introspection, rootValue }: CoreSettings,
  extensions: readonly Extension[],
): boolean {
  const { only } = (documents ?? {}) as { readonly only?: unknown };
  const { user } = (cursors ?? {}) as { readonly user?: unknown };
  return (
    [caller, rootValue, introspection, only, user].some((each) => typeof each === 'function') ||
    extensions.some((each) => each.readsSource === true)
  );
}

/** Replaces the schema by that of the caller, if an extension chooses one. */
function forCallers(source: SchemaOfRequest, extensions: readonly Extension[]): SchemaOfRequest {
  const { schemaFor } = extensions.find((each) => each.schemaFor !== undefined) ?? {};
  if (schemaFor === undefined) return source;
  const choose = schemaFor((schema) => served(extensions, schema));
  return {
    schemaFor: (request, origin) =>
      settle(source.schemaFor(request, origin), (schema) => choose(schema, request, origin)),
    hasOneSchema: false,
  };
}

/** Returns a schema with what extensions add to it. */
const served = (extensions: readonly Extension[], schema: GraphQLSchema): GraphQLSchema =>
  extensions.reduce((given, { serve }) => serve?.(given) ?? given, schema);

type SchemaOfRequest = Pick<GraphQLCore, 'schemaFor' | 'hasOneSchema'>;

interface SchemaSource extends SchemaOfRequest {
  readonly one: GraphQLSchema | undefined;
  readonly replaceable: ReplaceableSchema;
  /** Returns a schema with what extensions add to it. */
  serve(schema: GraphQLSchema): GraphQLSchema;
}

const replacement = (
  schema: ReplaceableSchema,
  warm: ReplaceSteps['warm'],
  check: ReplaceSteps['check'],
): Pick<GraphQLCore, 'replace' | 'onReplace'> => ({
  replace: (next) => schema.replace(next, { check, warm }),
  onReplace: (listener) => schema.onReplace(listener),
});

/** Checks the schema that replaces the one of a handler. */
function checkSchema(
  scope: OptionScope,
  schema: unknown,
  settings: CoreSettings,
  { extensions, serve }: Pick<SchemaSource, 'serve'> & { readonly extensions: readonly Extension[] },
): GraphQLSchema {
  if (!(schema instanceof GraphQLSchema)) throw notASchema({ ...scope, name: 'replace' }, schema);
  assertValidSchema(schema);
  hasBatchResolvers(schema);
  assertIncremental(scope, schema, settings);
  for (const { check } of extensions) check?.(schema);
  noteHandler(schema);
  return serve(schema);
}

function schemaSource(scope: OptionScope, schema: unknown, extensions: readonly Extension[]): SchemaSource {
  const serve = (given: GraphQLSchema): GraphQLSchema => {
    for (const { noteUnenforced } of extensions) noteUnenforced?.(given);
    return served(extensions, given);
  };
  if (typeof schema !== 'function') {
    if (!(schema instanceof GraphQLSchema)) throw notASchema(scope, schema);
    assertValidSchema(schema);
    hasBatchResolvers(schema);
    if (scope === GRAPHQL_OPTIONS) noteHandler(schema);
    const one = serve(schema);
    const replaceable = new ReplaceableSchema(scope, one);
    return { one, replaceable, serve, schemaFor: () => replaceable.current, hasOneSchema: true };
  }
  const assertSchema = (value: unknown): GraphQLSchema => {
    if (!(value instanceof GraphQLSchema)) throw notASchema(scope, value);
    return serve(value);
  };
  return {
    schemaFor: (request) => settle(withNativePromise((schema as Callable)(request)), assertSchema),
    hasOneSchema: false,
    one: undefined,
    replaceable: new ReplaceableSchema(scope, undefined),
    serve,
  };
}
