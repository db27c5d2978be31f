import { GraphQLError } from 'graphql';
import { refusalError } from '../../execution/graphql-error.ts';
import type { RequestError } from '../../execution/types.ts';
import type { DocumentReference } from './reference.ts';

/** The response to an id that is not in the list of trusted documents. */
export const documentNotFound = (): RequestError => ({
  errors: [refusalError('The id of the document is unknown', 'DOCUMENT_NOT_FOUND')],
  status: 404,
});

/** The response to a document that the option `documents.only` refuses. It does not depend on the schema. */
export const documentNotTrusted = (): RequestError => ({
  errors: [
    refusalError(
      'Only trusted documents are executed here; send the id of one (option "documents.only")',
      'DOCUMENT_NOT_TRUSTED',
    ),
  ],
  status: 403,
  limit: true,
});

/**
 * A response of Apollo's protocol, after which clients send the query. It has the status 200 for every media type
 * as in Apollo Server, because Apollo iOS reads no errors of other responses.
 */
function persistedQueryError(message: string, code: string): RequestError {
  // The response to the same request is different after the client's next request.
  const headers = { 'cache-control': 'private, no-cache, must-revalidate' };
  const extensions = { code, http: { status: 200, headers } };
  return { errors: [new GraphQLError(message, { extensions })], status: 200 };
}

/** The response to a hash whose query was not registered. */
const persistedQueryNotFound = (): RequestError =>
  persistedQueryError('PersistedQueryNotFound', 'PERSISTED_QUERY_NOT_FOUND');

/** The response to a hash if the server has no documents by id. */
export const persistedQueryNotSupported = (): RequestError =>
  persistedQueryError('PersistedQueryNotSupported', 'PERSISTED_QUERY_NOT_SUPPORTED');

/** The response to a request without a text whose id is unknown, in the protocol of the request. */
export const notFound = (document: DocumentReference | undefined): RequestError =>
  document?.isPersistedQuery === true ? persistedQueryNotFound() : documentNotFound();

/** Like `notFound`, for a server without documents by id. */
export const notSupported = (document: DocumentReference | undefined): RequestError =>
  document?.isPersistedQuery === true ? persistedQueryNotSupported() : documentNotFound();

/** The response to a query that has another hash. */
export const hashMismatch = (): RequestError => ({
  errors: [refusalError('provided sha does not match query', 'PERSISTED_QUERY_HASH_MISMATCH')],
  status: 400,
  limit: true,
});
