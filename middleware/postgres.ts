import { migrationFor } from '../src/postgres/sql.ts';
import { PostgresTransport, schemaOf } from '../src/postgres/transport.ts';
import type { PostgresOptions, PostgresPool } from '../types/postgres.ts';
import type { EventTransport } from '../types/pubsub.ts';

export type * from '../types/postgres.ts';

/**
 * Creates a transport for `createPubSub` that stores events in PostgreSQL 12 or later. The topics of all processes with
 * the same database and schema are shared. Needs the package `pg`. The pool stays yours: end it after the pubsub.
 *
 * @throws TypeError (code `ERR_OPTION`) for an unknown option or a wrong value.
 * @example
 * const events = createPubSub({ transport: postgres(new pg.Pool({ connectionString })) });
 * // Within the transaction of a client:
 * const send = (client: pg.PoolClient) => events.publish('message', { text: 'hi' }, { client });
 */
export function postgres(pool: PostgresPool, options?: PostgresOptions): EventTransport {
  return new PostgresTransport(pool, options);
}

/**
 * Returns the SQL that creates the schema, tables and function of `postgres`, for your own migrations. It may run again.
 *
 * @throws TypeError (code `ERR_OPTION`) for a wrong name.
 */
export function migration(schema?: string): string {
  return migrationFor(schemaOf(schema));
}
