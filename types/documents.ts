import type { ContextSource, Hook, MaybePromise } from './connect.ts';

/** The manifest that Apollo's `generate-persisted-query-manifest` writes. */
export interface PersistedQueryManifest {
  readonly format: 'apollo-persisted-query-manifest';
  readonly version: 1;
  readonly operations: readonly {
    readonly id: string;
    readonly body: string;
    readonly name?: string | undefined;
    readonly type?: string | undefined;
  }[];
}

/** The texts of documents by id. Ids are compared as they are: a hash, or any other name. */
export type DocumentMap = Readonly<Record<string, string>>;

/** Returns the text of a document by its id, or undefined for an unknown id. */
export type FindDocument = (id: string) => MaybePromise<string | null | undefined>;

/**
 * The trusted documents: a file, a directory, an object, a Map or a function. A file contains Apollo's manifest
 * or a JSON object of texts by id, as Relay and graphql-codegen write it. A directory contains one
 * `<id>.graphql` per document.
 */
export type DocumentSource =
  | string
  | URL
  | DocumentMap
  | PersistedQueryManifest
  | ReadonlyMap<string, string>
  | FindDocument;

/**
 * A store that several processes share. A client of `ioredis` is one. It gets one key per hash.
 */
export interface PersistedQueryStore {
  get(key: string): Promise<string | null | undefined>;
  set(key: string, value: string, unit: 'PX', milliseconds: number): Promise<unknown>;
}

/** Options of automatic persisted queries. */
export interface PersistedQueryOptions {
  /**
   * A store that several processes share, such as a client of `ioredis`. If it fails or is slow, the query counts
   * as not found.
   * @default none: the document cache of this process
   */
  store?: PersistedQueryStore | undefined;
  /**
   * Milliseconds until the store forgets a query. Each registration begins them again.
   * @default 86_400_000 (a day)
   */
  ttl?: number | undefined;
  /**
   * Milliseconds to wait for the store.
   * @default 200
   */
  timeout?: number | undefined;
  /**
   * Prefix of the keys in the store.
   * @default 'espalier:apq:'
   */
  prefix?: string | undefined;
}

/** The option `documents` of `graphqlHTTP`: documents that clients request by id. */
export interface DocumentsOptions<Source = ContextSource> {
  /**
   * The trusted documents. All of them are validated and prepared when the middleware is created. A file or
   * directory is read again when it changes; the previous documents stay in use if it cannot be read.
   * @default none
   */
  from?: DocumentSource | undefined;
  /**
   * Whether all other documents are refused (403, code `DOCUMENT_NOT_TRUSTED`), or a function of the request or
   * WebSocket.
   * @default false
   */
  only?: boolean | Hook<[source: Source], boolean> | undefined;
  /**
   * Automatic persisted queries: clients register the hashes of their queries. This saves bandwidth and protects
   * nothing, because any client can register any query.
   * @default false
   */
  apq?: boolean | PersistedQueryOptions | undefined;
  /**
   * The path of a JSON file that collects the documents that clients send, by id. For development: it throws if
   * `NODE_ENV` is `production`.
   * @default none
   */
  record?: string | URL | undefined;
}
