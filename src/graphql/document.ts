import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  parse,
  specifiedRules,
  type ValidationRule,
  validate,
} from 'graphql';
import type { Engine, EngineSettings, GraphQLParams, PreparedOperation, Refusal } from './contract.ts';
import type { CoreSettings } from './settings.ts';

/** Prepares operations: parsed, validated and compiled once, kept in a bounded cache. */
export interface Documents {
  prepare(
    schema: GraphQLSchema,
    params: Pick<GraphQLParams, 'query' | 'operationName'>,
    source?: unknown,
  ): PreparedOperation | Refusal;
}

interface Entry {
  readonly document: DocumentNode | undefined;
  readonly refusal: Refusal | undefined;
  readonly operations: Map<string | undefined, PreparedOperation | Refusal>;
}

const MAX_ENTRIES = 1000;

/** A document cache of its own for one core. */
export function createDocuments(
  engine: Engine,
  settings: EngineSettings,
  { validationRules }: CoreSettings,
): Documents {
  const rules = [...specifiedRules, ...validationRules];
  const caches = new WeakMap<GraphQLSchema, Map<string, Entry>>();

  function entryFor(schema: GraphQLSchema, query: string): Entry {
    let cache = caches.get(schema);
    if (cache === undefined) {
      cache = new Map();
      caches.set(schema, cache);
    }
    let entry = cache.get(query);
    if (entry === undefined) {
      entry = check(schema, query, rules);
      if (cache.size >= MAX_ENTRIES) cache.delete(cache.keys().next().value as string);
      cache.set(query, entry);
    }
    return entry;
  }

  return {
    prepare(schema, { query, operationName }) {
      const { document, refusal, operations } = entryFor(schema, query);
      if (document === undefined) return refusal as Refusal;
      let prepared = operations.get(operationName);
      if (prepared === undefined) {
        prepared = select(schema, query, document, operationName, engine, settings);
        if ('run' in prepared) operations.set(operationName, prepared);
      }
      return prepared;
    },
  };
}

function check(schema: GraphQLSchema, query: string, rules: readonly ValidationRule[]): Entry {
  const operations = new Map<string | undefined, PreparedOperation | Refusal>();
  try {
    const document = parse(query);
    const errors = validate(schema, document, rules);
    if (errors.length === 0) return { document, refusal: undefined, operations };
    return { document: undefined, refusal: { errors, status: 400 }, operations };
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    return { document: undefined, refusal: { errors: [error], status: 400 }, operations };
  }
}

function select(
  schema: GraphQLSchema,
  source: string,
  document: DocumentNode,
  operationName: string | undefined,
  engine: Engine,
  settings: EngineSettings,
): PreparedOperation | Refusal {
  const operation = getOperationAST(document, operationName);
  if (operation === null || operation === undefined) {
    const message =
      operationName === undefined
        ? 'Must provide operation name if query contains multiple operations.'
        : `Unknown operation named "${operationName}".`;
    return { errors: [new GraphQLError(message)], status: 400 };
  }
  const prepared = { schema, source, document, operation };
  return { ...prepared, run: engine(prepared, settings) };
}
