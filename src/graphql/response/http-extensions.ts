import type { GraphQLError } from 'graphql';
import { isPublicError } from '../../core/errors.ts';
import type { Headers } from '../../http/reply.ts';
import { isObject } from '../../options/rules.ts';

/** The status and headers that `extensions.http` of errors set. */
interface HttpExtensions {
  status?: number | undefined;
  headers?: Headers;
}

/** The extensions of masked errors, which set neither status nor headers. */
export const NO_EXTENSIONS: HttpExtensions = Object.freeze({});

/** Headers that depend on the bytes of the response. */
const BODY_HEADERS = new Set(['content-length', 'transfer-encoding', 'trailer']);

/**
 * Merges `extensions.http` of all errors that are not masked. The first error that sets a status or a header takes
 * precedence.
 *
 * @throws RangeError for an informational status: the client would wait for another response.
 */
export function httpExtensionsOf(errors: readonly GraphQLError[]): HttpExtensions {
  const merged: HttpExtensions = {};
  for (const error of errors) {
    const http = isPublicError(error) ? error.extensions['http'] : undefined;
    if (!isObject(http)) continue;
    const { status, headers } = http as { readonly status?: number; readonly headers?: unknown };
    merged.status ??= status;
    if (isObject(headers)) merged.headers = { ...lowerCaseHeaders(headers), ...merged.headers };
  }
  if (merged.status != null && merged.status < 200) {
    throw new RangeError(`extensions.http.status of an error is ${merged.status}; expected: 200 to 999`);
  }
  return merged;
}

/** Node would send `Cache-Control` besides `cache-control`. */
function lowerCaseHeaders(headers: Readonly<Record<string, unknown>>): Headers {
  const entries = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  return Object.fromEntries(entries.filter(([name]) => !BODY_HEADERS.has(name))) as Headers;
}
