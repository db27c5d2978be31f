import { createHash, randomUUID } from 'node:crypto';
import { type GraphQLSchema, printSchema } from 'graphql';
import type { PreparedOperation } from '../../execution/types.ts';
import { canonicalJson, NOT_JSON } from './canonical-json.ts';

/** Longer keys are replaced by their hash, so that large variables do not fill the store. */
const MAX_KEY_LENGTH = 512;

/** Uncacheable results in a row, from which most requests for an operation do not use the store. */
const MAX_UNCACHEABLE = 8;
/** One of this many requests tries again. */
const RETRY_INTERVAL = 16;

const digest = (text: string): string => createHash('sha256').update(text).digest('base64url');

/** Returns the part of keys that separates schemas. */
type SchemaId = (schema: GraphQLSchema) => string;

/**
 * Creates the ids of schemas. The schema of a handler has the same id in all processes, so that they can share a store.
 * The schemas of a function may differ only in their resolvers, for example for each tenant, so each has a random id.
 */
export function createSchemaId({ hasOneSchema }: { readonly hasOneSchema: boolean }): SchemaId {
  const ids = new WeakMap<GraphQLSchema, string>();
  return (schema) => {
    let id = ids.get(schema);
    if (id === undefined) {
      id = hasOneSchema ? digest(printSchema(schema)) : randomUUID();
      ids.set(schema, id);
    }
    return id;
  };
}

/** The parts of a key that differ between requests for one operation. */
interface RequestParts {
  readonly variables: Readonly<Record<string, unknown>> | undefined;
  /** The extensions of the request, which a context function may read. */
  readonly extensions: Readonly<Record<string, unknown>> | undefined;
  readonly type: string;
  /** The part that the option `key` returned. */
  readonly user: string;
  /** Host and path, from which an application may take the tenant. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** The extensions without those of Apollo's clients: the hash of the document, and the version of the client. */
function extensionsText({
  persistedQuery: _,
  clientLibrary: __,
  ...others
}: Readonly<Record<string, unknown>>): string {
  return Object.keys(others).length === 0 ? '' : canonicalJson(others);
}

/** Creates the keys of one operation. */
export class KeyPlan {
  readonly #prefix: string;
  readonly #variables: readonly string[];
  /** The request headers that results depend on, sorted. */
  #vary: readonly string[];
  #uncacheable = 0;
  #skipped = 0;
  #isCacheable = true;

  constructor({ source, operation }: PreparedOperation, schemaId: string, vary: readonly string[]) {
    const name = operation.name?.value ?? '';
    this.#prefix = digest(`${schemaId}${name} ${source}`);
    this.#variables = (operation.variableDefinitions ?? []).map(({ variable }) => variable.name.value);
    this.#vary = [...new Set(vary.map((header) => header.toLowerCase()))].sort();
  }

  /** The request headers that keys contain at present. */
  get vary(): readonly string[] {
    return this.#vary;
  }

  /** Whether the last result of the operation was cacheable, so that requests may wait for each other. */
  get isCacheable(): boolean {
    return this.#isCacheable;
  }

  /** Whether a request should use the store. */
  shouldTry(): boolean {
    if (this.#uncacheable < MAX_UNCACHEABLE) return true;
    this.#skipped = (this.#skipped + 1) % RETRY_INTERVAL;
    return this.#skipped === 0;
  }

  /** Counts the result of an execution. One with errors says nothing about the other results of the operation. */
  count(isCacheable: boolean, hasErrors: boolean): void {
    this.#isCacheable = isCacheable;
    if (isCacheable) this.#uncacheable = 0;
    else if (!hasErrors) this.#uncacheable += 1;
  }

  /** Call it for a stored result: the operation has cacheable results, also if other variables have not. */
  found(): void {
    this.#uncacheable = 0;
  }

  /**
   * Adds request headers that a result depends on. Returns false if one of them is not among `known`, the headers in
   * the key of the result: another request may have added it since that key was created.
   */
  covers(vary: readonly string[], known: readonly string[]): boolean {
    if (vary.every((header) => known.includes(header))) return true;
    this.#vary = [...new Set([...this.#vary, ...vary])].sort();
    return false;
  }

  /** Returns the key of a request; undefined if its variables or extensions have no JSON form. */
  keyOf({ variables, extensions, type, user, target, headers }: RequestParts): string | undefined {
    let text = '';
    try {
      if (variables !== undefined) {
        for (const name of this.#variables) {
          text += Object.hasOwn(variables, name) ? `${canonicalJson(variables[name])},` : ',';
        }
      }
      if (extensions !== undefined) text += extensionsText(extensions);
    } catch (error) {
      // Deeply nested values overflow the stack.
      if (error === NOT_JSON || error instanceof RangeError) return undefined;
      throw error;
    }
    // The lengths keep the parts apart, whatever they contain.
    let key = `${type} ${text.length} ${user.length} ${target.length} ${text}${user}${target}`;
    if (this.#vary.length > 0) key += JSON.stringify(this.#vary.map((name) => [name, headers[name]]));
    return this.#prefix + (key.length > MAX_KEY_LENGTH ? digest(key) : key);
  }
}
