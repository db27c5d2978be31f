import { defaultFieldResolver, type ExecutionArgs, type ExecutionResult } from 'graphql';
import type { MaybePromise } from '../../../types/connect.ts';
import type { ExecuteFunction } from '../../../types/graphql.ts';
import { type FieldTracker, isThenable } from '../types.ts';
import { ExecutionGuard } from './guarded-execution.ts';
import { expectTrackers, guardedTypeResolver } from './guarded-resolvers.ts';
import { guardedSchema } from './guarded-schema.ts';

type SchemaArgs = Pick<ExecutionArgs, 'schema' | 'typeResolver'>;

/** The schema and type resolver with which graphql-js calls the functions of the application within a guard. */
export const guardedArgs = (
  { schema, typeResolver }: SchemaArgs,
  fieldResolver: ExecutionArgs['fieldResolver'],
): Required<SchemaArgs> => ({
  schema: guardedSchema(schema, fieldResolver ?? defaultFieldResolver),
  typeResolver: guardedTypeResolver(typeResolver),
});

/** Creates the guard of an execution, and changes its arguments. `tracker` gets the fields. */
export function createGuard(args: ExecutionArgs, tracker?: FieldTracker): ExecutionGuard {
  Object.assign(args, guardedArgs(args, args.fieldResolver));
  if (tracker !== undefined) expectTrackers();
  return new ExecutionGuard(args, tracker);
}

/**
 * Calls `execute` so that no promise in the values of resolvers causes an unhandled rejection. Changes
 * `args`. `tracker` gets the fields.
 */
export function executeGuarded(
  execute: ExecuteFunction,
  args: ExecutionArgs,
  tracker?: FieldTracker,
): MaybePromise<ExecutionResult> {
  return executeWith(createGuard(args, tracker), execute, args);
}

/** Like `executeGuarded`, for arguments that contain those of `guardedArgs`. */
export function executeWithGuardedArgs(
  execute: ExecuteFunction,
  args: ExecutionArgs,
  tracker: FieldTracker | undefined,
): MaybePromise<ExecutionResult> {
  if (tracker !== undefined) expectTrackers();
  return executeWith(new ExecutionGuard(args, tracker), execute, args);
}

function executeWith(
  guard: ExecutionGuard,
  execute: ExecuteFunction,
  args: ExecutionArgs,
): MaybePromise<ExecutionResult> {
  const result = guard.run(execute, args) as MaybePromise<ExecutionResult>;
  const fail = (): void => guard.end(undefined);
  if (!isThenable(result)) end(guard, result);
  // A value that is not a result makes `end` throw; the caller gets it too, and reports it.
  else result.then((settled) => end(guard, settled), fail).catch(fail);
  return result;
}

function end(guard: ExecutionGuard, result: ExecutionResult): void {
  // Functions of the application may return several results.
  if (result.data !== undefined || result.errors !== undefined) guard.end(result);
}
