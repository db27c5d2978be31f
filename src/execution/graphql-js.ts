import { type ExecutionArgs, type ExecutionResult, type GraphQLError, versionInfo } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import type { ExecuteFunction } from '../../types/graphql.ts';
import { executeInOnePiece } from './non-incremental.ts';
import type {
  Engine,
  EngineSettings,
  ExecutionInputs,
  ExecutionOutcome,
  PreparedOperation,
} from './types.ts';

/** An engine out of a function like graphql-js's `execute`: call it, then stringify once. */
export function executing(run: ExecuteFunction): Engine {
  return (operation, settings) => (inputs) => {
    const result = run(executionArgs(operation, settings, inputs));
    return isThenable(result)
      ? result.then((settled) => toOutcome(settled, settings))
      : toOutcome(result, settings);
  };
}

/** The reference engine: graphql-js's own `execute`. */
export const graphqlJs: Engine = executing(executeInOnePiece);

/** graphql 17 stops when it is told to; asking for the signal earlier would only make one for nothing. */
const TAKES_SIGNAL = versionInfo.major >= 17;

/** The arguments graphql-js takes, for one operation and one request. */
function executionArgs(
  operation: Omit<PreparedOperation, 'run'>,
  settings: EngineSettings,
  inputs: ExecutionInputs,
): ExecutionArgs {
  const args = {
    schema: operation.schema,
    document: operation.document,
    operationName: operation.operation.name?.value,
    rootValue: inputs.rootValue,
    contextValue: inputs.contextValue,
    variableValues: inputs.variableValues,
    fieldResolver: settings.fieldResolver,
    typeResolver: settings.typeResolver,
    options: { maxCoercionErrors: settings.maxErrors },
    hideSuggestions: settings.hideSuggestions,
    abortSignal: TAKES_SIGNAL ? inputs.signal : undefined,
  };
  return args as ExecutionArgs;
}

const NONE: readonly GraphQLError[] = [];

/** A result of graphql-js as an outcome; `errors` come first, as the specification advises. */
export function toOutcome(result: ExecutionResult, settings: EngineSettings): ExecutionOutcome {
  if (result.errors === undefined || result.errors.length === 0) {
    // An iterator of results, say: its JSON would pass for an answer.
    if (result.data === undefined) throw new TypeError('The engine returned neither data nor errors');
    return { kind: 'data', body: JSON.stringify(result), errors: NONE };
  }
  const refused = !('data' in result);
  // graphql-js says once more, with an error of its own, that coercion has stopped.
  const errors = refused ? result.errors.slice(0, settings.maxErrors) : result.errors;
  const { errors: _, data, ...others } = result;
  const body = JSON.stringify({ errors: settings.formatErrors(errors), data, ...others });
  return { kind: refused ? 'refused' : 'partial', body, errors };
}

/** True for a promise, native or not. */
export function isThenable<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}
