import { GraphQLSchema, type ValidationRule } from 'graphql';
import type { RedisSource } from '../../types/redis.ts';
import type { EngineSettings } from '../execution/types.ts';
import {
  closest,
  delay,
  duration,
  isBoolean,
  isEither,
  isFunction,
  isListOf,
  isString,
  optionError,
  type Rules,
  resolveOptions,
  rule,
  wrongOption,
} from '../options/rules.ts';
import { IDEMPOTENCY_OPTIONS } from '../options/scopes.ts';
import { redisRule } from '../redis/clients.ts';
import { rootFieldsOnly, withDirective } from './directive.ts';
import { IdempotentMutations } from './mutations.ts';

/** The option `idempotency` after checks, with defaults filled in. */
export interface IdempotencySettings {
  readonly user: (source: unknown, context: unknown) => unknown;
  readonly required: boolean | readonly string[];
  readonly store: RedisSource | undefined;
  readonly prefix: string;
  readonly retention: number;
  readonly lease: number;
  readonly wait: number;
}

const rules: Rules<IdempotencySettings> = {
  user: rule<IdempotencySettings['user']>(() => null, isFunction, 'a function of the request'),
  required: rule<IdempotencySettings['required']>(
    false,
    isEither(isBoolean, isListOf(isString)),
    'a boolean, or a list of the fields of the mutation type',
  ),
  store: redisRule,
  prefix: rule('espalier:idempotency:', isString, 'a string'),
  retention: duration(24 * 60 * 60 * 1000),
  lease: delay(15_000),
  wait: delay(5000, 0),
};

/** What the core needs of the option `idempotency`. */
export interface Idempotency {
  /** Wraps the execution of mutations. */
  readonly idempotent: NonNullable<EngineSettings['idempotent']>;
  /** Adds `@idempotent` to a schema. The schema itself stays as it is. */
  withDirective(schema: GraphQLSchema): GraphQLSchema;
  /** Refuses `@idempotent` where it would have no effect. */
  readonly rule: ValidationRule;
}

/**
 * Checks the option `idempotency`.
 *
 * @throws TypeError (code `ERR_OPTION`).
 */
export function createIdempotency(
  given: unknown,
  schema: unknown,
  report: (error: unknown) => void,
): Idempotency {
  const settings = resolveOptions(IDEMPOTENCY_OPTIONS, given, rules);
  if ((given as { readonly user?: unknown }).user === undefined) {
    throw wrongOption(IDEMPOTENCY_OPTIONS, 'user', undefined, rules.user.accepted);
  }
  if (schema instanceof GraphQLSchema) assertRequired(settings, schema);
  const mutations = new IdempotentMutations(settings, report);
  return {
    withDirective,
    rule: rootFieldsOnly,
    idempotent: (prepared, { formatErrors }) => {
      if (prepared.operation.operation !== 'mutation') return prepared.execute;
      const mutation = { prepared, formatErrors };
      return (inputs) => mutations.execute(mutation, inputs);
    },
  };
}

/** @throws TypeError (code `ERR_OPTION`) for a name that is not a field: its mutation would run without a key. */
function assertRequired({ required }: IdempotencySettings, schema: GraphQLSchema): void {
  if (typeof required === 'boolean') return;
  const names = Object.keys(schema.getMutationType()?.getFields() ?? {});
  const wrong = required.find((name) => !names.includes(name));
  if (wrong === undefined) return;
  const similar = closest(wrong, names);
  throw optionError(
    IDEMPOTENCY_OPTIONS,
    `option "idempotency.required" has "${wrong}", which is not a field of the mutation type${similar === undefined ? '' : `; did you mean "${similar}"?`}`,
  );
}
