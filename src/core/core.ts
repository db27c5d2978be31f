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
import { engineOf } from './select-engine.ts';

/**
 * One schema with its options in force, independent of HTTP and of sockets: both run their operations through it, so that
 * a document validated over one is known over the other and context, limits and masking are written once.
 */
export interface GraphQLCore {
  /** The schema for this request or socket. */
  schemaFor(request: unknown): MaybePromise<GraphQLSchema>;
  /** Turns a document text into a prepared operation. */
  readonly prepare: Prepare;
  /** The limit of values in the variables of one operation. */
  readonly maxVariables: number;
  /** The context value for a request (HTTP) or a WebSocket (sockets): a static one as given, a callable's answer. */
  contextFor(source: unknown): MaybePromise<unknown>;
  /** The root value for a request. */
  rootValueFor(source: unknown): unknown;
  /** Masked and clipped errors as clients see them. */
  formatErrors(errors: readonly GraphQLError[]): readonly GraphQLFormattedError[];
}

/** Where a `graphqlHTTP` handler keeps its core; registered, so that the CommonJS and the ES build agree. */
export const CORE: unique symbol = Symbol.for('espalier.core') as never;

/** The core of a `graphqlHTTP` handler, or undefined for anything else. */
export function coreOf(handler: unknown): GraphQLCore | undefined {
  return typeof handler === 'function' ? (handler as { [CORE]?: GraphQLCore })[CORE] : undefined;
}

type Callable = (source: unknown) => unknown;

/**
 * The core of one schema, or of a function that gives one per request. `settings` come from `settleCore`.
 *
 * @throws TypeError for what is no schema, and graphql-js's error for an invalid one.
 */
export function createCore(owner: OptionScope, schema: unknown, settings: CoreSettings): GraphQLCore {
  const { NODE_ENV } = process.env;
  const formatErrors = createErrorFormatter(settings);
  const engineSettings: EngineSettings = {
    fieldResolver: settings.fieldResolver,
    typeResolver: settings.typeResolver,
    maxErrors: settings.limits.errors,
    // Suggestions tell of the schema piece by piece; development is where they help.
    hideSuggestions: !(settings.suggestions ?? NODE_ENV !== 'production'),
    maskedMessage: settings.formatError === undefined ? MASKED : undefined,
    formatErrors,
  };
  const { context, rootValue } = settings;
  return {
    schemaFor: schemaSource(owner, schema),
    prepare: createPrepare(engineOf(settings.engine), engineSettings, settings),
    maxVariables: settings.limits.variables,
    contextFor: typeof context === 'function' ? (source) => (context as Callable)(source) : () => context,
    rootValueFor:
      typeof rootValue === 'function'
        ? (source) => assertSync((rootValue as Callable)(source), GRAPHQL_OPTIONS, 'rootValue')
        : () => rootValue,
    formatErrors,
  };
}

function schemaSource(owner: OptionScope, schema: unknown): GraphQLCore['schemaFor'] {
  if (typeof schema !== 'function') {
    if (!isSchema(schema)) throw notASchema(owner, schema);
    assertValidSchema(schema);
    return () => schema;
  }
  const checked = (value: unknown): GraphQLSchema => {
    if (!isSchema(value)) throw notASchema(owner, value);
    return value;
  };
  return (request) => {
    const value = (schema as Callable)(request);
    return value instanceof Promise ? value.then(checked) : checked(value);
  };
}

function notASchema(owner: OptionScope, value: unknown): TypeError {
  return wrongArgument(
    owner,
    'schema',
    value,
    'a GraphQLSchema, or a function of the request that returns one',
  );
}
