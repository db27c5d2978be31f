import type { IncomingMessage } from 'node:http';
import type { ConnectRequest, MaybePromise } from '../../../types/connect.ts';
import type { GraphQLCore } from '../../core/core.ts';
import { assertJsonWithinLimits, bodyTooLarge, createBodyReader } from '../../http/body.ts';
import { cacheByHeader, GRAPHQL_TYPE, JSON_TYPE } from '../../http/negotiation.ts';
import { HttpError } from '../../http/reply.ts';
import { receiveUploads, resolveUploadOptions } from '../../uploads/receive.ts';
import type { Csrf } from '../csrf.ts';
import type { Exchange } from '../exchange.ts';
import type { HttpSettings } from '../options.ts';
import type { Streaming } from '../streaming/streaming.ts';
import { createTargetReader, paramsFromBody, type RequestParams } from './params.ts';

/** The kind of a request body. */
type BodyKind = 'json' | 'multipart';

/**
 * Creates the checks that need only the head of a request: method, `Host`, `Accept`, and cross-site reads.
 *
 * @throws HttpError 403, 405, 406, 415, 421.
 */
export function createRequestCheck(
  { isHostAllowed }: Pick<GraphQLCore, 'isHostAllowed'>,
  { methods }: Pick<HttpSettings, 'methods'>,
  csrf: Csrf,
  streaming: Streaming,
): (exchange: Exchange) => void {
  const allowed = new Set<string | undefined>(methods);
  const allow = methods.join(', ');

  return ({ req, accepted }) => {
    if (!allowed.has(req.method) && !streaming.isReservation(req)) {
      const hint = req.method === 'OPTIONS' ? '; for CORS mount the package cors before graphqlHTTP' : '';
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
    if (req.method === 'POST') return;
    // A page of another site could send a GET with another type without a preflight, and time the response.
    const contentType = req.method === 'QUERY' ? undefined : req.headers['content-type'];
    if (contentType !== undefined && classify(contentType) !== 'json') throw unsupportedType(UNSUPPORTED);
    csrf.assertRead(req);
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
  const maxValues = limits.variables + EXTRA_VALUES;
  const uploads = resolveUploadOptions(settings.uploads, maxValues);
  const readBody = createBodyReader({ ...limits, inflate: settings.inflate }, parse);
  const paramsOf = (body: unknown): RequestParams => paramsFromBody(body, settings);
  const paramsFromTarget = createTargetReader(settings);

  function parse(bytes: Buffer): RequestParams {
    if (bytes.length > limits.bodyBytes) throw bodyTooLarge(limits.bodyBytes);
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
    return receiveUploads(exchange, uploads, { parse: paramsOf, report });
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

/**
 * Whether an earlier body parser has set `req.body`. Some parsers set an empty object for types that they do
 * not read; the stream is then untouched.
 */
function isParsed(req: ConnectRequest): boolean {
  const { body } = req;
  if (body === undefined || body === null) return false;
  if (typeof body !== 'object' || req.readableDidRead || req.readableEnded) return true;
  return Buffer.isBuffer(body) || Array.isArray(body) || Object.keys(body).length > 0;
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
  if (kind === 'other' || (kind === 'multipart' && (!multipartUploadsEnabled || req.method === 'QUERY'))) {
    throw unsupportedType(UNSUPPORTED);
  }
  return kind;
}

/**
 * Compares the exact type: `text/plain; application/json` is text, which browsers send without a preflight.
 */
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
