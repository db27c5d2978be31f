import { GraphQLError } from 'graphql';
import type { Caller } from '../../types/caller.ts';
import type { MaybePromise } from '../../types/connect.ts';
import type { RedisSource } from '../../types/redis.ts';
import { refuse } from '../execution/graphql-error.ts';
import { type RequestError, withNativePromise } from '../execution/types.ts';
import { clientKey } from '../http/address.ts';
import type { Headers } from '../http/reply.ts';
import {
  duration,
  oneOf,
  optionalFunction,
  positive,
  type Rules,
  resolveOptions,
  wrongOption,
  wrongReturnValue,
} from '../options/rules.ts';
import { BUDGET_OPTIONS } from '../options/scopes.ts';
import { isString, settle } from '../options/values.ts';
import { createBuckets, secondsUntil, type Taken } from '../rate-limit/buckets.ts';
import { refuseOperation, tooMany } from '../rate-limit/refusal.ts';
import { redisRule } from '../redis/clients.ts';

/** The option `budget` after checks, with defaults filled in. */
interface BudgetSettings {
  readonly limit: number;
  readonly window: number;
  readonly unit: 'cost' | 'operations';
  readonly key: ((source: unknown, context: unknown) => MaybePromise<unknown>) | undefined;
  readonly redis: RedisSource | undefined;
  readonly onUnavailable: 'local' | 'open' | 'closed';
}

const rules: Rules<BudgetSettings> = {
  // The option is required: its default is refused.
  limit: positive(0, 'tokens'),
  window: duration(60_000),
  unit: oneOf('cost', 'operations'),
  key: optionalFunction(),
  redis: redisRule,
  onUnavailable: oneOf('local', 'open', 'closed'),
};

/**
 * Checks the option `budget`.
 *
 * @throws TypeError (code `ERR_OPTION`).
 */
export function resolveBudget(given: unknown): BudgetSettings {
  const settings = resolveOptions(BUDGET_OPTIONS, given, rules);
  if (settings.limit === 0) throw wrongOption(BUDGET_OPTIONS, 'limit', undefined, rules.limit.accepted);
  return settings;
}

/** The headers of a response whose operation is within the budget. */
interface WithinBudget {
  readonly kind: 'within';
  readonly headers: Headers | undefined;
}

/** Takes the tokens of an operation from the bucket of its key. */
type BudgetCheck = (
  source: unknown,
  context: unknown,
  cost: number,
  caller?: Caller | null,
) => MaybePromise<RequestError | WithinBudget>;

const WARNING = { owner: 'graphqlHTTP: budget', type: 'BudgetWarning', code: 'ESPALIER_BUDGET' };

const UNLIMITED: WithinBudget = { kind: 'within', headers: undefined };

export function createBudgetCheck(settings: BudgetSettings): BudgetCheck {
  const { limit, unit, key: keyOf, redis, onUnavailable } = settings;
  const buckets = createBuckets<'open' | 'closed'>({
    redis,
    prefix: 'espalier:budget:',
    warning: WARNING,
    away: (local) => (onUnavailable === 'local' ? local() : onUnavailable),
  })(settings);

  function take(key: unknown, cost: number): MaybePromise<RequestError | WithinBudget> {
    if (key === undefined) return UNLIMITED;
    if (!isString(key))
      throw wrongReturnValue(BUDGET_OPTIONS, 'key', key, 'a string, or undefined for no budget');
    const tokens = unit === 'cost' ? cost : 1;
    if (tokens > limit) return tooExpensive(tokens, limit);
    return settle(buckets.take(key, tokens), (taken) => {
      if (taken === 'open') return UNLIMITED;
      return taken === 'closed' ? UNAVAILABLE : toResult(taken, tokens, settings);
    });
  }

  return (source, context, cost, caller) => {
    if (keyOf === undefined) return take(clientKey(source, caller), cost);
    return settle(withNativePromise(keyOf(source, context)), (key) => take(key, cost));
  };
}

const UNAVAILABLE: RequestError = {
  kind: 'error',
  errors: [
    new GraphQLError('The budget cannot be checked at the moment; try again later', {
      extensions: { code: 'BUDGET_UNAVAILABLE', http: { status: 503, headers: { 'retry-after': '1' } } },
    }),
  ],
  status: 503,
};

function toResult(taken: Taken, tokens: number, settings: BudgetSettings): RequestError | WithinBudget {
  const { limit, window } = settings;
  const headers = rateLimitHeaders(taken, settings);
  if (taken.allowed) return { kind: 'within', headers };
  const reason = `The budget of ${limit} per ${window / 1000} s is used up`;
  return refuseOperation(tooMany(reason, secondsUntil(tokens, taken, settings), headers));
}

/** draft-ietf-httpapi-ratelimit-headers-10, §3 and §4. */
function rateLimitHeaders({ left }: Taken, { limit, window, unit }: BudgetSettings): Headers {
  const untilFull = Math.ceil(((limit - left) * window) / limit / 1000);
  return {
    'ratelimit-policy': `"${unit}";q=${limit};w=${Math.ceil(window / 1000)}`,
    ratelimit: `"${unit}";r=${Math.floor(left)};t=${untilFull}`,
  };
}

const tooExpensive = (cost: number, limit: number): RequestError => ({
  ...refuse(
    `The cost ${cost} of the operation exceeds the whole budget of ${limit}; select fewer fields or shorter lists`,
    'COST_LIMIT',
  ),
  limit: true,
});
