import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ConnectRequest, MaybePromise } from '../../../types/connect.ts';
import { assertJsonWithinLimits } from '../../http/body/json-limits.ts';
import { createBodyReader, tooLarge } from '../../http/body/read-body.ts';
import { HttpError } from '../../http/reply/http-error.ts';
import { resolveUploadOptions } from '../../uploads/options.ts';
import { receiveUploads } from '../../uploads/receive.ts';
import { paramsIn } from '../batch.ts';
import type { Guard } from '../csrf.ts';
import type { HttpSettings } from '../options.ts';
import { createTypeReader, GRAPHQL_TYPE, JSON_TYPE } from './media-types.ts';

/** Reads the JSON value a POST carries, from wherever it is. */
export type Receive = (req: ConnectRequest, res: ServerResponse) => MaybePromise<unknown>;

/**
 * The reader of POST bodies of one handler: from the stream, or what a parser in front left.
 *
 * @throws HttpError for everything that is no JSON body within the limits.
 */
export function createReceive(settings: HttpSettings, guard: Guard): Receive {
  const kindOf = createTypeReader();
  const { limits } = settings;
  const readBody = createBodyReader(limits, settings.inflate);
  // A byte order mark is dropped, broken UTF-8 refused; bytes are decoded once, so that no character is ever split.
  const decoder = new TextDecoder('utf-8', { fatal: true });
  // Beside the variables there are the members of the request, of a batch, and extensions.
  const mostValues = limits.variables + 1000;
  const uploads = resolveUploadOptions(settings.uploads, mostValues);

  function parse(bytes: Buffer): unknown {
    if (bytes.length > limits.bodyBytes) throw tooLarge(limits);
    let text: string;
    try {
      text = decoder.decode(bytes);
    } catch {
      throw new HttpError(400, 'The request body is not valid UTF-8', { code: 'BAD_ENCODING' });
    }
    assertJsonWithinLimits(bytes, mostValues);
    return parseJson(text);
  }

  function receiveForm(req: ConnectRequest, res: ServerResponse): Promise<unknown> {
    guard.multipart(req);
    return receiveUploads(req, res, uploads, (operations) => {
      paramsIn(operations, settings);
      return operations;
    });
  }

  return (req, res) => {
    const kind = isRepeated(req) ? 'other' : kindOf(req.headers['content-type']);
    if (kind === 'multipart' && settings.multipartUploadsEnabled) return receiveForm(req, res);
    if (kind !== 'json') throw unsupported(kind);
    if (!isParsed(req)) {
      const read = readBody(req);
      return read instanceof Promise ? read.then(parse) : parse(read);
    }
    const { body } = req;
    if (typeof body === 'string') return parse(Buffer.from(body));
    return Buffer.isBuffer(body) ? parse(body) : body;
  };
}

/**
 * True when a parser in front has left a body. An empty object may also be what a parser leaves for a type that is not
 * its own; then the stream has not been touched.
 */
function isParsed(req: ConnectRequest): boolean {
  const { body } = req;
  if (body === undefined || body === null) return false;
  if (typeof body !== 'object' || req.readableDidRead || req.readableEnded) return true;
  return Buffer.isBuffer(body) || Array.isArray(body) || Object.keys(body).length > 0;
}

/** Node keeps the first of several Content-Type lines, a proxy may have judged another. */
function isRepeated({ rawHeaders }: IncomingMessage): boolean {
  let found = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string;
    if (name.length === 12 && name.toLowerCase() === 'content-type') found += 1;
  }
  return found > 1;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new HttpError(400, 'The request body is not valid JSON', { code: 'BAD_JSON' });
  }
}

/** The refusal of a body by its type: 415, with what is accepted (RFC 9110 §15.5.16). */
export function unsupported(kind: string): HttpError {
  const reasons: Record<string, string> = {
    none: 'The request has no Content-Type',
    charset: 'The charset of a request body must be UTF-8',
  };
  const reason = reasons[kind] ?? 'The Content-Type of the request is not supported';
  return new HttpError(415, `${reason}; send ${JSON_TYPE}`, {
    headers: { accept: `${JSON_TYPE}, ${GRAPHQL_TYPE}` },
    code: 'UNSUPPORTED_MEDIA_TYPE',
  });
}
