import { GraphQLError } from 'graphql';
import type { RequestError } from '../../execution/types.ts';
import { refusalError } from '../errors.ts';
import type { DocumentReference } from './reference.ts';

/** Apollo Server's headers: the response to the same request is different after the client's next request. */
export const NOT_CACHED: Readonly<Record<string, string>> = {
  'cache-control': 'private, no-cache, must-revalidate',
};

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

/** The response to a hash whose query was not registered. Apollo's clients send the query next. */
function persistedQueryNotFound(): RequestError {
  // Apollo Kotlin and Apollo iOS read errors of successful responses only.
  const http = { status: 200, headers: NOT_CACHED };
  const extensions = { code: 'PERSISTED_QUERY_NOT_FOUND', http };
  return { errors: [new GraphQLError('PersistedQueryNotFound', { extensions })], status: 200 };
}

/** The response to a request without a text whose id is unknown, in the protocol of the request. */
export const notFound = (document: DocumentReference | undefined): RequestError =>
  document?.isPersistedQuery === true ? persistedQueryNotFound() : documentNotFound();

/** The response to a query that has another hash. */
export const hashMismatch = (): RequestError => ({
  errors: [refusalError('provided sha does not match query', 'PERSISTED_QUERY_HASH_MISMATCH')],
  status: 400,
  limit: true,
});
