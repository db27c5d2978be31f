import { GraphQLError } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import { keyFrom } from '../core/caller.ts';
import { refuse } from '../execution/graphql-error.ts';
import { type OperationCall, type RequestError, withNativePromise } from '../execution/types.ts';
import { clientKey } from '../http/address.ts';
import type { Headers } from '../http/reply.ts';
import { oneOf, positive, type Rules, resolveOptions, wrongOption } from '../options/rules.ts';
import { BUDGET_OPTIONS } from '../options/scopes.ts';
import { settle } from '../options/values.ts';
import {
  type BucketSettings,
  bucketRules,
  createBuckets,
  secondsUntil,
  type Taken,
} from '../rate-limit/buckets.ts';
import { refuseOperation, tooMany } from '../rate-limit/refusal.ts';

/** The option `budget` after checks, with defaults filled in. */
interface BudgetSettings
  extends BucketSettings<(source: unknown, context: unknown) => MaybePromise<unknown>> {
  readonly limit: number;
  readonly unit: 'cost' | 'operations';
  readonly onUnavailable: 'local' | 'open' | 'closed';
}

const rules: Rules<BudgetSettings> = {
  // The option is required: its default is refused.
  limit: positive(0, 'tokens'),
  ...bucketRules,
  unit: oneOf('cost', 'operations'),
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

const WARNING = { owner: 'graphqlHTTP: budget', type: 'BudgetWarning', code: 'ESPALIER_BUDGET' };

/** Takes the tokens of an operation from the bucket of its key. Returns why it must not run. */
type Budget = (
  call: Pick<OperationCall, 'source' | 'contextValue' | 'caller' | 'setHeader'>,
  cost: number,
) => MaybePromise<RequestError | undefined>;

export function createBudget(settings: BudgetSettings): Budget {
  const { limit, window, unit, key: keyOf, redis, onUnavailable } = settings;
  const buckets = createBuckets<'open' | 'closed'>({
    redis,
    prefix: 'espalier:budget:',
    warning: WARNING,
    away: (local) => (onUnavailable === 'local' ? local() : onUnavailable),
  })(settings);

  return (call, cost) => {
    const { source, contextValue, caller } = call;
    const returned =
      keyOf === undefined ? clientKey(source, caller) : withNativePromise(keyOf(source, contextValue));
    return settle(returned, (given) => {
      const key = keyFrom(BUDGET_OPTIONS, 'key', given, 'undefined');
      if (key === undefined) return undefined;
      const tokens = unit === 'cost' ? cost : 1;
      if (tokens > limit) return tooExpensive(tokens, limit);
      return settle(buckets.take(key, tokens), (taken) => {
        if (taken === 'open') return undefined;
        if (taken === 'closed') return UNAVAILABLE;
        const headers = rateLimitHeaders(taken, settings);
        if (!taken.allowed) {
          const reason = `The budget of ${limit} per ${window / 1000} s is used up`;
          return refuseOperation(tooMany(reason, secondsUntil(tokens, taken, settings), headers));
        }
        for (const [name, value] of Object.entries(headers)) call.setHeader?.(name, value);
        return undefined;
      });
    });
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
