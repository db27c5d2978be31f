import type { ExecutionArgs } from 'graphql';
import { V17 } from './graphql-version.ts';
import type { EngineSettings, ExecutionInputs, ValidatedOperation } from './types.ts';

/** The arguments of graphql-js for one operation and one request. graphql 16 has no abort signals. */
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

/** The same with the settings that decide how fields are resolved and how many errors are collected. */
export function executionArgsWith(
  settings: EngineSettings,
  operation: ValidatedOperation,
  inputs: ExecutionInputs,
): ExecutionArgs {
  // A literal without a spread: V8 makes a slow dictionary of a spread object that gets more properties.
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
