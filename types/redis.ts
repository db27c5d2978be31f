import type { MaybePromise } from './connect.ts';

/**
 * A Redis or Valkey server, or a cluster of them. Every option takes it in one of these forms:
 *
 * - A URL: `redis://user:password@host:port/database?keyPrefix=name:`, percent-encoded, or `rediss://…` for TLS. Needs one
 *   of the packages `redis` (node-redis, version 5 or later), `ioredis` and `iovalkey`; the first that is installed is used.
 * - A URL with a function that returns the password, which may expire (`RedisLogin`).
 * - A client or cluster of `redis`, `ioredis` (version 5 or 6) or `iovalkey`.
 *
 * `createPubSub` and `redisStore` open connections of their own, with the settings of the client, which is not used
 * itself; their `close()` closes them. The options of `graphqlHTTP` use a client as it is, and the application connects
 * and closes it. For a URL they share one connection per process, which opens with the first of them and does not keep
 * the process running.
 */
export type RedisSource = string | RedisLogin | RedisClient;

/** A client of `redis`, `ioredis` or `iovalkey`, or a cluster of one of them. */
export interface RedisClient {
  duplicate(override?: object): unknown;
}

/** A server whose password expires, such as a token of a cloud provider. */
export interface RedisLogin {
  /** The URL of the server. */
  url: string;
  /** Called before each attempt to connect. If it fails, or if Redis refuses what it returns, it is called again later. */
  credentials: () => MaybePromise<RedisCredentials>;
}

/** What a connection authenticates with. */
export interface RedisCredentials {
  /** @default that of the URL, or the default user */
  username?: string | undefined;
  password: string;
}
