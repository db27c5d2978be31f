import { defaultFieldResolver, type ExecutionArgs, type ExecutionResult } from 'graphql';
import type { MaybePromise } from '../../../types/connect.ts';
import type { ExecuteFunction } from '../../../types/graphql.ts';
import type { FieldTracker } from '../caching.ts';
import { isThenable } from '../types.ts';
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
  const guard = createGuard(args, tracker);
  const end = (result: ExecutionResult): void => {
    // Functions of the application may return several results.
    if (result.data !== undefined || result.errors !== undefined) guard.end(result);
  };
  const result = guard.run(() => execute(args)) as MaybePromise<ExecutionResult>;
  const fail = (): void => guard.end(undefined);
  // The caller gets a value that is no result too, and reports it.
  if (isThenable(result)) result.then(end, fail).catch(fail);
  else end(result);
  return result;
}

function end(guard: ExecutionGuard, result: ExecutionResult): void {
  // Functions of the application may return several results.
  if (result.data !== undefined || result.errors !== undefined) guard.end(result);
}
