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

/** Options of usage. The counts of 100 days are kept in either `file` or `redis`. Without them they stay in memory. */
export interface UsageOptions<Source = ContextSource, Context = unknown> {
  /** A JSON file. Several processes of one machine may share it. @default none */
  file?: string | URL | undefined;
  /** The Redis that all processes share: a hash per day. @default none */
  redis?: RedisSource | undefined;
  /**
   * Returns the client of an operation: a name, or `{ name, version }`. `undefined`: the one that its headers name. It gets the
   * request or, over sockets, the WebSocket, and the context.
   * @default the `client` of the option `caller`
   */
  client?: Hook<[source: Source, context: Context], string | UsageClient | undefined> | undefined;
}

/** The usage of the schema of one handler. */
export interface SchemaUsage {
  /** Writes the counts that are not written yet. Call it before the process ends. */
  flush(): Promise<void>;
  /** Writes the counts, and returns all that are kept. */
  report(): Promise<UsageReport>;
}
