import { GraphQLError } from 'graphql';
import type { Caller } from '../../types/caller.ts';
import type { MaybePromise } from '../../types/connect.ts';
import { refusalError } from '../execution/graphql-error.ts';
import { type RequestError, withNativePromise } from '../execution/types.ts';
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
import { clientAddress } from '../rate-limit/address.ts';
import {
  type BucketPlace,
  boundedKey,
  bucketRules,
  createBucketPlace,
  secondsUntil,
  type Taken,
  type Unavailable,
} from '../rate-limit/buckets.ts';

/** The option `budget` after checks, with defaults filled in. */
interface BudgetSettings extends BucketPlace {
  readonly limit: number;
  readonly window: number;
  readonly unit: 'cost' | 'operations';
  readonly key: ((source: unknown, context: unknown) => MaybePromise<unknown>) | undefined;
}

const rules: Rules<BudgetSettings> = {
  // The option is required: its default is refused.
  limit: positive(0, 'tokens'),
  window: duration(60_000),
  unit: oneOf('cost', 'operations'),
  key: optionalFunction(),
  ...bucketRules('espalier:budget:'),
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
  const { unit, key: keyOf } = settings;
  const buckets = createBucketPlace(settings, WARNING)(settings);

  function take(key: unknown, cost: number): MaybePromise<RequestError | WithinBudget> {
    if (key === undefined) return UNLIMITED;
    if (!isString(key))
      throw wrongReturnValue(BUDGET_OPTIONS, 'key', key, 'a string, or undefined for no budget');
    const tokens = unit === 'cost' ? cost : 1;
    if (tokens > settings.limit) return tooExpensive(tokens, settings.limit);
    const taken = buckets.take(boundedKey(key), tokens);
    return settle(taken, (settled) => toResult(settled, tokens, settings));
  }

  return (source, context, cost, caller) => {
    // No address begins with a word.
    if (keyOf === undefined) return take(caller ? `caller ${caller.id}` : clientAddress(source), cost);
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

function toResult(
  taken: Taken | Unavailable,
  tokens: number,
  settings: BudgetSettings,
): RequestError | WithinBudget {
  if (taken === 'open') return UNLIMITED;
  if (taken === 'closed') return UNAVAILABLE;
  const headers = rateLimitHeaders(taken, settings);
  return taken.allowed ? { kind: 'within', headers } : usedUp(taken, tokens, settings, headers);
}

/** draft-ietf-httpapi-ratelimit-headers-10, §3 and §4. */
function rateLimitHeaders({ left }: Taken, { limit, window, unit }: BudgetSettings): Headers {
  const untilFull = Math.ceil(((limit - left) * window) / limit / 1000);
  return {
    'ratelimit-policy': `"${unit}";q=${limit};w=${Math.ceil(window / 1000)}`,
    ratelimit: `"${unit}";r=${Math.floor(left)};t=${untilFull}`,
  };
}

function usedUp(taken: Taken, tokens: number, settings: BudgetSettings, headers: Headers): RequestError {
  const { limit, window } = settings;
  const retryAfter = secondsUntil(tokens, taken, settings);
  const message = `The budget of ${limit} per ${window / 1000} s is used up; retry after ${retryAfter} s`;
  const http = { status: 429, headers: { ...headers, 'retry-after': String(retryAfter) } };
  const error = new GraphQLError(message, { extensions: { code: 'RATE_LIMITED', retryAfter, http } });
  return { kind: 'error', errors: [error], status: 429 };
}

const tooExpensive = (cost: number, limit: number): RequestError => ({
  kind: 'error',
  errors: [
    refusalError(
      `The cost ${cost} of the operation exceeds the whole budget of ${limit}; select fewer fields or shorter lists`,
      'COST_LIMIT',
    ),
  ],
  status: 400,
  limit: true,
});
