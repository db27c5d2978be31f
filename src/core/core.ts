import {
  assertValidSchema,
  type GraphQLError,
  type GraphQLFormattedError,
  type GraphQLSchema,
  isSchema,
} from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import type { EngineSettings } from '../execution/types.ts';
import { assertSync } from '../options/assert-sync.ts';
import { type OptionScope, wrongArgument } from '../options/resolve-options.ts';
import { GRAPHQL_OPTIONS } from '../options/scopes.ts';
import { createErrorFormatter, MASKED } from './errors.ts';
import type { CoreSettings } from './options.ts';
import { createPrepare, type Prepare } from './prepare.ts';
import { selectEngine } from './select-engine.ts';

/**
 * One schema with its settings, which HTTP and sockets share: a document that one of them has prepared is in the cache of
 * the other.
 */
export interface GraphQLCore {
  /** Returns the schema for a request or socket. */
  schemaFor(request: unknown): MaybePromise<GraphQLSchema>;
  /** Turns a document text into a prepared operation. */
  readonly prepare: Prepare;
  /** The limit of values in the variables of one operation. */
  readonly maxVariables: number;
  /** Returns the context value: the static one, or what the function of the request (HTTP) or WebSocket returns. */
  contextFor(source: unknown): MaybePromise<unknown>;
  /** Returns the root value for a request or WebSocket. */
  rootValueFor(source: unknown): unknown;
  /** Masks, clips and formats errors for the client. */
  formatErrors(errors: readonly GraphQLError[]): readonly GraphQLFormattedError[];
}

/** The property of a `graphqlHTTP` handler that holds its core; registered, so that it is equal in the CommonJS and the ES build. */
export const CORE: unique symbol = Symbol.for('espalier.core');

/** Returns the core of a `graphqlHTTP` handler, or undefined for any other value. */
export function coreOf(handler: unknown): GraphQLCore | undefined {
  return typeof handler === 'function' ? (handler as { [CORE]?: GraphQLCore })[CORE] : undefined;
}

type Callable = (source: unknown) => unknown;

/**
 * Creates the core of one schema, or of a function that returns one per request.
 *
 * @throws TypeError if `schema` is neither a GraphQLSchema nor a function, or if the schema is invalid.
 */
export function createCore(scope: OptionScope, schema: unknown, settings: CoreSettings): GraphQLCore {
  const { NODE_ENV } = process.env;
  const formatErrors = createErrorFormatter(settings);
  const engineSettings: EngineSettings = {
    fieldResolver: settings.fieldResolver,
    typeResolver: settings.typeResolver,
    maxErrors: settings.limits.errors,
    // Suggestions reveal the schema piece by piece, and help only in development.
    hideSuggestions: !(settings.suggestions ?? NODE_ENV !== 'production'),
    maskedMessage: settings.formatError === undefined ? MASKED : undefined,
    formatErrors,
  };
  const { context, rootValue } = settings;
  return {
    schemaFor: schemaSource(scope, schema),
    prepare: createPrepare(selectEngine(settings.engine), engineSettings, settings),
    maxVariables: settings.limits.variables,
    contextFor: typeof context === 'function' ? (source) => (context as Callable)(source) : () => context,
    rootValueFor:
      typeof rootValue === 'function'
        ? (source) => assertSync((rootValue as Callable)(source), GRAPHQL_OPTIONS, 'rootValue')
        : () => rootValue,
    formatErrors,
  };
}

function schemaSource(scope: OptionScope, schema: unknown): GraphQLCore['schemaFor'] {
  if (typeof schema !== 'function') {
    if (!isSchema(schema)) throw notASchema(scope, schema);
    assertValidSchema(schema);
    return () => schema;
  }
  const assertSchema = (value: unknown): GraphQLSchema => {
    if (!isSchema(value)) throw notASchema(scope, value);
    return value;
  };
  return (request) => {
    const value = (schema as Callable)(request);
    return value instanceof Promise ? value.then(assertSchema) : assertSchema(value);
  };
}

function notASchema(scope: OptionScope, value: unknown): TypeError {
  return wrongArgument(
    scope,
    'schema',
    value,
    'a GraphQLSchema, or a function of the request that returns one',
  );
}
