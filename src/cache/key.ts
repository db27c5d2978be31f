import { createHash, randomUUID } from 'node:crypto';
import { type GraphQLSchema, printSchema } from 'graphql';
import type { ConnectRequest } from '../../types/connect.ts';
import { ID_PARAMETERS, OPERATION_PARAMETERS } from '../core/document-id.ts';
import type { PreparedOperation } from '../execution/types.ts';
import type { Exchange } from '../http/exchange.ts';
import { cacheByHeader } from '../http/negotiation.ts';
import { hasParameter, pathOf, publicHostOf } from '../http/routing.ts';
import { getOrCreate } from '../options/values.ts';

/** Longer keys are replaced by their hash, so that large variables do not fill the store. */
const MAX_KEY_LENGTH = 512;

const digest = (text: string): string => createHash('sha256').update(text).digest('base64url');

/** Returns the part of keys that separates schemas. */
type SchemaId = (schema: GraphQLSchema) => string;

/**
 * Creates the ids of schemas. The schema of a handler has the same id in all processes, so that they can share a store.
 * The schemas of a function may differ only in their resolvers, for example for each tenant, so each has a random id.
 */
export function createSchemaId(hasOneSchema: () => boolean): SchemaId {
  const ids = new WeakMap<GraphQLSchema, string>();
  return (schema) => {
    return getOrCreate(ids, schema, () => (hasOneSchema() ? digest(printSchema(schema)) : randomUUID()));
  };
}

/** The parts of a key that differ between requests for one operation. */
interface RequestParts {
  readonly variables: Readonly<Record<string, unknown>> | undefined;
  /** The extensions of the request, which a context function may read. */
  readonly extensions: Readonly<Record<string, unknown>> | undefined;
  /** The media type. */
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

export class KeyPlan {
  readonly #prefix: string;
  readonly #variables: readonly string[];
  /** The request headers that results depend on, sorted. */
  #vary: readonly string[] = [];
  /** Whether the last result of the operation was cacheable, so that requests may wait for each other. */
  isCacheable = true;

  constructor({ source, operation }: PreparedOperation, schemaId: string) {
    const name = operation.name?.value ?? '';
    this.#prefix = digest(`${schemaId}${name} ${source}`);
    this.#variables = (operation.variableDefinitions ?? []).map(({ variable }) => variable.name.value);
  }

  /** The request headers that keys contain at present. */
  get vary(): readonly string[] {
    return this.#vary;
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

/** Thrown for a value that has no JSON form, such as an uploaded file. */
const NOT_JSON: unique symbol = Symbol('not JSON');

/**
 * Returns the JSON text of a value with sorted members, so that equal variables have equal texts.
 *
 * @throws NOT_JSON
 */
function canonicalJson(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value !== 'object') {
    // `String` returns the same text for both zeros.
    if (Object.is(value, -0)) return '-0';
    if (value === undefined || typeof value === 'boolean' || Number.isFinite(value)) return String(value);
    throw NOT_JSON;
  }
  if (value === null) return 'null';
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join()}]`;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) throw NOT_JSON;
  const members = value as Readonly<Record<string, unknown>>;
  const texts = Object.keys(members)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonicalJson(members[name])}`);
  return `{${texts.join()}}`;
}

const PORT = /:\d+$/;

/**
 * Creates the function that returns the part of keys that separates requests by host, path and further parameters of
 * the URL. They also separate the entries of HTTP caches (RFC 9111 §2): an application may take the tenant from them.
 * Processes of one application may have different ports. Neither host nor path contains the line break: a `Host` with
 * a slash must not look like another host with a longer path.
 */
export function createTargetKey({
  documents,
}: {
  readonly documents?: unknown;
}): (req: ConnectRequest) => string {
  const own = new Set<string>([...OPERATION_PARAMETERS, ...(documents === undefined ? [] : ID_PARAMETERS)]);
  const isFurther = (name: string): boolean => !own.has(name);
  return (req) => {
    const host = publicHostOf(req)?.replace(PORT, '') ?? '';
    const { url: current = '', originalUrl: url = current } = req;
    // Middleware may have added the tenant of a header. A router has only removed its prefix.
    const rewritten = url.endsWith(current.slice(1)) ? '' : `\n${current}`;
    const target = `${host}\n${pathOf(url)}${rewritten}`;
    if (!url.includes('?')) return target;
    const parameters = url.slice(url.indexOf('?') + 1);
    if (hasBody(req)) return `${target}?${parameters}`;
    // Most requests have none.
    if (!hasParameter(url, isFurther)) return target;
    const further = parameters.split('&').filter((pair) => hasParameter(`?${pair}`, isFurther));
    return `${target}?${further.join('&')}`;
  };
}

/** Whether the parameters of the operation are in the body, and none in the URL. */
const hasBody = ({ method }: ConnectRequest): boolean => method === 'POST' || method === 'QUERY';

/** The names in a header `Vary`, without those that the cache or a compressor considers. */
const fieldNames = cacheByHeader((vary) =>
  vary
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '' && name !== 'accept' && name !== 'accept-encoding'),
);

/**
 * The part of keys that separates requests by the header `Vary` that earlier middleware has set, for example of
 * translations. Undefined for `*`: each response is another one (RFC 9110 §12.5.5).
 */
export function declaredVariants({ req, res }: Pick<Exchange, 'req' | 'res'>): string | undefined {
  const vary = res.getHeader('vary');
  if (vary === undefined) return '';
  const names = fieldNames(String(vary));
  if (names.length === 0) return '';
  if (names.includes('*')) return undefined;
  return `\n${JSON.stringify(names.map((name) => [name, req.headers[name]]))}`;
}
