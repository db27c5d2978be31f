import { types } from 'node:util';
import { UnusedValues } from '../../execution/guard/unused-values.ts';
import type { Execution } from './execution.ts';

/**
 * Handles the rejections of promises in a value that the execution does not use any more (see
 * `UnusedValues`).
 */
export function ignoreRejections(ex: Execution, value: unknown): void {
  // Returned errors are frequent and contain no values of the response.
  if (typeof value !== 'object' || value === null || types.isNativeError(value)) return;
  ex.unusedValues ??= new UnusedValues();
  ex.unusedValues.ignoreRejections(value);
}

/**
 * Like `ignoreRejections`, for the root value. Only its properties are searched, because it may be very
 * large.
 */
export function ignoreRootRejections(ex: Execution): void {
  ex.unusedValues ??= new UnusedValues();
  ex.unusedValues.ignoreRootRejections(ex.inputs.rootValue);
}
