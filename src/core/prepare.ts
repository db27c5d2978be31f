import { type GraphQLSchema, getOperationAST } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import type { Engine, EngineSettings } from '../execution/engine.ts';
import type {
  GraphQLParams,
  PreparedOperation,
  RequestError,
  ValidatedOperation,
} from '../execution/types.ts';
import { assertSync } from '../options/resolve-options.ts';
import { GRAPHQL_OPTIONS } from '../options/scopes.ts';
import { createDocumentCache, retainedBytes } from './documents/document-cache.ts';
import { createLoadQueue } from './documents/load-queue.ts';
import { createValidator, type Parsed, type Validated } from './documents/validate.ts';
import { refusalError } from './errors.ts';
import { createOperationFactory } from './incremental.ts';
import type { CoreSettings } from './options.ts';
import { fitsIntoIteration, yieldToEventLoop } from './yield-to-event-loop.ts';

/**
 * Turns a document text and an operation name into a prepared operation. Parsing, limits, validation and
 * compilation are each done once per document. Errors of the client are returned, not thrown.
 *
 * The result is a promise only for a document that is not in the cache and is long, or arrives together with
 * many others; the work on it then yields to the event loop between its steps. `source` is the request or
 * socket, for an `introspection` option that is a function.
 */
export type Prepare = (
  schema: GraphQLSchema,
  params: Pick<GraphQLParams, 'query' | 'operationName'>,
  source?: unknown,
) => MaybePromise<PreparedOperation | RequestError>;

const LONG_DOCUMENT = 2000;

/** Whether this document takes so long to prepare that other work should run between the steps. */
export const isLongDocument = (query: string): boolean => query.length > LONG_DOCUMENT;

interface CachedDocument extends Validated {
  readonly operations: Map<string | undefined, PreparedOperation>;
}

/**
 * The fraction of the budget for refused documents. Their cache is separate, so that they cannot evict valid
 * documents.
 */
const REFUSED_SHARE = 1 / 8;

/** Creates the `prepare` function of one core, with its caches. */
export function createPrepare(engine: Engine, settings: EngineSettings, options: CoreSettings): Prepare {
  const validator = createValidator(options, settings);
  const { documentCacheBytes } = options;
  const valid = createDocumentCache<CachedDocument>(documentCacheBytes * (1 - REFUSED_SHARE));
  const refused = createDocumentCache<RequestError>(documentCacheBytes * REFUSED_SHARE);
  const allowsIntrospection = introspectionCheck(options.introspection);
  const createOperation = createOperationFactory(engine, settings, options);
  const queue = createLoadQueue<CachedDocument | RequestError>();

  function validateAndStore(
    schema: GraphQLSchema,
    query: string,
    parsed: Parsed | RequestError,
  ): CachedDocument | RequestError {
    const validated = 'errors' in parsed ? parsed : validator.validate(schema, parsed);
    if ('errors' in validated) {
      // Validation errors refer to nodes of the document.
      const document = 'errors' in parsed ? undefined : parsed.document;
      refused.set(schema, query, validated, retainedBytes(query, document));
      return validated;
    }
    const entry = { ...validated, operations: new Map() };
    valid.set(schema, query, entry, retainedBytes(query, validated.document));
    return entry;
  }

  function operationOf(
    schema: GraphQLSchema,
    entry: CachedDocument | RequestError,
    { query, operationName }: Pick<GraphQLParams, 'query' | 'operationName'>,
    source: unknown,
  ): PreparedOperation | RequestError {
    if ('errors' in entry) return entry;
    if (entry.introspects && !allowsIntrospection(source)) return introspectionRefused();
    let prepared = entry.operations.get(operationName);
    if (prepared === undefined) {
      const selected = selectOperation(schema, query, entry, operationName);
      if ('errors' in selected) return selected;
      prepared = createOperation(selected, { charge: (bytes) => valid.charge(schema, query, bytes) });
      entry.operations.set(operationName, prepared);
    }
    return prepared;
  }

  async function loadWithYields(
    schema: GraphQLSchema,
    query: string,
  ): Promise<CachedDocument | RequestError> {
    await yieldToEventLoop();
    const parsed = validator.parse(query);
    await yieldToEventLoop();
    return validateAndStore(schema, query, parsed);
  }

  async function prepareInTurns(
    schema: GraphQLSchema,
    params: Pick<GraphQLParams, 'query' | 'operationName'>,
    source: unknown,
  ): Promise<PreparedOperation | RequestError> {
    const { query } = params;
    const entry = await queue(schema, query, () => loadWithYields(schema, query));
    const prepared = operationOf(schema, entry, params, source);
    // Yields once more, since the caller executes the operation next.
    await yieldToEventLoop();
    return prepared;
  }

  return (schema, params, source) => {
    const { query } = params;
    let entry = valid.get(schema, query) ?? refused.get(schema, query);
    if (entry === undefined) {
      if (isLongDocument(query) || !fitsIntoIteration(query.length)) {
        return prepareInTurns(schema, params, source);
      }
      entry = validateAndStore(schema, query, validator.parse(query));
    }
    return operationOf(schema, entry, params, source);
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
