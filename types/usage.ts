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

/** Where the counts of 100 days are kept: either `file` or `redis`. Without them they stay in memory. */
export interface UsageOptions {
  /** A JSON file. Several processes of one machine may share it. @default none */
  file?: string | URL | undefined;
  /** The Redis that all processes share: a hash per day. @default none */
  redis?: RedisSource | undefined;
}

/** The usage of the schema of one handler. */
export interface SchemaUsage {
  /** Writes the counts that are not written yet. Call it before the process ends. */
  flush(): Promise<void>;
  /** Writes the counts, and returns all that are kept. */
  report(): Promise<UsageReport>;
}
