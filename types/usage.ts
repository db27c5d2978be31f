import type { ContextSource, Hook } from './connect.ts';
import type { RedisSource } from './redis.ts';

/** A client of the API, as it names itself. */
export interface UsageClient {
  readonly name: string;
  readonly version?: string | undefined;
}

/** The operations of one client on one day, and how many of them used each schema coordinate. */
export interface ClientUsage {
  readonly operations: number;
  /** By coordinate, such as `User.email`, `Query.users(first:)`, `Role.ADMIN` or `@include(if:)`. */
  readonly coordinates: Readonly<Record<string, number>>;
}

/** Counts by day (`2026-01-31`, UTC), then by client (`web@1.2.0`, or `web` without a version). */
export interface UsageReport {
  readonly version: 1;
  readonly days: Readonly<Record<string, Readonly<Record<string, ClientUsage>>>>;
}

/** Options of usage. Either `file` or `redis`; without them the counts stay in memory. */
export interface UsageOptions<Source = ContextSource> {
  /** A JSON file. Several processes of one machine may share it. @default none */
  file?: string | URL | undefined;
  /** The Redis that all processes share: a hash per day. @default none */
  redis?: RedisSource | undefined;
  /** The days that are kept, in the file, in Redis and in memory. @default 100 */
  days?: number | undefined;
  /**
   * Returns the client of a request or, once per connection, of a WebSocket.
   * @default the headers `graphql-client-name` and `graphql-client-version`, or those of Apollo; over a WebSocket
   * members of `connection_init` with these names take precedence
   */
  client?:
    | Hook<
        [source: Source, connectionParams: Readonly<Record<string, unknown>> | undefined],
        UsageClient | string | undefined
      >
    | undefined;
}

/** The usage of the schema of one handler. */
export interface SchemaUsage {
  /** Writes the counts that are not written yet. Call it before the process ends. */
  flush(): Promise<void>;
  /** Writes the counts, and returns all that are kept. */
  report(): Promise<UsageReport>;
}
