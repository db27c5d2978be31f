import { type ExecutionArgs, type ExecutionResult, execute } from 'graphql';
import type { Engine, EngineSettings, ExecutionInputs, Outcome, PreparedOperation } from './contract.ts';

/** The reference engine: graphql-js's own `execute`, then one stringify. */
export const graphqlJs: Engine = (operation, settings) => (inputs) => {
  const result = execute(executionArgs(operation, settings, inputs));
  return result instanceof Promise
    ? result.then((settled) => toOutcome(settled, settings))
    : toOutcome(result as ExecutionResult, settings);
};

/** The arguments graphql-js takes, for one operation and one request. */
export function executionArgs(
  operation: Omit<PreparedOperation, 'run'>,
  settings: EngineSettings,
  inputs: ExecutionInputs,
): ExecutionArgs {
  return {
    schema: operation.schema,
    document: operation.document,
    operationName: operation.operation.name?.value,
    rootValue: inputs.rootValue,
    contextValue: inputs.contextValue,
    variableValues: inputs.variableValues,
    fieldResolver: settings.fieldResolver,
    typeResolver: settings.typeResolver,
  } as ExecutionArgs;
}

/** A result of graphql-js as an outcome; `errors` come first, as the specification advises. */
export function toOutcome(result: ExecutionResult, settings: EngineSettings): Outcome {
  const errors = result.errors ?? [];
  if (errors.length === 0) return { kind: 'data', body: JSON.stringify(result), errors };
  const body = JSON.stringify({ ...result, errors: settings.formatErrors(errors) });
  return { kind: 'data' in result ? 'partial' : 'refused', body, errors };
}
