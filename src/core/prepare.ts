import type { GraphQLSchema } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import type {
  Engine,
  EngineSettings,
  GraphQLParams,
  PreparedOperation,
  RequestError,
} from '../execution/types.ts';
import { createDocumentCache, retainedBytes } from './documents/document-cache.ts';
import { createLoadQueue } from './documents/load-queue.ts';
import { createOperationSelector, type LoadedDocument } from './documents/operations.ts';
import { createValidator, type Parsed } from './documents/validate.ts';
import { warmUpValidation } from './documents/warm-up.ts';
import { createOperationFactory } from './incremental.ts';
import type { CoreSettings } from './options.ts';
import { fitsIntoIteration, yieldToEventLoop } from './yield-to-event-loop.ts';

/** The parameters that select an operation. */
export type DocumentParams = Pick<GraphQLParams, 'query' | 'operationName' | 'document'>;

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
  params: DocumentParams,
  source?: unknown,
) => MaybePromise<PreparedOperation | RequestError>;

const LONG_DOCUMENT = 2000;

/** Whether this document takes so long to prepare that other work should run between the steps. */
export const isLongDocument = (query: string): boolean => query.length > LONG_DOCUMENT;

/**
 * The fraction of the budget for refused documents. Their cache is separate, so that they cannot evict valid
 * documents.
 */
const REFUSED_SHARE = 1 / 8;

/**
 * Reads the stacks of errors that are kept. Until then V8 retains the functions of their frames, and with them the
 * parsed document and the request.
 */
function forgetFrames({ errors }: RequestError): void {
  for (const error of errors) void error.stack;
}

/** Measured: bytes of an error with its stack, which contains the message once more. */
const ERROR_BYTES = 2500;

const errorBytes = ({ errors }: RequestError): number =>
  errors.reduce((sum, { message }) => sum + ERROR_BYTES + message.length * 2, 0);

/** Creates the `prepare` function of one core, with its caches. */
export function createPrepare(engine: Engine, settings: EngineSettings, options: CoreSettings): Prepare {
  const validator = createValidator(options, settings);
  const { documentCacheBytes } = options;
  const valid = createDocumentCache<LoadedDocument>(documentCacheBytes * (1 - REFUSED_SHARE));
  const refused = createDocumentCache<RequestError>(documentCacheBytes * REFUSED_SHARE);
  const createOperation = createOperationFactory(engine, settings, options);
  const { select } = createOperationSelector(options, (operation) =>
    createOperation(operation, {
      charge: (bytes) => valid.charge(operation.schema, operation.source, bytes),
    }),
  );
  const queue = createLoadQueue<LoadedDocument | RequestError>();

  function validateAndStore(
    schema: GraphQLSchema,
    query: string,
    parsed: Parsed | RequestError,
  ): LoadedDocument | RequestError {
    const validated = validator.validate(schema, parsed);
    if ('errors' in validated) {
      forgetFrames(validated);
      // Validation errors refer to nodes of the document.
      const document = 'errors' in parsed ? undefined : parsed.document;
      refused.set(schema, query, validated, retainedBytes(query, document) + errorBytes(validated));
      return validated;
    }
    const entry = { ...validated, source: query, operations: new Map() };
    valid.set(schema, query, entry, retainedBytes(query, validated.document));
    return entry;
  }

  async function loadWithYields(
    schema: GraphQLSchema,
    query: string,
  ): Promise<LoadedDocument | RequestError> {
    await yieldToEventLoop();
    const parsed = validator.parse(query);
    if (!('errors' in parsed)) await warmUpValidation(parsed.document.tokenCount);
    await yieldToEventLoop();
    return validateAndStore(schema, query, parsed);
  }

  async function prepareInTurns(
    schema: GraphQLSchema,
    params: DocumentParams,
    source: unknown,
  ): Promise<PreparedOperation | RequestError> {
    const { query } = params;
    const entry = await queue(schema, query, () => loadWithYields(schema, query));
    const prepared = select(schema, entry, params.operationName, source);
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
    return select(schema, entry, params.operationName, source);
  };
}
