import { GraphQLError, type GraphQLSchema, getOperationAST } from 'graphql';
import type {
  Engine,
  EngineSettings,
  GraphQLParams,
  PreparedOperation,
  RequestError,
} from '../../execution/types.ts';
import { assertSync } from '../../options/assert-sync.ts';
import { GRAPHQL_OPTIONS } from '../../options/scopes.ts';
import { refusalError } from '../errors.ts';
import type { CoreSettings } from '../options.ts';
import { type Cache, createCache } from './cache.ts';
import { type Checked, createChecker, type Read } from './validate.ts';

/** Prepares operations: parsed, measured, validated and compiled once, kept in bounded caches. */
export interface Documents {
  prepare(
    schema: GraphQLSchema,
    params: Pick<GraphQLParams, 'query' | 'operationName'>,
    source?: unknown,
  ): PreparedOperation | RequestError;
  /**
   * Reads a document that is new, so that others may have a turn before `prepare` validates it, which has to follow.
   * False for a known one.
   */
  readAhead(schema: GraphQLSchema, query: string): boolean;
  /** Whether the document has been validated, well or not. */
  knows(schema: GraphQLSchema, query: string): boolean;
}

interface Entry extends Checked {
  readonly operations: Map<string | undefined, PreparedOperation>;
}

/** What is known for one schema: good documents, and failed ones apart, so that junk cannot push the good ones out. */
interface Known {
  readonly good: Cache<Entry>;
  readonly failed: Cache<RequestError>;
}

const GOOD = { entries: 1000, characters: 1024 * 1024 };
const FAILED = { entries: 200, characters: 256 * 1024 };

/** The documents of one core. */
export function createDocuments(engine: Engine, settings: EngineSettings, options: CoreSettings): Documents {
  const checker = createChecker(options, settings);
  const ahead = new Map<string, Read | RequestError>();
  const bySchema = new WeakMap<GraphQLSchema, Known>();
  let recent: { schema: GraphQLSchema; known: Known } | undefined;
  const allowsIntrospection = introspectionOf(options.introspection);

  function knownFor(schema: GraphQLSchema): Known {
    if (recent?.schema === schema) return recent.known;
    let known = bySchema.get(schema);
    if (known === undefined) {
      known = { good: createCache(GOOD), failed: createCache(FAILED) };
      bySchema.set(schema, known);
    }
    recent = { schema, known };
    return known;
  }

  function entryFor(schema: GraphQLSchema, query: string): Entry | RequestError {
    const { good, failed } = knownFor(schema);
    const found = good.get(query) ?? failed.get(query);
    if (found !== undefined) return found;
    const read = ahead.get(query) ?? checker.read(query);
    ahead.delete(query);
    const checked = 'errors' in read ? read : checker.validate(schema, read);
    if ('errors' in checked) {
      failed.set(query, checked);
      return checked;
    }
    const entry = { ...checked, operations: new Map() };
    good.set(query, entry);
    return entry;
  }

  function knows(schema: GraphQLSchema, query: string): boolean {
    const { good, failed } = knownFor(schema);
    return good.get(query) !== undefined || failed.get(query) !== undefined;
  }

  return {
    prepare(schema, { query, operationName }, source) {
      const entry = entryFor(schema, query);
      if ('errors' in entry) return entry;
      if (entry.introspects && !allowsIntrospection(source)) return introspectionRefused();
      let prepared = entry.operations.get(operationName);
      if (prepared === undefined) {
        const selected = select(schema, query, entry, operationName);
        if ('errors' in selected) return selected;
        prepared = { ...selected, run: engine(selected, settings) };
        entry.operations.set(operationName, prepared);
      }
      return prepared;
    },
    readAhead(schema, query) {
      if (knows(schema, query)) return false;
      if (!ahead.has(query)) ahead.set(query, checker.read(query));
      return true;
    },
    knows,
  };
}

function select(
  schema: GraphQLSchema,
  source: string,
  { document, cost }: Checked,
  operationName: string | undefined,
): Omit<PreparedOperation, 'run'> | RequestError {
  const operation = getOperationAST(document, operationName);
  if (operation !== null && operation !== undefined) return { schema, source, document, operation, cost };
  const message =
    operationName === undefined
      ? 'The document has not exactly one operation: say which one with "operationName"'
      : `The document has no operation named "${operationName}"`;
  return { errors: [refusalError(message, 'OPERATION_NOT_FOUND')], status: 400 };
}

function introspectionOf(option: CoreSettings['introspection']): (source: unknown) => boolean {
  if (typeof option !== 'function') return () => option;
  return (source) => assertSync(option(source), GRAPHQL_OPTIONS, 'introspection');
}

const introspectionRefused = (): RequestError => ({
  errors: [
    new GraphQLError('Introspection is switched off here', { extensions: { code: 'INTROSPECTION_OFF' } }),
  ],
  status: 400,
});
