import type { IncomingMessage } from 'node:http';
import type { ConnectRequest, MaybePromise } from '../../types/connect.ts';
import type { CoreDocuments } from '../core/by-id.ts';
import type { GraphQLCore } from '../core/core.ts';
import { ID_PARAMETERS, missingQuery, OPERATION_PARAMETERS, readReference } from '../core/document-id.ts';
import { noteHidden } from '../diagnostics/logging.ts';
import type { ErrorOrigin, GraphQLParams } from '../execution/types.ts';
import { assertJsonWithinLimits, bodyTooLarge, createBodyReader, isParsed } from '../http/body.ts';
import type { Exchange } from '../http/exchange.ts';
import { cacheByHeader, cacheByText, GRAPHQL_TYPE, JSON_TYPE } from '../http/negotiation.ts';
import { HttpError } from '../http/reply.ts';
import { decodePart, isMounted, pathOf } from '../http/routing.ts';
import { assertNoHandshake } from '../live/endpoint.ts';
import { byOption, formatValue } from '../options/rules.ts';
import { isObject, settle } from '../options/values.ts';
import { receiveUploads, resolveUploadOptions } from '../uploads/receive.ts';
import type { Csrf } from './csrf.ts';
import type { HttpSettings } from './options.ts';

/** The request that an error belongs to. */
export const originOf = ({ req, operationName }: Pick<Exchange, 'req' | 'operationName'>): ErrorOrigin => ({
  transport: 'http',
  operationName,
  request: req,
  socket: undefined,
});

/** The kind of a request body. */
type BodyKind = 'json' | 'multipart';

/**
 * Creates the checks that need only the head of a request: method, `Host`, `Accept`, and cross-site reads.
 *
 * @throws HttpError 403, 405, 406, 415, 421.
 */
export function createRequestCheck(
  core: GraphQLCore,
  { methods, compression }: Pick<HttpSettings, 'methods' | 'compression'>,
  csrf: Csrf,
  streaming: { accepts(req: IncomingMessage): boolean },
): (exchange: Exchange) => void {
  const allowed = new Set<string | undefined>(methods);
  const allow = methods.join(', ');
  const { isHostAllowed } = core;

  return (exchange) => {
    const { req, res, accepted } = exchange;
    if (!allowed.has(req.method)) {
      const hint = req.method === 'OPTIONS' ? '; for CORS mount the package cors before graphqlHTTP' : '';
      notePreflight(req);
      throw new HttpError(405, `The method ${req.method} is not allowed; allowed: ${allow}${hint}`, {
        headers: { allow },
        code: 'METHOD_NOT_ALLOWED',
      });
    }
    if (isHostAllowed !== undefined && !isHostAllowed(req)) {
      const message = 'The host of the request is not allowed (option "allowedHosts")';
      throw new HttpError(421, message, { code: 'WRONG_HOST' });
    }
    if (accepted.type === undefined && !streaming.accepts(req)) {
      const message = `No supported response type is acceptable; supported: ${GRAPHQL_TYPE}, ${JSON_TYPE}`;
      throw new HttpError(406, message, { code: 'NOT_ACCEPTABLE' });
    }
    compression?.assertAcceptable(exchange);
    if (req.method === 'POST') return;
    if (req.headers.upgrade !== undefined) assertNoHandshake(req, core);
    // A page of another site could send a GET with another type without a preflight, and time the response.
    const contentType = req.method === 'QUERY' ? undefined : req.headers['content-type'];
    if (contentType !== undefined && classify(contentType) !== 'json') throw unsupportedType(UNSUPPORTED);
    csrf.assertRead(req, res);
  };
}

/** Reads the parameters of a request: synchronously, unless its body has to be read. */
export type ReadRequest = (exchange: Exchange) => MaybePromise<RequestParams>;

/**
 * Values that a request may contain in addition to its variables: the members of one or more operations, and
 * extensions.
 */
const EXTRA_VALUES = 1000;

/**
 * Creates the reader of one handler. It reads the URL, the body, or the `req.body` of an earlier body parser;
 * the files of a multipart request are received by `src/uploads`.
 *
 * @throws HttpError 400, 403, 408, 413, 415.
 */
export function createRequestReader(
  settings: HttpSettings,
  csrf: Csrf,
  reportError: (error: unknown, exchange: Exchange) => void,
): ReadRequest {
  const { limits } = settings;
  // Refuses malformed UTF-8 and removes a byte order mark. Decodes all bytes together, so that no character
  // is split.
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const maxValues = settings.maxVariables + EXTRA_VALUES;
  const uploads = resolveUploadOptions(settings.uploads, { ...limits, maxValues });
  const readBody = createBodyReader({ ...limits, areOptions: true }, parse);
  const paramsOf = (body: unknown): RequestParams => paramsFromBody(body, settings);
  const paramsFromTarget = createTargetReader(settings);

  function paramsOfUpload(body: unknown): RequestParams {
    const params = paramsOf(body);
    const isList = isBatch(params) && params.some(({ index }) => index?.variables !== undefined);
    if (isList) throw badRequest('A request with files must have an object of variables, not a list');
    return params;
  }

  function parse(bytes: Buffer): RequestParams {
    if (bytes.length > limits.bodyBytes) throw bodyTooLarge(limits.bodyBytes, byOption('limits.bodyBytes'));
    let text: string;
    try {
      text = decoder.decode(bytes);
    } catch {
      throw new HttpError(400, 'The request body is not valid UTF-8', { code: 'BAD_ENCODING' });
    }
    assertJsonWithinLimits(bytes, maxValues);
    return paramsOf(parseJson(text));
  }

  function receiveForm(exchange: Exchange): Promise<RequestParams> {
    csrf.assertMultipart(exchange.req);
    const report = (error: unknown): void => reportError(error, exchange);
    return receiveUploads(exchange, uploads, { parse: paramsOfUpload, report });
  }

  return (exchange) => {
    const { req } = exchange;
    if (req.method !== 'POST' && req.method !== 'QUERY') return paramsFromTarget(req.url ?? '/');
    if (bodyKindOf(req, settings) === 'multipart') return receiveForm(exchange);
    if (!isParsed(req)) return readBody(req);
    const { body } = req;
    if (typeof body === 'string') return parse(Buffer.from(body));
    return Buffer.isBuffer(body) ? parse(body) : paramsOf(body);
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const problem = text === '' ? 'is empty' : 'is not valid JSON';
    throw new HttpError(400, `The request body ${problem}; send an object with a "query"`, {
      code: 'BAD_JSON',
    });
  }
}

/**
 * Returns the kind of a body by its Content-Type.
 *
 * @throws HttpError 415 that lists the accepted types (RFC 9110 §15.5.16).
 */
function bodyKindOf(
  req: IncomingMessage,
  { multipartUploadsEnabled }: Pick<HttpSettings, 'multipartUploadsEnabled'>,
): BodyKind {
  const contentType = req.headers['content-type'];
  if (contentType === undefined) {
    // RFC 10008 §2: the type decides what a QUERY means.
    if (req.method === 'QUERY') {
      const message = `A QUERY request must have a Content-Type; send ${JSON_TYPE}`;
      throw new HttpError(400, message, { code: 'CONTENT_TYPE_REQUIRED' });
    }
    throw unsupportedType('The request has no Content-Type');
  }
  if (isRepeated(req)) throw unsupportedType('The request has more than one Content-Type');
  // The boundary differs from request to request, so caching the type would not help.
  const kind = contentType.startsWith('multipart/') ? classify(contentType) : classifyCached(contentType);
  if (kind === 'charset') throw unsupportedType('The charset of the request body must be UTF-8');
  if (kind === 'other' || (kind === 'multipart' && req.method === 'QUERY'))
    throw unsupportedType(UNSUPPORTED);
  if (kind === 'multipart' && !multipartUploadsEnabled) {
    throw unsupportedType(`Uploads are off${byOption('multipartUploadsEnabled')}`);
  }
  return kind;
}

/** Says why a page of another origin gets no response: the browser shows none of a preflight. */
function notePreflight({ method, headers: { origin, ...others } }: IncomingMessage): void {
  if (method !== 'OPTIONS' || origin === undefined || !('access-control-request-method' in others)) return;
  const remedy =
    'mount the package cors before graphqlHTTP, or let the server of the page forward the path, as the proxy of Vite does';
  noteHidden('preflight', `A page of ${formatValue(origin)} cannot send requests: ${remedy}`);
}

/** Compares the exact type: `text/plain; application/json` is text, which browsers send without a preflight. */
function classify(contentType: string): BodyKind | 'charset' | 'other' {
  const [essence = '', ...parameters] = contentType.split(';');
  const type = essence.trim().toLowerCase();
  if (type === 'multipart/form-data') return 'multipart';
  if (type !== JSON_TYPE && type !== GRAPHQL_TYPE) return 'other';
  const charsets = parameters.filter((parameter) => /^\s*charset\s*=/i.test(parameter));
  return charsets.every((parameter) => /=\s*"?utf-?8"?\s*$/i.test(parameter)) ? 'json' : 'charset';
}

const classifyCached = cacheByHeader(classify);

/**
 * Whether there are several Content-Type lines. Node keeps the first, but a proxy may have checked another
 * one. Requests of mock libraries have no `rawHeaders`.
 */
function isRepeated({ rawHeaders = [] }: Pick<Partial<IncomingMessage>, 'rawHeaders'>): boolean {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    if (name.length === 12 && name.toLowerCase() === 'content-type') count += 1;
  }
  return count > 1;
}

const UNSUPPORTED = 'The Content-Type of the request is not supported';

function unsupportedType(reason: string): HttpError {
  return new HttpError(415, `${reason}; send ${JSON_TYPE}`, {
    headers: { accept: `${JSON_TYPE}, ${GRAPHQL_TYPE}` },
    code: 'UNSUPPORTED_MEDIA_TYPE',
  });
}

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

/** Request targets whose parameters are kept: a cacheable API gets the same ones again and again. */
const TARGETS = { entries: 500, length: 2048 };

/**
 * Creates the function that reads GraphQL parameters from a request target (GraphQL over HTTP, "GET"). An empty
 * parameter counts as absent.
 *
 * @throws HttpError 400.
 */
function createTargetReader({ documents }: Pick<HttpSettings, 'documents'>): (url: string) => GraphQLParams {
  const isById = documents !== undefined;
  const parse = cacheByText((url) => parseTarget(url, isById), TARGETS);
  return (url) => {
    const { query, document, operationName, variables, extensions } = parse(url);
    return {
      query,
      document,
      operationName,
      variables: variables.copy(),
      extensions: extensions.copy(),
    };
  };
}

/** The JSON values are not passed on: see `copy`. */
function parseTarget(url: string, isById: boolean) {
  const raw = parseSearch(url, isById ? WITH_IDS : WITHOUT_IDS);
  const extensions = new JsonParameter('extensions', raw.extensions);
  const document = isById
    ? readReference((name) => raw[name as keyof RawParams], extensions.value)
    : undefined;
  return {
    query: readQuery(raw.query, isById, extensions.value),
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
function paramsFromBody(body: unknown, settings: ParamsSettings): RequestParams {
  return Array.isArray(body) ? paramsFromList(body, settings) : paramsOfRequest(body, settings, undefined);
}

function paramsFromList(list: readonly unknown[], settings: ParamsSettings): readonly GraphQLParams[] {
  if (!settings.batching) {
    const message = 'Batching is disabled; send one operation per request (option "batching")';
    throw new HttpError(400, message, { code: 'BATCHING_OFF' });
  }
  if (list.length === 0) throw badRequest('The batch is empty; it must contain at least one operation');
  assertBatchSize(list.length, settings);
  const batch = list.flatMap((item, index) => paramsOfRequest(item, settings, index));
  assertBatchSize(batch.length, settings);
  return batch;
}

const DEFAULT_BATCH = 10;

function assertBatchSize(size: number, { batching }: ParamsSettings): void {
  const most = typeof batching === 'number' ? batching : DEFAULT_BATCH;
  if (size <= most) return;
  const message = `The batch contains ${size} operations; at most ${most} are allowed${byOption('batching')}`;
  throw new HttpError(413, message, { code: 'LIMIT_BATCH' });
}

/**
 * Reads one request object, which has one operation, or several if its variables are a list (GraphQL over HTTP,
 * draft of appendix B, "Variable batching").
 */
function paramsOfRequest(
  body: unknown,
  settings: ParamsSettings,
  request: number | undefined,
): GraphQLParams | readonly GraphQLParams[] {
  const list = settings.batching && isObject(body) && Object.hasOwn(body, 'variables') && body['variables'];
  if (!Array.isArray(list)) {
    const params = paramsFromObject(body, settings);
    return request === undefined ? params : { ...params, index: { request, variables: undefined } };
  }
  if (list.length === 0) throw badRequest('The list "variables" is empty; it must contain an object');
  assertBatchSize(list.length, settings);
  return list.map((variables: unknown, index) => {
    if (!isObject(variables)) throw badRequest('Each item of the list "variables" must be an object');
    const params = paramsFromObject({ ...(body as object), variables }, settings);
    return { ...params, index: { request, variables: index } };
  });
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
    query: readQuery(member('query'), isById, extensions),
    document,
    operationName: optionalString('operationName', member('operationName')),
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

/** Returns the text of a document; `''` if the request names it by its id, or by a hash of Apollo's protocol. */
function readQuery(given: unknown, isById: boolean, extensions: Record<string, unknown> | undefined): string {
  const query = optionalString('query', given) ?? '';
  if (query !== '' || isById || extensions?.['persistedQuery'] !== undefined) return query;
  throw missingQuery();
}

function optionalString(name: string, value: unknown): string | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value === 'string') return value;
  throw badRequest(`The parameter "${name}" must be a string`);
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

/** Creates the error of a malformed request: 400, or 422 with `statusCodes: 'spec'`. */
function badRequest(message: string): HttpError {
  return new HttpError(400, message, { code: 'BAD_REQUEST' });
}

/**
 * Returns the id of a document at the end of a path, as in `/graphql/<id>`: the only segment below a mount, or the
 * last one where no prefix was removed.
 */
export function pathIdOf(req: ConnectRequest, documents: CoreDocuments): string | undefined {
  const { url = '/' } = req;
  if (url.length <= 1 || url[1] === '?') return undefined;
  const path = pathOf(url);
  const isBelow = isMounted(req);
  const start = isBelow ? 0 : path.lastIndexOf('/');
  if ((start === 0) !== isBelow || path.indexOf('/', start + 1) !== -1) return undefined;
  const segment = decodePart(path.slice(start + 1));
  return segment !== undefined && segment !== '' && documents.isId(segment) ? segment : undefined;
}

/**
 * Adds the id in the path of a request to the parameters that `read` returns, where it takes precedence.
 *
 * @throws HttpError 400 for a request without a document, and for a batch at the path of a document.
 */
export function createPathIdReader(read: ReadRequest, documents: CoreDocuments): ReadRequest {
  return (exchange) => {
    // Before the body arrives: the document may be removed from the list meanwhile.
    const id = pathIdOf(exchange.req, documents);
    const params = read(exchange);
    return settle(params, (settled) => withPathId(settled, id));
  };
}

function withPathId(params: RequestParams, id: string | undefined): RequestParams {
  if (isBatch(params)) {
    if (id !== undefined) {
      throw new HttpError(400, 'A batch cannot be sent to the path of a document', { code: 'BAD_REQUEST' });
    }
    for (const each of params) assertDocument(each);
    return params;
  }
  const named = id === undefined ? params : { ...params, document: { id, isPersistedQuery: false } };
  assertDocument(named);
  return named;
}

function assertDocument({ query, document }: GraphQLParams): void {
  if (query === '' && document === undefined) throw missingQuery();
}
