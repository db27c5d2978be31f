import type { ExecutionArgs } from 'graphql';
import type { EngineSettings } from './engine.ts';
import { V17 } from './graphql-version.ts';
import type { ExecutionInputs, ValidatedOperation } from './types.ts';

/** Creates graphql-js's arguments for one operation and one request. graphql 16 has no abort signals. */
export function executionArgs(operation: ValidatedOperation, inputs: ExecutionInputs): ExecutionArgs {
  const args: ExecutionArgs & { abortSignal: AbortSignal | undefined } = {
    schema: operation.schema,
    document: operation.document,
    operationName: operation.operation.name?.value,
    rootValue: inputs.rootValue,
    contextValue: inputs.contextValue,
    variableValues: inputs.variableValues,
    abortSignal: V17 ? inputs.signal : undefined,
  };
  return args;
}

/** Like `executionArgs`, with the settings for field resolution and the maximum number of errors. */
export function executionArgsWith(
  settings: EngineSettings,
  operation: ValidatedOperation,
  inputs: ExecutionInputs,
): ExecutionArgs {
  // A literal without a spread: V8 turns a spread object that gets more properties into a slow dictionary.
  const args = {
    schema: operation.schema,
    document: operation.document,
    operationName: operation.operation.name?.value,
    rootValue: inputs.rootValue,
    contextValue: inputs.contextValue,
    variableValues: inputs.variableValues,
    abortSignal: V17 ? inputs.signal : undefined,
    fieldResolver: settings.fieldResolver,
    typeResolver: settings.typeResolver,
    options: { maxCoercionErrors: settings.maxErrors },
    hideSuggestions: settings.hideSuggestions,
  };
  return args as ExecutionArgs;
}
