import { createHash } from 'node:crypto';
import type { GraphQLSchema } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import type { RedisSource } from '../../types/redis.ts';
import type { PreparedOperation, RequestError } from '../execution/types.ts';
import { toError } from '../http/reply.ts';
import type { Rules } from '../options/rules.ts';
import { isString, settle } from '../options/values.ts';
import { BoundedStore } from '../redis/bounded.ts';
import { type RedisCommands, redisRule } from '../redis/clients.ts';
import { commandsOf } from '../redis/commands.ts';
import { hashMismatch, notFound } from './document-id.ts';
import { type CoreParts, createDocumentCache, type DocumentParams, type PrepareText } from './documents.ts';
import { maxCharacters } from './limits.ts';

/** The options of automatic persisted queries after checks. */
export interface PersistedQuerySettings {
  readonly redis: RedisSource | undefined;
}

export const persistedRules: Rules<PersistedQuerySettings> = {
  redis: redisRule,
};

/** Creates the automatic persisted queries of one core, whose texts have `bytes` of memory. */
export function createPersisted(
  apq: PersistedQuerySettings,
  prepare: PrepareText,
  bytes: number,
  { options, report }: CoreParts,
): PersistedQueries {
  const store = apq.redis === undefined ? undefined : new SharedStore(apq.redis, report);
  return new PersistedQueries(prepare, store, { bytes, characters: maxCharacters(options.limits) });
}

type Prepared = PreparedOperation | RequestError;

const HASH = /^[0-9a-f]{64}$/;
/** Estimated bytes of a hash in the cache, in addition to the text. */
const ENTRY_BYTES = 300;

/** Returns the SHA-256 hash of a query, as clients compute it. */
export const hashQuery = (query: string): string => createHash('sha256').update(query).digest('hex');

/**
 * Automatic persisted queries of one core: texts by hash, next to the document cache, which has their prepared
 * form. A query is stored if it is valid and has the hash that the client sent.
 */
export class PersistedQueries {
  readonly #prepare: PrepareText;
  readonly #store: SharedStore | undefined;
  readonly #maxCharacters: number;
  readonly #texts: ReturnType<typeof createDocumentCache<string>>;

  constructor(
    prepare: PrepareText,
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
    if (known !== undefined) return this.#prepare(schema, params, source, known);
    const { document } = params;
    if (this.#store === undefined || !HASH.test(hash)) return notFound(document);
    return this.#store.get(hash).then((text) => {
      // Other applications may write to Redis.
      if (text === undefined || text.length > this.#maxCharacters || hashQuery(text) !== hash) {
        return notFound(document);
      }
      return this.#prepareAndKeep(schema, params, source, { hash, text });
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
    return settle(this.#prepareAndKeep(schema, params, source, { hash, text: query }), (prepared) => {
      if (prepared.kind !== 'error') this.#store?.set(hash, prepared.source);
      return prepared;
    });
  }

  #prepareAndKeep(
    schema: GraphQLSchema,
    params: DocumentParams,
    source: unknown,
    { hash, text }: { readonly hash: string; readonly text: string },
  ): MaybePromise<Prepared> {
    return settle(this.#prepare(schema, params, source, text), (prepared) => {
      if (prepared.kind === 'error') return prepared;
      // The same string as in the document cache, so there is no second copy of the text.
      this.#texts.set(schema, hash, prepared.source, ENTRY_BYTES + text.length * 2);
      return prepared;
    });
  }
}

const PREFIX = 'espalier:apq:';
/** Milliseconds after its last registration for which a query is kept. */
const TTL = 24 * 60 * 60 * 1000;
/** Milliseconds that a request waits for Redis. */
const TIMEOUT = 200;

/** The Redis of several processes, as a store that never fails: without Redis, every query is unknown. */
class SharedStore {
  readonly #redis: RedisCommands;
  readonly #bounded: BoundedStore;

  constructor(redis: RedisSource, onError: (error: unknown) => void) {
    this.#redis = commandsOf(redis);
    this.#bounded = new BoundedStore({
      timeout: TIMEOUT,
      late: `no reply within ${TIMEOUT} ms`,
      pausesAfterError: true,
      report(cause) {
        const reason = toError(cause).message;
        const message = `The store of persisted queries failed: ${reason}. Queries count as not found meanwhile`;
        onError(new Error(message, { cause }));
      },
    });
  }

  /** Returns a stored query; undefined if there is none, or if Redis fails or is slow. */
  async get(hash: string): Promise<string | undefined> {
    const get = () => this.#redis.send({ name: 'get', keys: [PREFIX + hash] });
    const found = await this.#bounded.use<unknown>(get, undefined);
    return isString(found) ? found : undefined;
  }

  /** Stores a query. Does not wait for Redis. */
  set(hash: string, query: string): void {
    const args = [query, 'PX', TTL];
    const set = () => this.#redis.send({ name: 'set', keys: [PREFIX + hash], args });
    void this.#bounded.use<unknown>(set, undefined);
  }
}
