import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  type OperationDefinitionNode,
} from 'graphql';
import type { ErrorDetails, MaybePromise } from '../../types/connect.ts';
import { registerGauge } from '../diagnostics/stats.ts';
import { refuse } from '../execution/graphql-error.ts';
import type {
  Engine,
  EngineSettings,
  GraphQLParams,
  PreparedOperation,
  RequestError,
  ValidatedOperation,
} from '../execution/types.ts';
import { executingSchema } from '../execution/visible-part.ts';
import { byOption, valueFor } from '../options/rules.ts';
import { GRAPHQL_OPTIONS } from '../options/scopes.ts';
import { getOrCreate } from '../options/values.ts';
import { createOperationFactory, selectEngine } from './engines.ts';
import type { CoreSettings } from './options.ts';
import { fitsThisTurn, yieldToEventLoop } from './turns.ts';
import { createValidator, type Parsed, type Validated } from './validate.ts';

/** The parts of a core that its documents need. */
export interface CoreParts {
  /** The schema, or a function that returns one per request. */
  readonly schema: unknown;
  readonly options: CoreSettings;
  readonly engineSettings: EngineSettings;
  /** Reports an error outside of operations, with what is known of the operation that caused it. */
  report(error: unknown, details?: Partial<ErrorDetails>): void;
}

/** The parameters that select an operation. */
export type DocumentParams = Pick<GraphQLParams, 'query' | 'operationName' | 'document'>;

/**
 * Turns a document text and an operation name into a prepared operation. Parsing, limits, validation and
 * compilation are each done once per document. Errors of the client are returned, not thrown.
 *
 * The result is a promise only for a document that is not in the cache and is long, or arrives together with
 * many others; the work on it then yields to the event loop between its steps. `source` is the request or
 * socket, for an `introspection` option that is a function. The operation has the text in `source`, also if the request
 * had only its id.
 */
export type Prepare = (
  schema: GraphQLSchema,
  params: DocumentParams,
  source?: unknown,
) => MaybePromise<PreparedOperation | RequestError>;

/** Prepares a text: that of the request, or one that was found by its id. */
export type PrepareText = (
  ...args: [...request: Parameters<Prepare>, text?: string | undefined]
) => ReturnType<Prepare>;

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

/** The bytes of the documents that a core keeps, without the option `documents.cacheBytes`. */
export const CACHE_BYTES: number = 32 * 1024 * 1024;

/** How the operations of one core are prepared. */
export interface Prepared {
  readonly prepare: Prepare;
  /** Prepares the known documents for another schema, and returns the function that uses them. */
  readonly warm: (from: GraphQLSchema, to: GraphQLSchema) => Promise<() => void>;
}

/** Creates the `prepare` function of one core without the option `documents`. */
export function createPlainDocuments({
  options,
  engineSettings,
}: CoreParts): Prepared & { readonly documents: undefined } {
  const prepare = createPrepare(selectEngine(options.engine), engineSettings, {
    ...options,
    cacheBytes: CACHE_BYTES,
  });
  const warm = async (from: GraphQLSchema, to: GraphQLSchema) => {
    await prepare.warm(from, to);
    return () => undefined;
  };
  return { prepare, documents: undefined, warm };
}

/** Creates the `prepare` function of one core, with its caches. `warm` prepares the documents of one schema for another. */
export function createPrepare(
  engine: Engine,
  settings: EngineSettings,
  options: CoreSettings & { readonly cacheBytes: number },
): PrepareText & { warm(from: GraphQLSchema, to: GraphQLSchema): Promise<void> } {
  const validator = createValidator(options, settings);
  const { cacheBytes } = options;
  const valid = createDocumentCache<LoadedDocument>(cacheBytes * (1 - REFUSED_SHARE));
  const refused = createDocumentCache<RequestError>(cacheBytes * REFUSED_SHARE);
  const createOperation = createOperationFactory(engine, settings, options);
  const { select, prepare: prepareOperation } = createOperationSelector(options, (operation) =>
    createOperation(operation, {
      charge: (bytes) => valid.charge(operation.visible ?? operation.schema, operation.source, bytes),
    }),
  );
  const queue = createLoadQueue<LoadedDocument | RequestError>();

  async function warm(from: GraphQLSchema, to: GraphQLSchema): Promise<void> {
    for (const [query, { operations }] of valid.of(from)) {
      const entry = await queue(to, query, () => loadWithYields(to, query));
      if (entry.kind === 'error') continue;
      for (const { operation } of operations.values()) prepareOperation(to, entry, operation.name?.value);
    }
  }

  function validateAndStore(
    schema: GraphQLSchema,
    query: string,
    parsed: Parsed | RequestError,
  ): LoadedDocument | RequestError {
    const validated = validator.validate(schema, parsed);
    if (validated.kind === 'error') {
      forgetFrames(validated);
      // Validation errors refer to nodes of the document.
      const document = parsed.kind === 'error' ? undefined : parsed.document;
      refused.set(schema, query, validated, retainedBytes(query, document) + errorBytes(validated));
      return validated;
    }
    const entry: LoadedDocument = { ...validated, source: query, operations: new Map() };
    valid.set(schema, query, entry, retainedBytes(query, validated.document));
    return entry;
  }

  async function loadWithYields(
    schema: GraphQLSchema,
    query: string,
  ): Promise<LoadedDocument | RequestError> {
    await yieldToEventLoop();
    const parsed = validator.parse(query);
    await yieldToEventLoop();
    return validateAndStore(schema, query, parsed);
  }

  async function prepareInTurns(
    schema: GraphQLSchema,
    params: DocumentParams,
    source: unknown,
    query: string,
  ): Promise<PreparedOperation | RequestError> {
    const entry = await queue(schema, query, () => loadWithYields(schema, query));
    const prepared = select(schema, entry, params, source);
    // Yields once more, since the caller executes the operation next.
    await yieldToEventLoop();
    return prepared;
  }

  const prepare: PrepareText = (schema, params, source, query = params.query) => {
    let entry = valid.get(schema, query) ?? refused.get(schema, query);
    if (entry === undefined) {
      if (isLongDocument(query) || !fitsThisTurn(query.length)) {
        return prepareInTurns(schema, params, source, query);
      }
      entry = validateAndStore(schema, query, validator.parse(query));
    }
    return select(schema, entry, params, source);
  };
  return Object.assign(prepare, { warm });
}

/** Documents by schema and text, bounded by the bytes that they retain. */
interface DocumentCache<V> {
  get(schema: GraphQLSchema, query: string): V | undefined;
  of(schema: GraphQLSchema): readonly (readonly [query: string, value: V])[];
  /** Stores a document, unless it is larger than one document may be. */
  set(schema: GraphQLSchema, query: string, value: V, bytes: number): void;
  /**
   * Adds to the bytes of a document. Returns false if it is not in the cache or is now larger than one
   * document may be.
   */
  charge(schema: GraphQLSchema, query: string, bytes: number): boolean;
}

/** The largest document, as a fraction of the cache. */
const SHARE = 1 / 8;

interface Entry<V> {
  readonly value: V;
  bytes: number;
}

class Generation<V> {
  bytes = 0;
  entries = 0;
  /** A WeakMap, so that the cache does not keep an unused schema alive. */
  readonly #bySchema = new WeakMap<GraphQLSchema, Map<string, Entry<V>>>();

  get(schema: GraphQLSchema, query: string): Entry<V> | undefined {
    return this.#bySchema.get(schema)?.get(query);
  }

  entriesOf(schema: GraphQLSchema): Iterable<readonly [string, Entry<V>]> {
    return this.#bySchema.get(schema) ?? [];
  }

  add(schema: GraphQLSchema, query: string, entry: Entry<V>): void {
    const entries = getOrCreate(this.#bySchema, schema, () => new Map());
    const replaced = entries.get(query);
    if (replaced === undefined) this.entries++;
    else this.bytes -= replaced.bytes;
    entries.set(query, entry);
    this.bytes += entry.bytes;
  }
}

/**
 * Creates a cache of two generations. When the young generation is full, it replaces the old one, whose
 * entries are evicted unless they were used. A hit in the young generation is one lookup; a
 * least-recently-used list would have to be updated.
 */
export function createDocumentCache<V>(maxBytes: number): DocumentCache<V> {
  let young = new Generation<V>();
  let old = new Generation<V>();

  function add(schema: GraphQLSchema, query: string, entry: Entry<V>): void {
    if ((young.bytes + entry.bytes) * 2 > maxBytes) {
      old = young;
      young = new Generation();
    }
    young.add(schema, query, entry);
  }

  const cache: DocumentCache<V> = {
    get(schema, query) {
      const entry = young.get(schema, query);
      if (entry !== undefined) return entry.value;
      const stale = old.get(schema, query);
      if (stale !== undefined) add(schema, query, stale);
      return stale?.value;
    },
    of(schema) {
      const entries = [...old.entriesOf(schema), ...young.entriesOf(schema)];
      return [...new Map(entries.map(([query, { value }]) => [query, value]))];
    },
    set(schema, query, value, bytes) {
      if (bytes <= maxBytes * SHARE) add(schema, query, { value, bytes });
    },
    charge(schema, query, bytes) {
      const isYoung = young.get(schema, query) !== undefined;
      const generation = isYoung ? young : old;
      const entry = generation.get(schema, query);
      if (entry === undefined) return false;
      entry.bytes += bytes;
      generation.bytes += bytes;
      if (generation.bytes * 2 > maxBytes) {
        if (isYoung) {
          old = young;
          young = new Generation();
        } else old = new Generation();
      }
      return entry.bytes <= maxBytes * SHARE;
    },
  };
  registerGauge(cache, {
    kind: 'documents',
    read: () => ({ entries: young.entries + old.entries, bytes: young.bytes + old.bytes, maxBytes }),
  });
  return cache;
}

/** Measured: bytes per token of a document, with its nodes and their locations, and per character of its text. */
const TOKEN_BYTES = 550;
const CHARACTER_BYTES = 2;
const ENTRY_BYTES = 2000;

/** Estimates the bytes that a cached text retains; `document` is undefined if its nodes are not kept. */
export function retainedBytes(query: string, document: DocumentNode | undefined): number {
  const tokens = document === undefined ? 0 : (document.tokenCount ?? query.length);
  return ENTRY_BYTES + query.length * CHARACTER_BYTES + tokens * TOKEN_BYTES;
}

/** Runs `load` for one document at a time. Concurrent requests for the same document share the result. */
type LoadQueue<V> = (schema: GraphQLSchema, query: string, load: () => Promise<V>) => Promise<V>;

/** Creates a queue that loads one document at a time, which bounds the memory of many simultaneous requests. */
function createLoadQueue<V>(): LoadQueue<V> {
  const bySchema = new WeakMap<GraphQLSchema, Map<string, Promise<V>>>();
  let last: Promise<unknown> = Promise.resolve();
  return (schema, query, load) => {
    const loading = getOrCreate(bySchema, schema, () => new Map());
    const known = loading.get(query);
    if (known !== undefined) return known;
    const result = last.then(load);
    loading.set(query, result);
    const remove = (): unknown => loading.delete(query);
    last = result.then(remove, remove);
    return result;
  };
}

/** A validated document with its prepared operations by name. */
export interface LoadedDocument extends Validated {
  readonly source: string;
  readonly operations: Map<string | undefined, PreparedOperation>;
}

/** Selects an operation of a document by name, and prepares it when it is first selected. */
export interface OperationSelector {
  /** `source` is the request or socket, for an `introspection` option that is a function. */
  select(
    schema: GraphQLSchema,
    entry: LoadedDocument | RequestError,
    params: DocumentParams,
    source: unknown,
  ): PreparedOperation | RequestError;
  /** Selects an operation whatever the option `introspection` says. */
  prepare(
    schema: GraphQLSchema,
    entry: LoadedDocument,
    operationName: string | undefined,
  ): PreparedOperation | RequestError;
}

/** Creates a selector. `createOperation` prepares a validated operation. */
export function createOperationSelector(
  { introspection }: Pick<CoreSettings, 'introspection'>,
  createOperation: (operation: ValidatedOperation) => PreparedOperation,
): OperationSelector {
  const allowsIntrospection = valueFor(GRAPHQL_OPTIONS, 'introspection', introspection);

  const prepare: OperationSelector['prepare'] = (schema, entry, operationName) => {
    let prepared = entry.operations.get(operationName);
    if (prepared === undefined) {
      const selected = findOperation(schema, entry, operationName);
      if (selected.kind === 'error') return selected;
      prepared = createOperation(selected);
      entry.operations.set(operationName, prepared);
    }
    return prepared;
  };

  return {
    prepare,
    select(schema, entry, { operationName }, source) {
      if (entry.kind === 'error') return entry;
      if (entry.introspects && !allowsIntrospection(source)) {
        return refuse(`Introspection is disabled${byOption('introspection')}`, 'INTROSPECTION_OFF');
      }
      return prepare(schema, entry, operationName);
    },
  };
}

function findOperation(
  given: GraphQLSchema,
  { source, document, size }: LoadedDocument,
  operationName: string | undefined,
): ValidatedOperation | RequestError {
  const operation = getOperationAST(document, operationName);
  if (operation !== null && operation !== undefined) {
    // graphql 17 has a validation rule for this; 16 fails when it executes the operation.
    if (given.getRootType(operation.operation) == null) return noRootType(operation);
    const schema = executingSchema(given, operation.operation);
    const visible = schema === given ? undefined : given;
    return { kind: 'operation', schema, visible, source, document, operation, size };
  }
  const message =
    operationName === undefined
      ? 'The document must contain exactly one operation, or the request must name one with "operationName"'
      : `The document contains no operation named "${operationName}"`;
  return refuse(message, 'OPERATION_RESOLUTION_FAILURE');
}

function noRootType(operation: OperationDefinitionNode): RequestError {
  const error = new GraphQLError(`Schema is not configured to execute ${operation.operation} operation.`, {
    nodes: operation,
    extensions: { code: 'GRAPHQL_VALIDATION_FAILED' },
  });
  return { kind: 'error', errors: [error], status: 400 };
}
