import { COST_HEADER, costExceeded } from '../core/cost/cost-check.ts';
import { limitExceeded } from '../core/limits/limit-exceeded.ts';
import type { DocumentLimitSettings } from '../core/options.ts';
import type { PreparedOperation, RequestError } from '../execution/types.ts';
import type { Headers } from '../http/reply.ts';
import type { Exchange } from './exchange.ts';

/** Adds the cost of an operation to the cost of its batch, which has the limits of a single operation. */
export function addCost(
  batchCost: NonNullable<Exchange['batchCost']>,
  { cost }: PreparedOperation,
  limits: DocumentLimitSettings,
): void {
  if (cost === undefined) return;
  for (const name of ['fields', 'rootFields'] as const) {
    batchCost[name] += cost[name];
    if (batchCost[name] > limits[name]) throw limitExceeded(name, limits[name], 'The batch');
  }
}

/** Adds the price of an operation to that of its batch, which has the limit of a single operation. */
export function addPrice(
  { batchCost }: Exchange,
  price: number,
  maxCost: number | undefined,
): RequestError | undefined {
  if (batchCost === undefined) return undefined;
  batchCost.price += price;
  return maxCost !== undefined && batchCost.price > maxCost
    ? costExceeded(batchCost.price, maxCost, 'The batch')
    : undefined;
}

/** Sets the headers of an operation that the options `cost` and `budget` admit. The cost is that of its batch so far. */
export function setAdmissionHeaders({ res, batchCost }: Exchange, headers: Headers | undefined): void {
  if (headers === undefined) return;
  for (const [name, value] of Object.entries(headers)) {
    const isPart = name === COST_HEADER && batchCost !== undefined;
    res.setHeader(name, isPart ? value.replace(/^[^;]+/, String(batchCost.price)) : value);
  }
}
