import type { ExecutionArgs, ExecutionResult } from 'graphql';
import * as graphql from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import { executionArgs, setErrorCode } from '../execution/graphql-js.ts';
import { optionalExport } from '../execution/graphql-version.ts';
import { isTraced, requestContext, subscribeChannel, trace } from '../execution/tracing.ts';
import { type ExecutionInputs, isThenable, type PreparedOperation } from '../execution/types.ts';

/** The source stream that a subscription's root field returned, or the errors that it returned instead. */
export type SourceResult = AsyncIterable<unknown> | ExecutionResult;

/** graphql 17 checks the arguments in a separate step. */
type ValidateSubscriptionArgs = (args: ExecutionArgs) => readonly graphql.GraphQLError[] | ExecutionArgs;
const validateSubscriptionArgs = optionalExport('validateSubscriptionArgs') as
  | ValidateSubscriptionArgs
  | undefined;

/** Opens the source stream. `operation.execute` runs for each event, with the event as root value. */
type OpenSource = (operation: PreparedOperation, inputs: ExecutionInputs) => MaybePromise<SourceResult>;

/** Opens the source stream of a subscription. */
export const openSource: OpenSource = (operation, inputs) =>
  isTraced(subscribeChannel)
    ? trace(subscribeChannel, requestContext(operation, inputs), () => open(operation, inputs))
    : open(operation, inputs);

const open: OpenSource = (operation, inputs) => {
  const { maxErrors } = operation;
  const args = { ...executionArgs(operation, inputs), options: { maxCoercionErrors: maxErrors } };
  if (validateSubscriptionArgs === undefined) {
    const opened = graphql.createSourceEventStream(args);
    return isThenable(opened)
      ? opened.then((result) => withCodes(result, operation))
      : withCodes(opened, operation);
  }
  const checked = validateSubscriptionArgs(args);
  return Array.isArray(checked)
    ? withCodes({ errors: checked }, operation)
    : graphql.createSourceEventStream(checked as ExecutionArgs);
};

/** Adds the code to errors of variables, and of a schema without subscriptions. Errors of resolvers have a path. */
function withCodes(result: SourceResult, { maxErrors, schema }: PreparedOperation): SourceResult {
  if (isStream(result) || result.errors === undefined) return result;
  const errors = result.errors.slice(0, maxErrors);
  // graphql 17 refuses the operation in its validation.
  const isSupported = schema.getSubscriptionType() != null;
  const code = isSupported ? 'BAD_USER_INPUT' : 'GRAPHQL_VALIDATION_FAILED';
  for (const error of errors) if (error.path === undefined) setErrorCode(error, code);
  return { errors };
}

export const isStream = (result: SourceResult): result is AsyncIterable<unknown> =>
  Symbol.asyncIterator in result;
