import type { ConnectRequest, MaybePromise } from '../../../types/connect.ts';
import { assertJsonWithinLimits } from '../../http/body/json-limits.ts';
import { bodyTooLarge, createBodyReader } from '../../http/body/read-body.ts';
import { HttpError } from '../../http/reply/http-error.ts';
import { resolveUploadOptions } from '../../uploads/options.ts';
import { receiveUploads } from '../../uploads/receive.ts';
import type { Csrf } from '../csrf.ts';
import type { Exchange } from '../exchange.ts';
import type { HttpSettings } from '../options.ts';
import { bodyKindOf } from './check-request.ts';
import { paramsFromBody, paramsFromUrl, type RequestParams } from './params.ts';

/** Reads the parameters of a request: synchronously, unless its body has to be read. */
export type ReadRequest = (exchange: Exchange) => MaybePromise<RequestParams>;

/** Values that a request may contain in addition to its variables: the members of one or more operations, and extensions. */
const EXTRA_VALUES = 1000;

/**
 * Creates the reader of one handler. It reads the URL, the body, or the `req.body` of an earlier body parser; the files of a
 * multipart request are received by `src/uploads`.
 *
 * @throws HttpError 400, 403, 408, 413, 415.
 */
export function createRequestReader(settings: HttpSettings, csrf: Csrf): ReadRequest {
  const { limits } = settings;
  // Refuses malformed UTF-8 and removes a byte order mark. Decodes all bytes together, so that no character is split.
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const maxValues = limits.variables + EXTRA_VALUES;
  const uploads = resolveUploadOptions(settings.uploads, maxValues);
  const readBody = createBodyReader({ ...limits, inflate: settings.inflate }, parse);
  const paramsOf = (body: unknown): RequestParams => paramsFromBody(body, settings);

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

  function receiveForm({ req, res }: Exchange): Promise<RequestParams> {
    csrf.assertMultipart(req);
    return receiveUploads(req, res, uploads, paramsOf);
  }

  return (exchange) => {
    const { req } = exchange;
    if (req.method !== 'POST') return paramsFromUrl(req.url ?? '/');
    if (bodyKindOf(req, settings) === 'multipart') return receiveForm(exchange);
    if (!isParsed(req)) return readBody(req);
    const { body } = req;
    if (typeof body === 'string') return parse(Buffer.from(body));
    return Buffer.isBuffer(body) ? parse(body) : paramsOf(body);
  };
}

/**
 * Whether an earlier body parser has set `req.body`. Some parsers set an empty object for types that they do not read; the
 * stream is then untouched.
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
    throw new HttpError(400, 'The request body is not valid JSON', { code: 'BAD_JSON' });
  }
}
