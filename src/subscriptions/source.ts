import type { ExecutionArgs, ExecutionResult } from 'graphql';
import * as graphql from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import { executionArgs } from '../execution/execution-args.ts';
import type { ExecutionInputs, PreparedOperation } from '../execution/types.ts';

/** The stream of events a subscription's field gave, or the errors it gave instead. */
export type Opened = AsyncIterable<unknown> | ExecutionResult;

/** graphql 17 checks the arguments in a step of their own. */
type ValidateSubscriptionArgs = (args: ExecutionArgs) => readonly graphql.GraphQLError[] | ExecutionArgs;
const validateSubscriptionArgs = (graphql as { validateSubscriptionArgs?: ValidateSubscriptionArgs })
  .validateSubscriptionArgs;

/** Creates the source stream; `operation.execute` runs for each event, with the event as root value. */
export function openSource(operation: PreparedOperation, inputs: ExecutionInputs): MaybePromise<Opened> {
  const args = executionArgs(operation, inputs);
  if (validateSubscriptionArgs === undefined) return graphql.createSourceEventStream(args);
  const checked = validateSubscriptionArgs(args);
  return Array.isArray(checked)
    ? { errors: checked }
    : graphql.createSourceEventStream(checked as ExecutionArgs);
}

/** What went wrong, as an error that can be masked and formatted. */
export function asGraphQLError(error: unknown): graphql.GraphQLError {
  if (error instanceof graphql.GraphQLError) return error;
  const originalError = error instanceof Error ? error : new Error(String(error));
  return new graphql.GraphQLError(originalError.message, { originalError });
}

export const isStream = (opened: Opened): opened is AsyncIterable<unknown> => Symbol.asyncIterator in opened;

/**
 * The close code that a source asks for by the error it ends with, where an `error` for the operation would not do: clients
 * connect again after 1012, 1013 and most of the application's own codes, but never repeat an operation that failed.
 */
export function closeCodeOf(errors: readonly graphql.GraphQLError[]): number | undefined {
  const original = errors[0]?.originalError as { closeCode?: unknown } | undefined;
  const code = original?.closeCode;
  const allowed =
    typeof code === 'number' && (code === 1012 || code === 1013 || (code >= 4000 && code < 5000));
  return allowed ? code : undefined;
}
