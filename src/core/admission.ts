import type { MaybePromise } from '../../types/connect.ts';
import { type EngineSettings, isThenable, type RequestError } from '../execution/types.ts';
import { type BudgetCheck, createBudgetCheck, resolveBudget } from './budget/budget.ts';
import { type CostCheck, createCostCheck, createPrice, resolveCost } from './cost/cost-check.ts';
import type { Admission, OperationHook } from './operation-hook.ts';
import type { CoreSettings } from './options.ts';

/** The checks of each operation between its validation and its execution. */
interface AdmissionChecks {
  /** Compiles the cost of an operation; undefined if no option needs it. */
  readonly price: EngineSettings['price'];
  /** The highest cost of one batch; undefined if costs are not limited. */
  readonly maxCost: number | undefined;
  /** Adds the checks of `cost` and `budget` to the hook of `onOperation`. */
  hookFor(hook: OperationHook | undefined): OperationHook | undefined;
}

/**
 * Creates the checks of the options `cost` and `budget`.
 *
 * @throws TypeError (code `ERR_OPTION`).
 */
export function createAdmission(
  options: Pick<CoreSettings, 'budget' | 'cost'>,
  schema: unknown,
): AdmissionChecks {
  const budget = options.budget === undefined ? undefined : resolveBudget(options.budget);
  // A budget of costs needs the cost of operations also without a limit for each.
  const implied = budget?.unit === 'cost' ? { reportOnly: true } : undefined;
  const cost = resolveCost(options.cost ?? implied, schema);
  const checkCost = cost && createCostCheck(cost);
  const checkBudget = budget && createBudgetCheck(budget);
  return {
    price: cost && ((operation, account) => createPrice(operation, cost, account)),
    maxCost: cost === undefined || cost.reportOnly ? undefined : cost.maxCost,
    hookFor: (hook) => combine(checkCost, checkBudget, hook),
  };
}

const ADMITTED: Admission = { extensions: undefined };

/**
 * Creates one hook that runs the checks in this order. Undefined if all are off, so that operations cost
 * nothing more.
 */
function combine(
  checkCost: CostCheck | undefined,
  budget: BudgetCheck | undefined,
  hook: OperationHook | undefined,
): OperationHook | undefined {
  if (checkCost === undefined && budget === undefined) return hook;
  return (prepared, inputs, source) => {
    const priced = checkCost?.(prepared, inputs, source) ?? { cost: 1, headers: undefined };
    if ('errors' in priced) return priced;
    const { cost, headers } = priced;
    const runHook = (budgetHeaders: Admission['headers']): MaybePromise<RequestError | Admission> => {
      const admission = hook?.(prepared, inputs, source) ?? ADMITTED;
      const add = (settled: RequestError | Admission): RequestError | Admission =>
        'errors' in settled ? settled : { ...settled, cost, headers: { ...headers, ...budgetHeaders } };
      return isThenable(admission) ? admission.then(add) : add(admission);
    };
    if (budget === undefined) return runHook(undefined);
    const result = budget(source, inputs.contextValue, cost);
    if (!isThenable(result)) return 'errors' in result ? result : runHook(result.headers);
    return result.then((settled) => ('errors' in settled ? settled : runHook(settled.headers)));
  };
}
