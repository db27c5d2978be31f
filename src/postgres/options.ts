import type { PostgresOptions, PostgresPool } from '../../types/postgres.ts';
import {
  delay,
  duration,
  flag,
  isFunction,
  isObject,
  isString,
  positive,
  type Rules,
  resolveOptions,
  rule,
  wrongArgument,
} from '../options/rules.ts';
import { POSTGRES_HISTORY, POSTGRES_OPTIONS } from '../options/scopes.ts';
import type { HistoryLimits } from '../pubsub/history.ts';

export interface PostgresSettings {
  readonly pool: PostgresPool;
  readonly schema: string;
  readonly create: boolean;
  readonly history: HistoryLimits;
  readonly listen: PostgresPool;
  readonly heartbeat: number;
  readonly commandTimeout: number;
}

const isSchema = (value: unknown): boolean => isString(value) && /^[a-z_][a-z0-9_]{0,39}$/.test(value);
const isPool = (value: unknown): boolean =>
  isObject(value) && ['query', 'connect', 'on', 'off'].every((name) => isFunction(value[name]));

const SCHEMA = '1 to 40 lower-case letters, digits and _, such as "espalier"';
const POOL = 'a Pool of the package pg, such as new pg.Pool({ connectionString })';

type Given = Omit<PostgresSettings, 'pool' | 'history' | 'listen'> & {
  readonly history: unknown;
  readonly listen: PostgresPool | undefined;
};

const RULES: Rules<Given> = {
  schema: rule('espalier', isSchema, SCHEMA),
  create: flag(true),
  history: rule<unknown>({}, isObject, 'an object such as { length: 1000, age: 300_000 }'),
  listen: rule<PostgresPool | undefined>(undefined, isPool, POOL),
  heartbeat: delay(5000),
  commandTimeout: delay(5000),
};

const HISTORY_RULES: Rules<HistoryLimits> = { length: positive(1000), age: duration(300_000) };

export function resolvePostgresOptions(
  pool: PostgresPool,
  options: PostgresOptions | undefined,
): PostgresSettings {
  if (!isPool(pool)) throw wrongArgument(POSTGRES_OPTIONS, 'pool', pool, POOL);
  const given = resolveOptions<Given>(POSTGRES_OPTIONS, options, RULES);
  return {
    ...given,
    pool,
    listen: given.listen ?? pool,
    history: resolveOptions<HistoryLimits>(POSTGRES_HISTORY, given.history, HISTORY_RULES),
  };
}

/** @throws TypeError (code `ERR_OPTION`) for a wrong name. */
export function schemaOf(schema: string = RULES.schema.fallback): string {
  if (isSchema(schema)) return schema;
  throw wrongArgument({ ...POSTGRES_OPTIONS, name: 'migration' }, 'schema', schema, SCHEMA);
}
