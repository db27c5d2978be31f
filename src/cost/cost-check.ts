import { GraphQLError, GraphQLSchema } from 'graphql';
import { events } from '../diagnostics/events.ts';
import { isGraphQLError } from '../execution/graphql-error.ts';
import type {
  ExecutionInputs,
  MemoryAccount,
  PreparedOperation,
  Price,
  RequestError,
  ValidatedOperation,
} from '../execution/types.ts';
import type { Headers } from '../http/reply.ts';
import { count, flag, positive, type Rules, resolveOptions } from '../options/rules.ts';
import { COST_OPTIONS } from '../options/scopes.ts';
import { assertCostAnnotations } from './annotations.ts';
import { compileCost, evaluate, type VariableValues } from './operation-cost.ts';

/** The option `cost` after checks, with defaults filled in. */
interface CostSettings {
  readonly maxCost: number;
  readonly reportOnly: boolean;
  readonly header: boolean;
  readonly listSize: number;
  readonly mutation: number;
}

const rules: Rules<CostSettings> = {
  maxCost: positive(1000),
  reportOnly: flag(false),
  header: flag(false),
  listSize: count(10),
  mutation: count(10),
};

/**
 * Checks the option `cost` and the directives of a schema. Undefined if the option is off.
 *
 * @throws TypeError (code `ERR_OPTION`).
 */
export function resolveCost(given: unknown, schema: unknown): CostSettings | undefined {
  if (given === undefined || given === false) return undefined;
  const settings = resolveOptions(COST_OPTIONS, given === true ? {} : given, rules);
  if (schema instanceof GraphQLSchema) assertCostAnnotations(schema);
  return settings;
}

/** The memory of the closures that compute the cost of one field. */
const BYTES_PER_FIELD = 500;

export function createPrice(
  operation: ValidatedOperation,
  settings: CostSettings,
  account: MemoryAccount,
): Price {
  account.charge((operation.cost?.fields ?? 0) * BYTES_PER_FIELD);
  const formula = compileCost(operation, { ...settings, requiresSlicing: !settings.reportOnly });
  return (variables) => {
    const cost = evaluate(formula, variables);
    // Infinite sizes, such as 1e999 in JSON, may add up to NaN, which is not above any limit.
    return Number.isNaN(cost)
      ? Number.MAX_SAFE_INTEGER
      : Math.min(Math.max(0, cost), Number.MAX_SAFE_INTEGER);
  };
}

/** Computes the cost of an operation, and refuses it if the cost is too high. */
export type CostCheck = (
  prepared: PreparedOperation,
  inputs: ExecutionInputs,
  source: unknown,
) => RequestError | PricedOperation;

/** An operation whose cost is within the limit. */
export interface PricedOperation {
  readonly kind: 'priced';
  readonly cost: number;
  /** The headers of an HTTP response. */
  readonly headers: Headers | undefined;
}

/** The name of the header with the cost of an operation. */
export const COST_HEADER = 'graphql-cost';

const NO_VARIABLES: VariableValues = {};

export function createCostCheck({ maxCost, reportOnly, header }: CostSettings): CostCheck {
  return (prepared, { variableValues = NO_VARIABLES }, source) => {
    let cost: number;
    try {
      cost = prepared.price?.(variableValues) ?? 0;
    } catch (error) {
      if (isGraphQLError(error)) return { kind: 'error', errors: [error], status: 400 };
      throw error;
    }
    const refused = cost > maxCost && !reportOnly;
    if (events.cost.hasSubscribers) {
      events.cost.publish({ source, operation: prepared.operation, cost, maxCost, refused });
    }
    const headers = header ? { [COST_HEADER]: `${cost};max=${maxCost}` } : undefined;
    return refused
      ? costExceeded(cost, maxCost, 'The operation', headers)
      : { kind: 'priced', cost, headers };
  };
}

/** Creates the error of an operation or batch above the option `maxCost`. */
export function costExceeded(
  cost: number,
  maxCost: number,
  subject: string,
  headers?: Headers,
): RequestError {
  const message = `${subject} costs ${cost}; the maximum is ${maxCost}. Select fewer fields or shorter lists`;
  const extensions = { code: 'COST_LIMIT', cost, maxCost, ...(headers && { http: { headers } }) };
  return { kind: 'error', errors: [new GraphQLError(message, { extensions })], status: 400, limit: true };
}
