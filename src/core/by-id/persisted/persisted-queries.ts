import { createHash } from 'node:crypto';
import type { GraphQLSchema } from 'graphql';
import type { MaybePromise } from '../../../../types/connect.ts';
import { isThenable, type PreparedOperation, type RequestError } from '../../../execution/types.ts';
import { createDocumentCache } from '../../documents/document-cache.ts';
import type { DocumentReference } from '../../documents/reference.ts';
import { hashMismatch, notFound } from '../../documents/refusals.ts';
import type { DocumentParams, Prepare } from '../../prepare.ts';
import type { SharedStore } from './shared-store.ts';

type Prepared = PreparedOperation | RequestError;

const PREFIXED = /^sha256:([0-9a-f]{64})$/;
const HASH = /^[0-9a-f]{64}$/;
/** Estimated bytes of a hash in the cache, in addition to the text. */
const ENTRY_BYTES = 300;

/** Returns the hash in a reference, which may be malformed in Apollo's protocol; undefined for any other id. */
export function hashOf({ id, isPersistedQuery }: DocumentReference): string | undefined {
  return isPersistedQuery ? id : PREFIXED.exec(id)?.[1];
}

/** Returns the SHA-256 hash of a query, as clients compute it. */
export const hashQuery = (query: string): string => createHash('sha256').update(query).digest('hex');

/**
 * Automatic persisted queries of one core: texts by hash, next to the document cache, which has their prepared
 * form. A query is stored if it is valid and has the hash that the client sent.
 */
export class PersistedQueries {
  readonly #prepare: Prepare;
  readonly #store: SharedStore | undefined;
  readonly #maxCharacters: number;
  readonly #texts: ReturnType<typeof createDocumentCache<string>>;

  constructor(
    prepare: Prepare,
    store: SharedStore | undefined,
    limits: { readonly bytes: number; readonly characters: number },
  ) {
    this.#prepare = prepare;
    this.#store = store;
    this.#maxCharacters = limits.characters;
    this.#texts = createDocumentCache<string>(limits.bytes);
  }

  /** Prepares the query with this hash, or verifies and registers the query of the request. */
  prepare(
    schema: GraphQLSchema,
    params: DocumentParams,
    source: unknown,
    hash: string,
  ): MaybePromise<Prepared> {
    const known = this.#texts.get(schema, hash);
    if (params.query !== '') return this.#register(schema, params, source, { hash, known });
    if (known !== undefined) {
      params.query = known;
      return this.#prepare(schema, params, source);
    }
    const { document } = params;
    if (this.#store === undefined || !HASH.test(hash)) return notFound(document);
    return this.#store.get(hash).then((text) => {
      // Other applications may write to the store.
      if (text === undefined || text.length > this.#maxCharacters || hashQuery(text) !== hash) {
        return notFound(document);
      }
      params.query = text;
      return this.#prepareAndKeep(schema, params, source, hash);
    });
  }

  #register(
    schema: GraphQLSchema,
    params: DocumentParams,
    source: unknown,
    { hash, known }: { readonly hash: string; readonly known: string | undefined },
  ): MaybePromise<Prepared> {
    const { query } = params;
    // `prepare` refuses a longer text, so it needs no hash.
    if (query.length > this.#maxCharacters) return this.#prepare(schema, params, source);
    if (known !== query && hashQuery(query) !== hash) return hashMismatch();
    // A query that this process knows is stored again: the store may have lost it.
    const prepared = this.#prepareAndKeep(schema, params, source, hash);
    if (isThenable(prepared)) return prepared.then((settled) => this.#share(settled, hash));
    return this.#share(prepared, hash);
  }

  #prepareAndKeep(
    schema: GraphQLSchema,
    params: DocumentParams,
    source: unknown,
    hash: string,
  ): MaybePromise<Prepared> {
    const prepared = this.#prepare(schema, params, source);
    if (isThenable(prepared)) return prepared.then((settled) => this.#keep(schema, settled, hash));
    return this.#keep(schema, prepared, hash);
  }

  #keep(schema: GraphQLSchema, prepared: Prepared, hash: string): Prepared {
    if ('errors' in prepared) return prepared;
    // The same string as in the document cache, so there is no second copy of the text.
    const { source } = prepared;
    this.#texts.set(schema, hash, source, ENTRY_BYTES + source.length * 2);
    return prepared;
  }

  #share(prepared: Prepared, hash: string): Prepared {
    if (!('errors' in prepared)) this.#store?.set(hash, prepared.source);
    return prepared;
  }
}
