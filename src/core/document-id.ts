import { GraphQLError } from 'graphql';
import { refuse } from '../execution/graphql-error.ts';
import type { GraphQLParams, RequestError } from '../execution/types.ts';
import { HttpError } from '../http/reply.ts';
import { isObject } from '../options/values.ts';

/** The id of a document in a request. */
export type DocumentReference = NonNullable<GraphQLParams['document']>;

/** The parameters that name a document, in order of precedence. `extensions.persistedQuery` is the last one. */
export const ID_PARAMETERS = ['documentId', 'id', 'doc_id'] as const;

export const OPERATION_PARAMETERS = ['query', 'operationName', 'variables', 'extensions'] as const;

/**
 * Returns the id of the document that a request names; undefined if it names none. `parameter` returns a parameter
 * of the request.
 *
 * @throws HttpError 400.
 */
export function readReference(
  parameter: (name: string) => unknown,
  extensions: Readonly<Record<string, unknown>> | null | undefined,
): DocumentReference | undefined {
  for (const name of ID_PARAMETERS) {
    const id = parameter(name);
    if (typeof id === 'string' && id !== '') return { id, isPersistedQuery: false };
    // Some clients number their requests with `id`.
    if (name === 'documentId' && typeof (id ?? '') !== 'string') {
      throw badRequest('The parameter "documentId" must be a string');
    }
  }
  const persisted = extensions?.['persistedQuery'];
  if (persisted === undefined || persisted === null) return undefined;
  return { id: hashOf(persisted), isPersistedQuery: true };
}

/** A text instead of the object is a recipe of graphql-ws. */
function hashOf(persisted: unknown): string {
  if (typeof persisted === 'string' && persisted !== '') return persisted;
  if (!isObject(persisted) || persisted['version'] !== 1) {
    throw badRequest('Unsupported persisted query version; send version 1');
  }
  const hash = persisted['sha256Hash'];
  if (typeof hash === 'string' && hash !== '') return hash;
  throw badRequest('The member "sha256Hash" of "extensions.persistedQuery" must be a string');
}

const badRequest = (message: string): HttpError => new HttpError(400, message, { code: 'BAD_REQUEST' });

/** The error of a request without a document. */
export const missingQuery = (): HttpError => badRequest('The parameter "query" is missing');

/** The response to an id that is not in the list of trusted documents. */
export const documentNotFound = (): RequestError =>
  refuse('The id of the document is unknown', 'DOCUMENT_NOT_FOUND', 404);

/** The response to a document that the option `documents.only` refuses. It does not depend on the schema. */
export function documentNotTrusted(): RequestError {
  const message = 'Only trusted documents are executed here; send the id of one (option "documents.only")';
  return { ...refuse(message, 'DOCUMENT_NOT_TRUSTED', 403), limit: true };
}

/**
 * A response of Apollo's protocol, after which clients send the query. It has the status 200 for every media type
 * as in Apollo Server, because Apollo iOS reads no errors of other responses.
 */
function persistedQueryError(message: string, code: string): RequestError {
  // The response to the same request is different after the client's next request.
  const headers = { 'cache-control': 'private, no-cache, must-revalidate' };
  const extensions = { code, http: { status: 200, headers } };
  return { kind: 'error', errors: [new GraphQLError(message, { extensions })], status: 200 };
}

/** The response to a hash if the server has no documents by id. */
export const persistedQueryNotSupported = (): RequestError =>
  persistedQueryError('PersistedQueryNotSupported', 'PERSISTED_QUERY_NOT_SUPPORTED');

/** The response to a request without a text whose id is unknown, in the protocol of the request. */
export const notFound = (document: DocumentReference | undefined): RequestError =>
  document?.isPersistedQuery === true
    ? persistedQueryError('PersistedQueryNotFound', 'PERSISTED_QUERY_NOT_FOUND')
    : documentNotFound();

/** Like `notFound`, for a server without documents by id. */
export const notSupported = (document: DocumentReference | undefined): RequestError =>
  document?.isPersistedQuery === true ? persistedQueryNotSupported() : documentNotFound();

/** The response to a query that has another hash. */
export const hashMismatch = (): RequestError => ({
  ...refuse('provided sha does not match query', 'PERSISTED_QUERY_HASH_MISMATCH'),
  limit: true,
});
