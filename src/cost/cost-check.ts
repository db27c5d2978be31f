import { GraphQLError } from 'graphql';
import type { Extension } from '../core/extension.ts';
import { events } from '../diagnostics/events.ts';
import { isGraphQLError } from '../execution/graphql-error.ts';
import type {
  MemoryAccount,
  OperationCall,
  PreparedOperation,
  RequestError,
  ValidatedOperation,
} from '../execution/types.ts';
import type { Headers } from '../http/reply.ts';
import { flag, positive, type Rules, resolveSwitch } from '../options/rules.ts';
import { COST_OPTIONS } from '../options/scopes.ts';
import { assertCostAnnotations } from './annotations.ts';
import { createBudget, resolveBudget } from './budget.ts';
import { compileCost, evaluate, type VariableValues } from './operation-cost.ts';

/** The option `cost` after checks, with defaults filled in. */
interface CostSettings {
  readonly maxCost: number;
  readonly reportOnly: boolean;
}

const rules: Rules<CostSettings> = {
  maxCost: positive(1000),
  reportOnly: flag(false),
};

/**
 * Creates the extension of the options `cost` and `budget`.
 *
 * @throws TypeError (code `ERR_OPTION`).
 */
export function createCost(given: { readonly cost?: unknown; readonly budget?: unknown }): Extension {
  const budget = given.budget === undefined ? undefined : resolveBudget(given.budget);
  // A budget of costs needs the cost of operations also without a limit for each.
  const cost = given.cost ?? (budget?.unit === 'cost' ? { reportOnly: true } : undefined);
  const settings = resolveSwitch(COST_OPTIONS, cost, rules);
  const check = settings && new CostCheck(settings, given.cost !== undefined);
  const take = budget && createBudget(budget);
  return {
    readsSource: true,
    ...(settings && { check: assertCostAnnotations }),
    prepare(prepared, { account }) {
      const price = settings && createPrice(prepared, settings, account);
      return {
        admit(call) {
          const priced = price === undefined ? UNPRICED : check?.admit(call, prepared, price);
          if (priced?.kind === 'error') return priced;
          return take?.(call, priced?.cost ?? UNPRICED.cost);
        },
      };
    },
  };
}

/** Returns the cost of an operation for the values of its variables, or throws a GraphQLError. */
type Price = (variables: VariableValues) => number;

/** The items of a list without `@listSize`, and the cost of a mutation in addition to its fields. */
const WEIGHTS = { listSize: 10, mutation: 10 };

/** The memory of the closures that compute the cost of one field. */
const BYTES_PER_FIELD = 500;

function createPrice(operation: ValidatedOperation, settings: CostSettings, account: MemoryAccount): Price {
  account.charge((operation.size?.fields ?? 0) * BYTES_PER_FIELD);
  const formula = compileCost(operation, { ...WEIGHTS, requiresSlicing: !settings.reportOnly });
  return (variables) => {
    const cost = evaluate(formula, variables);
    // Infinite sizes, such as 1e999 in JSON, may add up to NaN, which is not above any limit.
    return Number.isNaN(cost)
      ? Number.MAX_SAFE_INTEGER
      : Math.min(Math.max(0, cost), Number.MAX_SAFE_INTEGER);
  };
}

/** An operation whose cost is within the limit. */
interface PricedOperation {
  readonly kind: 'priced';
  readonly cost: number;
}

const UNPRICED: PricedOperation = { kind: 'priced', cost: 1 };

/** The name of the header with the cost of an operation. */
const COST_HEADER = 'graphql-cost';

const NO_VARIABLES: VariableValues = {};

/** Computes the costs of operations, and refuses those that are too high. A batch has the limit of a single operation. */
class CostCheck {
  readonly #settings: CostSettings;
  /** Whether responses have the header: not if the cost is only that of a budget. */
  readonly #hasHeader: boolean;
  /** The costs of batches so far. */
  readonly #batches = new WeakMap<object, number>();

  constructor(settings: CostSettings, hasHeader: boolean) {
    this.#settings = settings;
    this.#hasHeader = hasHeader;
  }

  admit(call: OperationCall, { operation }: PreparedOperation, price: Price): RequestError | PricedOperation {
    const { maxCost, reportOnly } = this.#settings;
    const { batch, source, variableValues = NO_VARIABLES } = call;
    let cost: number;
    try {
      cost = price(variableValues);
    } catch (error) {
      if (isGraphQLError(error)) return { kind: 'error', errors: [error], status: 400 };
      throw error;
    }
    const refused = cost > maxCost && !reportOnly;
    if (events.cost.hasSubscribers) events.cost.publish({ source, operation, cost, maxCost, refused });
    const headers = this.#hasHeader ? { [COST_HEADER]: `${cost};max=${maxCost}` } : undefined;
    if (refused) return costExceeded(cost, maxCost, 'The operation', headers);
    const sum = batch === undefined ? cost : cost + (this.#batches.get(batch) ?? 0);
    if (batch !== undefined) this.#batches.set(batch, sum);
    if (this.#hasHeader) call.setHeader?.(COST_HEADER, `${sum};max=${maxCost}`);
    if (sum > maxCost && !reportOnly) return costExceeded(sum, maxCost, 'The batch');
    return { kind: 'priced', cost };
  }
}

/** Creates the error of an operation or batch above the option `maxCost`. */
function costExceeded(cost: number, maxCost: number, subject: string, headers?: Headers): RequestError {
  const message = `${subject} costs ${cost}; the maximum is ${maxCost}. Select fewer fields or shorter lists`;
  const extensions = { code: 'COST_LIMIT', cost, maxCost, ...(headers && { http: { headers } }) };
  return { kind: 'error', errors: [new GraphQLError(message, { extensions })], status: 400, limit: true };
}
