import type { GraphQLParams } from '../../execution/types.ts';
import { HttpError } from '../../http/reply.ts';
import { isObject } from '../../options/rules.ts';

/** The id of a document in a request. */
export type DocumentReference = NonNullable<GraphQLParams['document']>;

/** The parameters that name a document, in order of precedence. `extensions.persistedQuery` is the last one. */
export const ID_PARAMETERS = ['documentId', 'id', 'doc_id'] as const;

/** The other parameters of an operation. */
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
