import type { ExecutionArgs, ExecutionResult, GraphQLError } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import type { ExecuteFunction } from '../../types/graphql.ts';
import type { Caching, FieldTracker } from './caching.ts';
import type { Engine, EngineSettings } from './engine.ts';
import { executionArgsWith } from './execution-args.ts';
import { executeGuarded, executeWithGuardedArgs, guardedArgs } from './guard/execute-guarded.ts';
import { runTracked } from './guard/guarded-resolvers.ts';
import { executeNonIncremental } from './non-incremental.ts';
import { outcomeFromStream } from './result-stream.ts';
import {
  type ExecutionInputs,
  type ExecutionOutcome,
  isThenable,
  type ValidatedOperation,
  withNativePromise,
} from './types.ts';

/** Creates an engine that calls a function like graphql-js's `execute` and stringifies the result. */
export function engineFromExecute(execute: ExecuteFunction): Engine {
  const run: ExecuteFunction = (args) => withNativePromise(execute(args));
  return (operation, settings) => {
    const { caching } = settings;
    return executeOperation(operation, settings, (args, inputs) => {
      if (caching === undefined) return run(args);
      const tracker = createTracker(caching, inputs);
      return runTracked(tracker, () => executeGuarded(run, args, tracker));
    });
  };
}

/**
 * The reference engine: graphql-js's own `execute`. Clients choose operations and disconnect, so the rejections
 * that graphql-js leaves unhandled must not end the process.
 */
export const graphqlJs: Engine = (operation, settings) => {
  const { caching, fieldResolver } = settings;
  const { schema, typeResolver } = guardedArgs(
    { schema: operation.schema, typeResolver: settings.typeResolver as ExecutionArgs['typeResolver'] },
    fieldResolver as ExecutionArgs['fieldResolver'],
  );
  const run: Run = (args, inputs) =>
    executeWithGuardedArgs(executeNonIncremental, args, caching && createTracker(caching, inputs));
  return executeOperation({ ...operation, schema }, { ...settings, typeResolver }, run);
};

type Run = (args: ExecutionArgs, inputs: ExecutionInputs) => ReturnType<ExecuteFunction>;

function executeOperation(
  operation: ValidatedOperation,
  settings: EngineSettings,
  run: Run,
): ReturnType<Engine> {
  return (inputs) => {
    const result = run(executionArgsWith(settings, operation, inputs), inputs);
    return isThenable(result)
      ? result.then((settled) => outcomeFromReturned(settled as ExecutionResult, settings, inputs))
      : outcomeFromReturned(result as ExecutionResult, settings, inputs);
  };
}

function outcomeFromReturned(
  result: ExecutionResult,
  settings: EngineSettings,
  inputs: ExecutionInputs,
): MaybePromise<ExecutionOutcome> {
  const isSingle = result.data !== undefined || result.errors !== undefined;
  const streamed = isSingle ? undefined : outcomeFromStream(result, settings, inputs);
  return streamed ?? outcomeFromResult(result, settings, inputs);
}

/** Creates the tracker that counts fields and sets `info.cacheControl`. */
export function createTracker(
  caching: Caching,
  { caching: execution }: Pick<ExecutionInputs, 'caching'>,
): FieldTracker {
  execution?.expectFields();
  return (info, source) => {
    const definition = info.parentType.getFields()[info.fieldName];
    if (definition === undefined) return;
    const isRoot = info.path.prev === undefined;
    if (execution !== undefined && caching.isCounted(definition, isRoot)) execution.count(definition, isRoot);
    const tags = execution === undefined ? undefined : caching.objectTagsOf(info.parentType, definition);
    if (tags !== undefined) execution?.addObjectTags(tags, source);
    Object.assign(info, { cacheControl: caching.controlFor(execution, definition, isRoot) });
  };
}

const NO_ERRORS: readonly GraphQLError[] = [];

/**
 * Converts a result of graphql-js into an outcome. `errors` come first, as the specification advises (§7.1).
 */
export function outcomeFromResult(
  result: ExecutionResult,
  settings: EngineSettings,
  inputs: ExecutionInputs,
): ExecutionOutcome {
  if (result.errors === undefined || result.errors.length === 0) {
    if (result.data === undefined) {
      // It would be stringified as `{}`, which clients would accept as a response.
      throw new TypeError('The engine returned neither data nor errors');
    }
    const { extensions } = result;
    return { kind: 'data', body: JSON.stringify(result), errors: NO_ERRORS, extensions };
  }
  const refused = !('data' in result);
  // graphql-js adds one more error to report that coercion has stopped.
  const errors = refused ? result.errors.slice(0, settings.maxErrors) : result.errors;
  if (refused) for (const error of errors) setErrorCode(error, 'BAD_USER_INPUT');
  const { errors: _, data, ...others } = result;
  const body = JSON.stringify({ errors: settings.formatErrors(errors, inputs.origin), data, ...others });
  return { kind: refused ? 'refused' : 'partial', body, errors, extensions: result.extensions };
}

/** Sets `extensions.code` of an error, unless it has one. */
export function setErrorCode(error: GraphQLError, code: string): void {
  // `Reflect.set` does not throw: the extensions of an error that the application threw may be frozen.
  if (error.extensions['code'] === undefined) Reflect.set(error.extensions, 'code', code);
}
