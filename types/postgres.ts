import type { Duration } from './connect.ts';

/** The parts of a `Client` of the package `pg` that are used. */
export interface PostgresClient {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: unknown[] }>;
  on(event: string, listener: (...args: never[]) => void): unknown;
  off(event: 'error', listener: (error: Error) => void): unknown;
  release(destroy?: boolean | Error): void;
}

/** A `Pool` of the package `pg` (version 8). */
export interface PostgresPool {
  readonly options?: { readonly max?: number | undefined };
  connect(): Promise<PostgresClient>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'connect', listener: (client: PostgresClient) => void): unknown;
  off(event: 'error', listener: (error: Error) => void): unknown;
  off(event: 'connect', listener: (client: PostgresClient) => void): unknown;
}

/** Options of `postgres`. */
export interface PostgresOptions {
  /**
   * The schema of the tables: 1 to 40 lower-case letters, digits and `_`. Applications with one database need
   * different schemas. It is created if it is missing, for which the user needs the permission CREATE on the database,
   * unless your own migrations run the SQL of `migration()` before.
   * @default 'espalier'
   */
  schema?: string | undefined;
  /**
   * A pool with direct connections or session pooling for the connection that listens, when `pool` leads to a
   * pooler in transaction mode. That connection stays open.
   * @default the same pool, of which one connection is then always in use
   */
  listen?: PostgresPool | undefined;
  /**
   * The time without traffic after which the listening connection is checked with a query, and a topic for missed events.
   * @default 5000
   */
  heartbeat?: Duration | undefined;
  /**
   * The time in which PostgreSQL must reply. After that the listening connection is closed and opened again, and
   * waiting publishes reject with the code `ERR_POSTGRES_TIMEOUT`: their events may still be stored. Also the time
   * limit for connecting. After twelve times as long without a connection, streams end with `ERR_EVENTS_MISSED`.
   * @default 5000
   */
  commandTimeout?: Duration | undefined;
}
