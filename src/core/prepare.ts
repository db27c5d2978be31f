import { type GraphQLSchema, getOperationAST } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import type {
  Engine,
  EngineSettings,
  GraphQLParams,
  PreparedOperation,
  RequestError,
  ValidatedOperation,
} from '../execution/types.ts';
import { assertSync } from '../options/assert-sync.ts';
import { GRAPHQL_OPTIONS } from '../options/scopes.ts';
import { type Cache, createCache } from './documents/cache.ts';
import { createValidator, type Parsed, type Validated } from './documents/validate.ts';
import { refusalError } from './errors.ts';
import type { CoreSettings } from './options.ts';
import { yieldToEventLoop } from './yield-to-event-loop.ts';

/**
 * Turns a document text and an operation name into a prepared operation: parse, limits, validation, compilation, each
 * done once per document. Errors of the client are returned, not thrown.
 *
 * The result is a promise only for a long document that is not in the cache; the work on it then yields to the event loop
 * between its steps. `source` is the request or socket, for an `introspection` option that is a function.
 */
export type Prepare = (
  schema: GraphQLSchema,
  params: Pick<GraphQLParams, 'query' | 'operationName'>,
  source?: unknown,
) => MaybePromise<PreparedOperation | RequestError>;

const LONG_DOCUMENT = 2000;

/** Whether work on this document takes so long that other work should run in between. */
export const isLongDocument = (query: string): boolean => query.length > LONG_DOCUMENT;

interface CacheEntry extends Validated {
  readonly operations: Map<string | undefined, PreparedOperation>;
}

/** The documents of one schema. Refused ones have a cache apart, so that they cannot evict the valid ones. */
interface SchemaDocuments {
  readonly schema: GraphQLSchema;
  readonly valid: Cache<CacheEntry>;
  readonly refused: Cache<RequestError>;
  /** Long documents that are being prepared: concurrent requests for one share the work. */
  readonly pending: Map<string, Promise<CacheEntry | RequestError>>;
}

const VALID_BOUNDS = { entries: 1000, characters: 1024 * 1024 };
const REFUSED_BOUNDS = { entries: 200, characters: 256 * 1024 };

/** Creates the `prepare` of one core, with its caches. */
export function createPrepare(engine: Engine, settings: EngineSettings, options: CoreSettings): Prepare {
  const validator = createValidator(options, settings);
  const documentsOf = createDocuments();
  const allowsIntrospection = introspectionCheck(options.introspection);

  function validateAndStore(
    { schema, valid, refused }: SchemaDocuments,
    query: string,
    parsed: Parsed | RequestError,
  ): CacheEntry | RequestError {
    const validated = 'errors' in parsed ? parsed : validator.validate(schema, parsed);
    if ('errors' in validated) {
      refused.set(query, validated);
      return validated;
    }
    const entry = { ...validated, operations: new Map() };
    valid.set(query, entry);
    return entry;
  }

  function operationOf(
    schema: GraphQLSchema,
    entry: CacheEntry | RequestError,
    { query, operationName }: Pick<GraphQLParams, 'query' | 'operationName'>,
    source: unknown,
  ): PreparedOperation | RequestError {
    if ('errors' in entry) return entry;
    if (entry.introspects && !allowsIntrospection(source)) return introspectionRefused();
    let prepared = entry.operations.get(operationName);
    if (prepared === undefined) {
      const selected = selectOperation(schema, query, entry, operationName);
      if ('errors' in selected) return selected;
      prepared = { ...selected, execute: engine(selected, settings) };
      entry.operations.set(operationName, prepared);
    }
    return prepared;
  }

  async function loadInTurns(documents: SchemaDocuments, query: string): Promise<CacheEntry | RequestError> {
    try {
      await yieldToEventLoop();
      const parsed = validator.parse(query);
      await yieldToEventLoop();
      return validateAndStore(documents, query, parsed);
    } finally {
      documents.pending.delete(query);
    }
  }

  async function prepareInTurns(
    documents: SchemaDocuments,
    params: Pick<GraphQLParams, 'query' | 'operationName'>,
    source: unknown,
  ): Promise<PreparedOperation | RequestError> {
    const { pending, schema } = documents;
    let loading = pending.get(params.query);
    if (loading === undefined) {
      loading = loadInTurns(documents, params.query);
      pending.set(params.query, loading);
    }
    const prepared = operationOf(schema, await loading, params, source);
    // The caller executes the operation next.
    await yieldToEventLoop();
    return prepared;
  }

  return (schema, params, source) => {
    const { query } = params;
    const documents = documentsOf(schema);
    let entry = documents.valid.get(query) ?? documents.refused.get(query);
    if (entry === undefined) {
      if (isLongDocument(query)) return prepareInTurns(documents, params, source);
      entry = validateAndStore(documents, query, validator.parse(query));
    }
    return operationOf(schema, entry, params, source);
  };
}

/** The documents by schema; the last schema is found without a look-up. */
function createDocuments(): (schema: GraphQLSchema) => SchemaDocuments {
  const bySchema = new WeakMap<GraphQLSchema, SchemaDocuments>();
  let last: SchemaDocuments | undefined;
  return (schema) => {
    if (last?.schema === schema) return last;
    let documents = bySchema.get(schema);
    if (documents === undefined) {
      documents = {
        schema,
        valid: createCache(VALID_BOUNDS),
        refused: createCache(REFUSED_BOUNDS),
        pending: new Map(),
      };
      bySchema.set(schema, documents);
    }
    last = documents;
    return documents;
  };
}

function selectOperation(
  schema: GraphQLSchema,
  source: string,
  { document, cost }: Validated,
  operationName: string | undefined,
): ValidatedOperation | RequestError {
  const operation = getOperationAST(document, operationName);
  if (operation !== null && operation !== undefined) return { schema, source, document, operation, cost };
  const message =
    operationName === undefined
      ? 'The document must contain exactly one operation, or the request must name one with "operationName"'
      : `The document contains no operation named "${operationName}"`;
  return { errors: [refusalError(message, 'OPERATION_RESOLUTION_FAILURE')], status: 400 };
}

function introspectionCheck(option: CoreSettings['introspection']): (source: unknown) => boolean {
  if (typeof option !== 'function') return () => option;
  return (source) => assertSync(option(source), GRAPHQL_OPTIONS, 'introspection');
}

const introspectionRefused = (): RequestError => ({
  errors: [refusalError('Introspection is disabled', 'INTROSPECTION_OFF')],
  status: 400,
});
