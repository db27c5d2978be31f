import type { ConnectRequest } from '../../../types/connect.ts';
import type { CoreDocuments } from '../../core/by-id/core-documents.ts';
import type { GraphQLParams } from '../../execution/types.ts';
import { HttpError } from '../../http/reply.ts';
import { decodePart, pathOf } from '../../http/routing.ts';
import { isBatch, missingQuery, type RequestParams } from './params.ts';
import type { ReadRequest } from './read-request.ts';

/**
 * Returns the id of a document at the end of a path, as in `/graphql/<id>`: the only segment below a mount, or the
 * last one where no prefix was removed.
 */
export function pathIdOf(
  { url = '/', originalUrl }: ConnectRequest,
  documents: CoreDocuments,
): string | undefined {
  if (url.length <= 1 || url[1] === '?') return undefined;
  const path = pathOf(url);
  const isMounted = originalUrl !== undefined && originalUrl.length !== url.length;
  const start = isMounted ? 0 : path.lastIndexOf('/');
  if ((start === 0) !== isMounted || path.indexOf('/', start + 1) !== -1) return undefined;
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
    return params instanceof Promise
      ? params.then((settled) => withPathId(settled, id))
      : withPathId(params, id);
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
