import { type GraphQLSchema, getOperationAST, type OperationDefinitionNode, parse } from 'graphql';
import { compiled } from '../../src/engine/index.ts';
import { engineFromExecute, executeNonIncremental, graphqlJs } from '../../src/execution/graphql-js.ts';
import type { Engine, EngineSettings, ExecutionInputs, ExecutionOutcome } from '../../src/execution/types.ts';
import { isThenable } from '../../src/execution/types.ts';
export const engines = { compiled, graphqlJs };
/** graphql-js without the guard, which must not change its responses. */
export const unguardedGraphqlJs: Engine = engineFromExecute((args) => {
  const result = executeNonIncremental(args);
  if (isThenable(result)) result.then(checkJson, () => undefined);
  else checkJson(result);
  return result;
});

/** The results of `unguardedGraphqlJs` that cannot be written as JSON: the compiled engine fails only their fields. */
export const unwritable = { count: 0 };

function checkJson(result: unknown): void {
  try {
    JSON.stringify(result);
  } catch {
    unwritable.count += 1;
  }
}

export function settingsOf(more: Partial<EngineSettings> = {}): EngineSettings {
  return {
    fieldResolver: undefined,
    typeResolver: undefined,
    maxErrors: 10,
    hideSuggestions: false,
    formatErrors: (errors) => errors.map((error) => error.toJSON()),
    ...more,
  };
}

/** Prepares an operation for one engine, as the document cache does. */
export function prepare(
  engine: Engine,
  schema: GraphQLSchema,
  source: string,
  settings: EngineSettings = settingsOf(),
  operationName?: string,
): (inputs?: Partial<ExecutionInputs>) => ReturnType<ReturnType<Engine>> {
  const document = parse(source);
  const operation = getOperationAST(document, operationName) as OperationDefinitionNode;
  const run = engine({ kind: 'operation', schema, source, document, operation }, settings);
  return (inputs = {}) =>
    run({ rootValue: undefined, contextValue: undefined, variableValues: undefined, ...inputs });
}

/** The observable parts of an outcome: the text, and the errors before masking. */
export function seen(outcome: ExecutionOutcome): string {
  const errors = outcome.errors.map((error) => [
    error.name,
    error.message,
    error.path,
    error.locations,
    error.extensions,
    error.nodes?.map((node) => node.loc?.start),
    error.positions,
    error.source?.body.length,
    String(error.originalError),
    Object.keys(error),
    String(error),
    Object.prototype.toString.call(error),
    Object.getOwnPropertyNames(error).sort(),
    (error as { cause?: unknown }).cause === error.originalError,
    error.originalError instanceof Error && error.stack === error.originalError.stack,
  ]);
  return `${outcome.kind} ${outcome.body.toString()}\n${JSON.stringify(errors)}`;
}

/** An outcome as text, or the error that was thrown. */
export async function outcomeOf(run: () => ExecutionOutcome | Promise<ExecutionOutcome>): Promise<string> {
  try {
    return seen(await run());
  } catch (error) {
    return `threw ${String(error)}`;
  }
}
