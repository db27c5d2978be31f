import type { IncomingMessage } from 'node:http';
import { cacheByHeader } from '../../http/negotiation/header-cache.ts';
import { HttpError } from '../../http/reply/http-error.ts';
import { createHostCheck } from '../../http/routing/allowed-hosts.ts';
import type { Csrf } from '../csrf.ts';
import { type Exchange, GRAPHQL_TYPE, JSON_TYPE } from '../exchange.ts';
import type { HttpSettings } from '../options.ts';

/** The kind of a request body. */
export type BodyKind = 'json' | 'multipart';

/**
 * Creates the checks that need only the head of a request: method, `Host`, `Accept`, and for GET and HEAD cross-site reads.
 *
 * @throws HttpError 403, 405, 406, 415, 421.
 */
export function createRequestCheck(
  { methods, allowedHosts }: Pick<HttpSettings, 'methods' | 'allowedHosts'>,
  csrf: Csrf,
): (exchange: Exchange) => void {
  const allowed = new Set<string | undefined>(methods);
  const allow = methods.join(', ');
  const isHostAllowed = createHostCheck(allowedHosts);

  return ({ req, accepted }) => {
    if (!allowed.has(req.method)) {
      throw new HttpError(405, `The method ${req.method} is not allowed; allowed: ${allow}`, {
        headers: { allow },
        code: 'METHOD_NOT_ALLOWED',
      });
    }
    if (!isHostAllowed(req)) {
      const message = 'The host of the request is not allowed (option "allowedHosts")';
      throw new HttpError(421, message, { code: 'WRONG_HOST' });
    }
    if (accepted.type === undefined) {
      const message = `No supported response type is acceptable; supported: ${GRAPHQL_TYPE}, ${JSON_TYPE}`;
      throw new HttpError(406, message, { code: 'NOT_ACCEPTABLE' });
    }
    if (req.method === 'POST') return;
    // A page of another site could send a GET with another type without a preflight, and time the response.
    const contentType = req.headers['content-type'];
    if (contentType !== undefined && classify(contentType) !== 'json') throw unsupportedType(UNSUPPORTED);
    csrf.assertRead(req);
  };
}

/**
 * Returns the kind of a body by its Content-Type.
 *
 * @throws HttpError 415 that lists the accepted types (RFC 9110 §15.5.16).
 */
export function bodyKindOf(
  req: IncomingMessage,
  { multipartUploadsEnabled }: Pick<HttpSettings, 'multipartUploadsEnabled'>,
): BodyKind {
  const contentType = req.headers['content-type'];
  if (contentType === undefined) throw unsupportedType('The request has no Content-Type');
  if (isRepeated(req)) throw unsupportedType('The request has more than one Content-Type');
  // The boundary differs from request to request, so caching the type would not help.
  const kind = contentType.startsWith('multipart/') ? classify(contentType) : classifyCached(contentType);
  if (kind === 'charset') throw unsupportedType('The charset of the request body must be UTF-8');
  if (kind === 'other' || (kind === 'multipart' && !multipartUploadsEnabled)) {
    throw unsupportedType(UNSUPPORTED);
  }
  return kind;
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

/** Whether there are several Content-Type lines. Node keeps the first, but a proxy may have checked another one. */
function isRepeated({ rawHeaders }: IncomingMessage): boolean {
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
