import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { GraphQLSchema } from 'graphql';
import type { ErrorDetails, MaybePromise } from '../../types/connect.ts';
import type { FindDocument, PersistedQueryStore } from '../../types/graphql.ts';
import type { RedisSource } from '../../types/redis.ts';
import {
  type EngineSettings,
  type PreparedOperation,
  type RequestError,
  withNativePromise,
} from '../execution/types.ts';
import { toError } from '../http/reply.ts';
import {
  assertSync,
  bytes,
  delay,
  duration,
  formatValue,
  isEither,
  isOneOf,
  isPathOrUrl,
  optionError,
  type Rules,
  resolveOptions,
  rule,
  wrongReturnValue,
} from '../options/rules.ts';
import { DOCUMENT_OPTIONS, PERSISTED_QUERY_OPTIONS } from '../options/scopes.ts';
import { isBoolean, isFunction, isObject, isString, settle } from '../options/values.ts';
import { BoundedStore } from '../redis/bounded.ts';
import { isRedis, type RedisCommands, redisRule } from '../redis/clients.ts';
import { commandsOf } from '../redis/commands.ts';
import {
  type DocumentReference,
  documentNotFound,
  documentNotTrusted,
  hashMismatch,
  notFound,
  notSupported,
} from './document-id.ts';
import {
  createDocumentCache,
  createPrepare,
  type DocumentParams,
  type Prepare,
  type PrepareText,
} from './documents.ts';
import { selectEngine } from './engines.ts';
import { maxCharacters } from './limits.ts';
import type { CoreSettings } from './options.ts';
import {
  createTrustedList,
  parseManifest,
  readDocumentsSync,
  type TrustedDocuments,
  type TrustedTexts,
} from './trusted.ts';

/** The documents of one core that clients request by id. */
export interface CoreDocuments {
  /** Whether a segment of a path may be the id of a document. */
  isId(segment: string): boolean;
  /** The trusted documents at present; undefined if a function finds them or returns the schema. */
  trusted(): TrustedDocuments | undefined;
  /** Calls the listener after the files of the trusted documents were read again. */
  onReload(listener: () => void): void;
}

/** The fraction of `documents.cacheBytes` for the texts of automatic persisted queries. */
const PERSISTED_SHARE = 1 / 8;

/** Creates the `prepare` function of one core, and the documents of its option `documents`. */
export function createCoreDocuments(parts: CoreParts): {
  readonly prepare: Prepare;
  readonly documents: CoreDocuments | undefined;
  /** Prepares the known documents for another schema, and returns the function that uses them. */
  readonly warm: (from: GraphQLSchema, to: GraphQLSchema) => Promise<() => void>;
} {
  const { options, engineSettings } = parts;
  const engine = selectEngine(options.engine);
  const settings = resolveDocuments(options.documents);
  const { from, apq, cacheBytes } = settings;
  if (options.documents === undefined) {
    const prepare = createPrepare(engine, engineSettings, { ...options, cacheBytes });
    const warm = async (from: GraphQLSchema, to: GraphQLSchema) => {
      await prepare.warm(from, to);
      return () => undefined;
    };
    return { prepare, documents: undefined, warm };
  }
  const persistedBytes = apq === undefined ? 0 : cacheBytes * PERSISTED_SHARE;
  const prepare = createPrepare(engine, engineSettings, {
    ...options,
    cacheBytes: cacheBytes - persistedBytes,
  });
  const list = from?.kind === 'list' ? createTrustedList(from, parts) : undefined;
  const find = from?.kind === 'function' ? prepareFound(from.find, prepare) : undefined;
  const trusted: PrepareTrusted | undefined =
    list && ((id, schema, params, source) => list.prepare(id, schema, params, source));
  return {
    prepare: createPrepareById(settings, {
      prepare,
      trusted: trusted ?? find,
      persisted: apq === undefined ? undefined : createPersisted(apq, prepare, persistedBytes, parts),
      untrusted: new UntrustedReports(parts.report),
    }),
    documents: {
      isId: (segment) => list?.has(segment) === true || find !== undefined || LIKE_A_HASH.test(segment),
      trusted: () => list?.trusted(),
      onReload: (listener) => list?.onReload(listener),
    },
    warm: async (from, to) => {
      await prepare.warm(from, to);
      await list?.warm(to);
      return () => list?.use(to);
    },
  };
}

/** A hexadecimal hash of at least 128 bits, or an id with a prefix of the specification. */
const LIKE_A_HASH = /^(?:(?:sha256|x-[\w.~-]+):[\w.~-]+|[0-9a-f]{32,128})$/;

function createPersisted(
  apq: PersistedQuerySettings,
  prepare: PrepareText,
  bytes: number,
  { options, report }: CoreParts,
): PersistedQueries {
  const target = apq.redis ?? apq.store;
  const store = target === undefined ? undefined : new SharedStore(target, apq, report);
  return new PersistedQueries(prepare, store, { bytes, characters: maxCharacters(options.limits) });
}

/** Prepares the trusted document with an id. Returns undefined for an unknown one. */
type PrepareTrusted = (
  id: string,
  ...args: Parameters<Prepare>
) => MaybePromise<PreparedOperation | RequestError | undefined>;

/** The kinds of documents of one core, as the option `documents` selects them. */
interface DocumentKinds {
  /** Prepares any document by its text. */
  readonly prepare: Prepare;
  readonly trusted: PrepareTrusted | undefined;
  readonly persisted: PersistedQueries | undefined;
  readonly untrusted: UntrustedReports;
}

/** What happens to a document that is not trusted: it runs, is refused, or runs and is reported. */
type Only = boolean | 'report';

/**
 * Creates the `prepare` function of a core with the option `documents`. A trusted id takes precedence over a text.
 */
function createPrepareById(
  { only }: Pick<DocumentSettings, 'only'>,
  { prepare, trusted, persisted, untrusted }: DocumentKinds,
): Prepare {
  const onlyFor =
    typeof only === 'function'
      ? (source: unknown) => assertSync(only(source), DOCUMENT_OPTIONS, 'only')
      : () => only;

  const unknown = trusted === undefined && persisted === undefined ? notSupported : notFound;

  const prepareOther: Prepare = (schema, params, source) => {
    const mode = onlyFor(source);
    if (mode === 'report') {
      return settle(prepareText(schema, params, source), (prepared) => untrusted.note(prepared, source));
    }
    if (mode) return params.query === '' ? documentNotFound() : documentNotTrusted();
    return prepareText(schema, params, source);
  };

  const prepareText: Prepare = (schema, params, source) => {
    const { document, query } = params;
    if (document !== undefined) {
      const hash = hashOf(document);
      if (persisted !== undefined && hash !== undefined) {
        return persisted.prepare(schema, params, source, hash);
      }
      if (query === '') return unknown(document);
    }
    return prepare(schema, params, source);
  };

  return (schema, params, source) => {
    if (params.document === undefined || trusted === undefined) return prepareOther(schema, params, source);
    const found = trusted(params.document.id, schema, params, source);
    return settle(found, (prepared) => prepared ?? prepareOther(schema, params, source));
  };
}

/** The number of different documents that one core reports. Texts that contain values are all different. */
const MAX_REPORTED = 1000;

/** Reports each document that `documents.only` would refuse, once. */
class UntrustedReports {
  readonly #report: CoreParts['report'];
  readonly #known = new WeakSet<PreparedOperation>();
  readonly #hashes = new Set<string>();

  constructor(report: CoreParts['report']) {
    this.#report = report;
  }

  note(prepared: PreparedOperation | RequestError, source: unknown): PreparedOperation | RequestError {
    if (prepared.kind !== 'error' && !this.#known.has(prepared)) {
      this.#known.add(prepared);
      this.#noteText(prepared, source);
    }
    return prepared;
  }

  #noteText({ source: text, operation }: PreparedOperation, source: unknown): void {
    const hash = hashQuery(text);
    if (this.#hashes.size === MAX_REPORTED || this.#hashes.has(hash)) return;
    this.#hashes.add(hash);
    const operationName = operation.name?.value;
    const last = this.#hashes.size === MAX_REPORTED ? `. The next ones are not reported` : '';
    const subject =
      operationName === undefined ? 'An unnamed document' : `The document of "${operationName}"`;
    const message = `${subject} (sha256:${hash}) is not trusted: documents.only = true would refuse it${last}`;
    // Both have headers and a socket.
    const isWebSocket = isObject(source) && isFunction(source['send']);
    this.#report(Object.assign(new Error(message), { code: 'DOCUMENT_NOT_TRUSTED' }), {
      operationName,
      ...(isWebSocket ? { transport: 'websocket', socket: source } : { request: source }),
    } as Partial<ErrorDetails>);
  }
}

/** The maximum length of an id that is passed to the function of the option. */
const MAX_ID_LENGTH = 512;

/** Finds the texts of trusted documents with a function. The document cache has their prepared form. */
function prepareFound(find: FindDocument, prepare: PrepareText): PrepareTrusted {
  return (id, schema, params, source) => {
    if (id.length > MAX_ID_LENGTH) return undefined;
    const use = (text: unknown): ReturnType<PrepareTrusted> => {
      if (text === undefined || text === null) return undefined;
      if (typeof text !== 'string' || text === '') {
        throw wrongReturnValue(DOCUMENT_OPTIONS, 'from', text, 'the text of a document, or undefined');
      }
      return prepare(schema, params, source, text);
    };
    const found = find(id);
    return settle(withNativePromise(found), use);
  };
}

/** The parts of a core that its documents need. */
export interface CoreParts {
  /** The schema, or a function that returns one per request. */
  readonly schema: unknown;
  readonly options: CoreSettings;
  readonly engineSettings: EngineSettings;
  /** Reports an error outside of operations, with what is known of the operation that caused it. */
  report(error: unknown, details?: Partial<ErrorDetails>): void;
}

/** The trusted documents: a list, with the path that it was read from, or a function. */
type TrustedSource =
  | { readonly kind: 'list'; readonly texts: TrustedTexts; readonly path: string | undefined }
  | { readonly kind: 'function'; readonly find: FindDocument };

/** The options of automatic persisted queries after checks. */
interface PersistedQuerySettings {
  readonly redis: RedisSource | undefined;
  readonly store: PersistedQueryStore | undefined;
  readonly ttl: number;
  readonly timeout: number;
  readonly prefix: string;
}

/** The option `documents` after checks. */
interface DocumentSettings {
  readonly from: TrustedSource | undefined;
  readonly only: Only | ((source: unknown) => Only);
  readonly apq: PersistedQuerySettings | undefined;
  /** The memory for prepared documents. */
  readonly cacheBytes: number;
}

interface Given {
  readonly from: unknown;
  readonly only: DocumentSettings['only'];
  readonly apq: unknown;
  readonly cacheBytes: number;
}

const rules: Rules<Given> = {
  from: rule<unknown>(
    undefined,
    isEither(isPathOrUrl, isObject, isFunction),
    'the path of a file or directory, an object or Map of texts by id, or a function of the id',
  ),
  only: rule<DocumentSettings['only']>(
    false,
    isEither(isBoolean, isOneOf('report'), isFunction),
    "a boolean, 'report', or a function of the request",
  ),
  apq: rule<unknown>(false, isEither(isBoolean, isObject), 'a boolean, or an object of options'),
  cacheBytes: bytes(32 * 1024 * 1024, { to: Number.POSITIVE_INFINITY }),
};

const apqRules: Rules<PersistedQuerySettings> = {
  redis: redisRule,
  store: rule<PersistedQuerySettings['store']>(
    undefined,
    (value) => isObject(value) && isFunction(value['get']) && isFunction(value['set']) && !isRedis(value),
    'an object with the functions "get" and "set"; a Redis is the option "redis"',
  ),
  ttl: duration(24 * 60 * 60 * 1000),
  timeout: delay(200),
  prefix: rule('espalier:apq:', isString, 'a string'),
};

/**
 * Checks the option `documents`, and reads the trusted documents.
 *
 * @throws TypeError (code `ERR_OPTION`).
 */
function resolveDocuments(given: unknown): DocumentSettings {
  const { from, only, apq, cacheBytes } = resolveOptions(DOCUMENT_OPTIONS, given, rules);
  const fail = (message: string): TypeError => optionError(DOCUMENT_OPTIONS, message);
  if (only !== false && from === undefined) {
    throw fail('option "documents.only" needs the documents that it allows; set "documents.from" too');
  }
  if (only === true && apq !== false) {
    throw fail('option "documents.apq" has no effect with "documents.only": true; remove one of them');
  }
  return {
    from: from === undefined ? undefined : sourceOf(from),
    cacheBytes,
    only,
    apq: apq === false ? undefined : resolvePersisted(apq === true ? {} : apq),
  };
}

function resolvePersisted(given: unknown): PersistedQuerySettings {
  const settings = resolveOptions(PERSISTED_QUERY_OPTIONS, given, apqRules);
  if (settings.redis === undefined || settings.store === undefined) return settings;
  throw optionError(
    PERSISTED_QUERY_OPTIONS,
    'options "documents.apq.redis" and "documents.apq.store" are both set; remove one of them',
  );
}

function sourceOf(from: unknown): TrustedSource {
  if (typeof from === 'function') return { kind: 'function', find: from as FindDocument };
  const path = isString(from) || from instanceof URL ? toPath(from) : undefined;
  try {
    const texts = path === undefined ? parseManifest(from) : readDocumentsSync(path);
    return { kind: 'list', texts, path };
  } catch (error) {
    const { message } = error as Error;
    throw optionError(
      DOCUMENT_OPTIONS,
      `option "documents.from" is ${formatValue(path ?? from)}, which cannot be read: ${message}`,
    );
  }
}

const toPath = (path: string | URL): string => (isString(path) ? resolve(path) : fileURLToPath(path));

type Prepared = PreparedOperation | RequestError;

const PREFIXED = /^sha256:([0-9a-f]{64})$/;
const HASH = /^[0-9a-f]{64}$/;
/** Estimated bytes of a hash in the cache, in addition to the text. */
const ENTRY_BYTES = 300;

/** Returns the hash in a reference, which may be malformed in Apollo's protocol; undefined for any other id. */
function hashOf({ id, isPersistedQuery }: DocumentReference): string | undefined {
  return isPersistedQuery ? id : PREFIXED.exec(id)?.[1];
}

/** Returns the SHA-256 hash of a query, as clients compute it. */
const hashQuery = (query: string): string => createHash('sha256').update(query).digest('hex');

/**
 * Automatic persisted queries of one core: texts by hash, next to the document cache, which has their prepared
 * form. A query is stored if it is valid and has the hash that the client sent.
 */
class PersistedQueries {
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
      // Other applications may write to the store.
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
    const prepared = this.#prepareAndKeep(schema, params, source, { hash, text: query });
    return settle(prepared, (settled) => this.#share(settled, hash));
  }

  #prepareAndKeep(
    schema: GraphQLSchema,
    params: DocumentParams,
    source: unknown,
    { hash, text }: { readonly hash: string; readonly text: string },
  ): MaybePromise<Prepared> {
    const prepared = this.#prepare(schema, params, source, text);
    return settle(prepared, (settled) => this.#keep(schema, settled, hash));
  }

  #keep(schema: GraphQLSchema, prepared: Prepared, hash: string): Prepared {
    if (prepared.kind === 'error') return prepared;
    // The same string as in the document cache, so there is no second copy of the text.
    const { source } = prepared;
    this.#texts.set(schema, hash, source, ENTRY_BYTES + source.length * 2);
    return prepared;
  }

  #share(prepared: Prepared, hash: string): Prepared {
    if (prepared.kind !== 'error') this.#store?.set(hash, prepared.source);
    return prepared;
  }
}

const storeIn = (redis: RedisCommands): PersistedQueryStore => ({
  async get(key) {
    const text = await redis.send({ name: 'get', keys: [key] });
    return isString(text) ? text : undefined;
  },
  set: (key, ...args) => redis.send({ name: 'set', keys: [key], args }),
});

/** A store of several processes that never fails: without the store, every query is unknown. */
class SharedStore {
  readonly #settings: PersistedQuerySettings;
  readonly #store: PersistedQueryStore;
  readonly #bounded: BoundedStore;

  constructor(
    store: RedisSource | PersistedQueryStore,
    settings: PersistedQuerySettings,
    onError: (error: unknown) => void,
  ) {
    this.#store = isRedis(store) ? storeIn(commandsOf(store)) : store;
    this.#settings = settings;
    const { timeout } = settings;
    this.#bounded = new BoundedStore({
      timeout,
      late: `no reply within ${timeout} ms`,
      pausesAfterError: true,
      report(cause) {
        const reason = toError(cause).message;
        const message = `The store of persisted queries failed: ${reason}. Queries count as not found meanwhile`;
        onError(new Error(message, { cause }));
      },
    });
  }

  /** Returns a stored query; undefined if there is none, or if the store fails or is slow. */
  async get(hash: string): Promise<string | undefined> {
    const { prefix } = this.#settings;
    const found = await this.#bounded.use<unknown>(() => this.#store.get(prefix + hash), undefined);
    return isString(found) ? found : undefined;
  }

  /** Stores a query. Does not wait for the store. */
  set(hash: string, query: string): void {
    const { prefix, ttl } = this.#settings;
    void this.#bounded.use<unknown>(() => this.#store.set(prefix + hash, query, 'PX', ttl), undefined);
  }
}
