import type { GraphQLSchema } from 'graphql';
import type { RedisSource } from '../../types/redis.ts';
import type { OperationFunction } from '../core/caller.ts';
import type { Extension, ExtensionParts } from '../core/extension.ts';
import { noteLocalKeys } from '../diagnostics/logging.ts';
import {
  closest,
  duration,
  isEither,
  isListOf,
  optionalFunction,
  optionError,
  type Rules,
  resolveOptions,
  rule,
} from '../options/rules.ts';
import { IDEMPOTENCY_OPTIONS } from '../options/scopes.ts';
import { isBoolean, isString } from '../options/values.ts';
import { redisRule } from '../redis/clients.ts';
import { rootFieldsOnly, withDirective } from './directive.ts';
import { IdempotentMutations } from './mutations.ts';

/** The option `idempotency` after checks, with defaults filled in. */
export interface IdempotencySettings {
  readonly user: OperationFunction | undefined;
  readonly required: boolean | readonly string[];
  readonly redis: RedisSource | undefined;
  readonly ttl: number;
}

const rules: Rules<IdempotencySettings> = {
  user: optionalFunction(),
  required: rule<IdempotencySettings['required']>(
    false,
    isEither(isBoolean, isListOf(isString)),
    'a boolean, or a list of the fields of the mutation type',
  ),
  redis: redisRule,
  ttl: duration(24 * 60 * 60 * 1000),
};

/**
 * Creates the extension of the option `idempotency`.
 *
 * @throws TypeError (code `ERR_OPTION`).
 */
export function createIdempotency(
  { idempotency: given, caller }: { readonly idempotency?: unknown; readonly caller?: unknown },
  { reportBackground }: Pick<ExtensionParts, 'reportBackground'>,
): Extension {
  const settings = resolveOptions(IDEMPOTENCY_OPTIONS, given === true ? {} : given, rules);
  if (caller === undefined && settings.user === undefined) {
    const problem =
      'option "idempotency" needs the option "caller" or "idempotency.user", which say whose keys these are';
    throw optionError(IDEMPOTENCY_OPTIONS, `${problem}; an API without users has caller: () => null`);
  }
  if (settings.redis === undefined && process.env['NODE_ENV'] === 'production') noteLocalKeys();
  const mutations = new IdempotentMutations(settings, reportBackground);
  return {
    readsSource: true,
    check: (schema) => assertRequired(settings, schema),
    serve: withDirective,
    rule: rootFieldsOnly,
    prepare(prepared, { settings: { formatErrors } }) {
      if (prepared.operation.operation !== 'mutation') return undefined;
      const mutation = { prepared, formatErrors };
      return { execute: (inputs, next) => mutations.execute(mutation, inputs, next) };
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
