import { ID_PARAMETERS, OPERATION_PARAMETERS, readReference } from '../../core/documents/reference.ts';
import type { GraphQLParams } from '../../execution/types.ts';
import { cacheByText } from '../../http/negotiation.ts';
import { HttpError } from '../../http/reply.ts';
import type { HttpSettings } from '../options.ts';

/** The parameters of one operation, or of each operation of a batch. */
export type RequestParams = GraphQLParams | readonly GraphQLParams[];

export const isBatch = (params: RequestParams): params is readonly GraphQLParams[] => Array.isArray(params);

/** The parameters of a query string, as text; others are ignored. */
type RawParams = Readonly<
  Partial<Record<(typeof OPERATION_PARAMETERS | typeof ID_PARAMETERS)[number], string>>
>;

const WITHOUT_IDS: ReadonlySet<string> = new Set(OPERATION_PARAMETERS);
const WITH_IDS: ReadonlySet<string> = new Set([...OPERATION_PARAMETERS, ...ID_PARAMETERS]);

/** The settings that decide which parameters a request may have. */
type ParamsSettings = Pick<HttpSettings, 'batching' | 'documents' | 'limits'>;

/** The parameters of a request target, with JSON values that are not passed on. */
interface ParsedTarget extends Omit<GraphQLParams, 'variables' | 'extensions'> {
  readonly variables: JsonParameter;
  readonly extensions: JsonParameter;
}

/** Request targets whose parameters are kept: a cacheable API gets the same ones again and again. */
const TARGETS = { entries: 500, length: 2048 };

/**
 * Creates the function that reads GraphQL parameters from a request target (GraphQL over HTTP, "GET"). An empty
 * parameter counts as absent.
 *
 * @throws HttpError 400.
 */
export function createTargetReader({
  documents,
}: Pick<HttpSettings, 'documents'>): (url: string) => GraphQLParams {
  const isById = documents !== undefined;
  const parse = cacheByText((url) => parseTarget(url, isById), TARGETS);
  return (url) => {
    const { query, document, operationName, variables, extensions } = parse(url);
    return { query, document, operationName, variables: variables.copy(), extensions: extensions.copy() };
  };
}

function parseTarget(url: string, isById: boolean): ParsedTarget {
  const raw = parseSearch(url, isById ? WITH_IDS : WITHOUT_IDS);
  const extensions = new JsonParameter('extensions', raw.extensions);
  const document = isById
    ? readReference((name) => raw[name as keyof RawParams], extensions.value)
    : undefined;
  return {
    query: isById ? (raw.query ?? '') : requireQuery(raw.query, extensions.value),
    document,
    operationName: raw.operationName,
    variables: new JsonParameter('variables', raw.variables),
    extensions,
  };
}

/** A parameter with a JSON object. Each request gets its own copy, which hooks and resolvers may change. */
class JsonParameter {
  readonly value: Record<string, unknown> | undefined;
  readonly #name: string;
  readonly #text: string | undefined;
  readonly #isFlat: boolean;

  constructor(name: string, text: string | undefined) {
    this.value = parseJsonObject(name, text);
    this.#name = name;
    this.#text = text;
    this.#isFlat = !Object.values(this.value ?? {}).some((member) => typeof member === 'object');
  }

  copy(): Record<string, unknown> | undefined {
    if (this.value === undefined) return undefined;
    return this.#isFlat ? { ...this.value } : parseJsonObject(this.#name, this.#text);
  }
}

/**
 * Reads GraphQL parameters from a parsed body: one operation, or a list of them if batching is on.
 *
 * @throws HttpError 400, 413.
 */
export function paramsFromBody(body: unknown, settings: ParamsSettings): RequestParams {
  return Array.isArray(body) ? paramsFromList(body, settings) : paramsFromObject(body, settings);
}

function paramsFromList(list: readonly unknown[], settings: ParamsSettings): readonly GraphQLParams[] {
  const { batching, limits } = settings;
  if (!batching) {
    const message = 'Batching is disabled; send one operation per request (option "batching")';
    throw new HttpError(400, message, { code: 'BATCHING_OFF' });
  }
  if (list.length === 0) throw badRequest('The batch is empty; it must contain at least one operation');
  if (list.length > limits.batch) {
    const message = `The batch contains ${list.length} operations; at most ${limits.batch} are allowed`;
    throw new HttpError(413, message, { code: 'LIMIT_BATCH' });
  }
  return list.map((item) => paramsFromObject(item, settings));
}

/** Unknown members are ignored. */
function paramsFromObject(body: unknown, { documents }: Pick<HttpSettings, 'documents'>): GraphQLParams {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw badRequest('The request body must be a JSON object with a "query"');
  }
  // Own members only: inherited ones are not parameters.
  const member = (name: string): unknown =>
    Object.hasOwn(body, name) ? (body as Record<string, unknown>)[name] : undefined;
  const extensions = optionalObject('extensions', member('extensions'));
  const isById = documents !== undefined;
  const document = isById ? readReference(member, extensions) : undefined;
  return {
    query: isById ? optionalQuery(member('query')) : requireQuery(member('query'), extensions),
    document,
    operationName: optionalString(member('operationName')),
    variables: optionalObject('variables', member('variables')),
    extensions,
  };
}

function parseSearch(url: string, names: ReadonlySet<string>): RawParams {
  const raw: Record<string, string> = {};
  const start = url.indexOf('?');
  if (start === -1) return raw;
  for (const pair of url.slice(start + 1).split('&')) {
    const equals = pair.indexOf('=');
    const name = decode(equals === -1 ? pair : pair.slice(0, equals));
    const value = equals === -1 ? '' : pair.slice(equals + 1);
    if (!names.has(name) || value === '') continue;
    if (raw[name] !== undefined) throw badRequest(`The parameter "${name}" occurs more than once`);
    raw[name] = decode(value);
  }
  return raw;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.includes('+') ? text.replaceAll('+', ' ') : text);
  } catch {
    throw badRequest('The query string contains a malformed percent encoding');
  }
}

/** Returns the text of a document; `''` for a request with a hash of Apollo's protocol instead. */
function requireQuery(query: unknown, extensions: Record<string, unknown> | undefined): string {
  if (typeof query === 'string' && query !== '') return query;
  if (extensions?.['persistedQuery'] !== undefined) return '';
  throw isMissing(query) ? missingQuery() : badRequest('The parameter "query" must be a string');
}

/** Returns the text of a document that a request may also name by its id; `''` if there is none. */
function optionalQuery(query: unknown): string {
  if (typeof query === 'string') return query;
  if (isMissing(query)) return '';
  throw badRequest('The parameter "query" must be a string');
}

const isMissing = (query: unknown): boolean => query === undefined || query === null || query === '';

/** Creates the error of a request without a document. */
export const missingQuery = (): HttpError => badRequest('The parameter "query" is missing');

function optionalString(value: unknown): string | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value === 'string') return value;
  throw badRequest('The parameter "operationName" must be a string');
}

function optionalObject(name: string, value: unknown): Record<string, unknown> | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'object' && !Array.isArray(value)) return value as Record<string, unknown>;
  throw badRequest(`The parameter "${name}" must be an object`);
}

function parseJsonObject(name: string, text: string | undefined): Record<string, unknown> | undefined {
  if (text === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw badRequest(`The parameter "${name}" is not valid JSON`);
  }
  return optionalObject(name, value);
}

/** Creates the error of a malformed request: 400, or 422 with `statusCodes: 'draft'`. */
function badRequest(message: string): HttpError {
  return new HttpError(400, message, { code: 'BAD_REQUEST' });
}
