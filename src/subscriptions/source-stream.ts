import type { ExecutionArgs, ExecutionResult } from 'graphql';
import * as graphql from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import { executionArgs } from '../execution/execution-args.ts';
import type { ExecutionInputs, PreparedOperation } from '../execution/types.ts';

/** The source stream that a subscription's root field returned, or the errors that it returned instead. */
export type SourceResult = AsyncIterable<unknown> | ExecutionResult;

/** graphql 17 checks the arguments in a separate step. */
type ValidateSubscriptionArgs = (args: ExecutionArgs) => readonly graphql.GraphQLError[] | ExecutionArgs;
const validateSubscriptionArgs = (graphql as { validateSubscriptionArgs?: ValidateSubscriptionArgs })
  .validateSubscriptionArgs;

/** Opens the source stream. `operation.execute` runs for each event, with the event as root value. */
export function openSource(
  operation: PreparedOperation,
  inputs: ExecutionInputs,
): MaybePromise<SourceResult> {
  const args = executionArgs(operation, inputs);
  if (validateSubscriptionArgs === undefined) return graphql.createSourceEventStream(args);
  const checked = validateSubscriptionArgs(args);
  return Array.isArray(checked)
    ? { errors: checked }
    : graphql.createSourceEventStream(checked as ExecutionArgs);
}

export const isStream = (result: SourceResult): result is AsyncIterable<unknown> =>
  Symbol.asyncIterator in result;
