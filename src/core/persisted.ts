import { createHash } from 'node:crypto';
import type { GraphQLSchema } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import type { PersistedQueryStore } from '../../types/graphql.ts';
import type { PreparedOperation, RequestError } from '../execution/types.ts';
import { toError } from '../http/reply.ts';
import { withTimeLimit } from '../http/timers.ts';
import { isString, settle } from '../options/rules.ts';
import { isRedis, type RedisCommands } from '../redis/clients.ts';
import { commandsOf } from '../redis/commands.ts';
import type { PersistedQuerySettings } from './by-id.ts';
import { type DocumentReference, hashMismatch, notFound } from './document-id.ts';
import { createDocumentCache, type DocumentParams, type Prepare } from './documents.ts';

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
    return settle(prepared, (settled) => this.#share(settled, hash));
  }

  #prepareAndKeep(
    schema: GraphQLSchema,
    params: DocumentParams,
    source: unknown,
    hash: string,
  ): MaybePromise<Prepared> {
    const prepared = this.#prepare(schema, params, source);
    return settle(prepared, (settled) => this.#keep(schema, settled, hash));
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

/** Milliseconds without requests to a store that has failed. */
const PAUSE = 1000;
/** The maximum number of requests that wait for the store. */
const MAX_WAITING = 1000;

const storeIn = (redis: RedisCommands): PersistedQueryStore => ({
  async get(key) {
    const text = await redis.send({ name: 'get', keys: [key] });
    return isString(text) ? text : undefined;
  },
  set: (key, ...args) => redis.send({ name: 'set', keys: [key], args }),
});

/** A store of several processes that never fails: without the store, every query is unknown. */
export class SharedStore {
  readonly #settings: PersistedQuerySettings;
  readonly #store: PersistedQueryStore;
  readonly #onError: (error: unknown) => void;
  #waiting = 0;
  #pausedUntil = 0;

  constructor(
    store: NonNullable<PersistedQuerySettings['store']>,
    settings: PersistedQuerySettings,
    onError: (error: unknown) => void,
  ) {
    this.#store = isRedis(store) ? storeIn(commandsOf(store)) : store;
    this.#settings = settings;
    this.#onError = onError;
  }

  /** Returns a stored query; undefined if there is none, or if the store fails or is slow. */
  async get(hash: string): Promise<string | undefined> {
    const found = await this.#run((key) => this.#store.get(key), hash);
    return typeof found === 'string' ? found : undefined;
  }

  /** Stores a query. Does not wait for the store. */
  set(hash: string, query: string): void {
    void this.#run((key) => this.#store.set(key, query, 'PX', this.#settings.ttl), hash);
  }

  /** Runs a command. A store that does not reply is not used for a while: its client may queue all commands. */
  async #run(command: (key: string) => Promise<unknown>, hash: string): Promise<unknown> {
    if (this.#waiting >= MAX_WAITING || performance.now() < this.#pausedUntil) return undefined;
    this.#waiting += 1;
    const { prefix, timeout } = this.#settings;
    const late = (): Error => new Error(`no reply within ${timeout} ms`);
    try {
      return await withTimeLimit(Promise.resolve(command(prefix + hash)), timeout, late);
    } catch (error) {
      this.#fail(error);
      return undefined;
    } finally {
      this.#waiting -= 1;
    }
  }

  #fail(cause: unknown): void {
    // Commands that began before the pause fail too.
    if (performance.now() < this.#pausedUntil) return;
    this.#pausedUntil = performance.now() + PAUSE;
    const reason = toError(cause).message;
    this.#onError(
      new Error(`The store of persisted queries failed: ${reason}. Queries count as not found meanwhile`, {
        cause,
      }),
    );
  }
}
