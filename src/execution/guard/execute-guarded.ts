import { defaultFieldResolver, type ExecutionArgs, type ExecutionResult } from 'graphql';
import type { MaybePromise } from '../../../types/connect.ts';
import type { ExecuteFunction } from '../../../types/graphql.ts';
import type { FieldTracker } from '../caching.ts';
import { isThenable } from '../types.ts';
import { ExecutionGuard } from './guarded-execution.ts';
import { expectTrackers, guardedTypeResolver } from './guarded-resolvers.ts';
import { guardedSchema } from './guarded-schema.ts';

/** Creates the guard of an execution, and changes its arguments. `tracker` gets the fields. */
export function createGuard(args: ExecutionArgs, tracker?: FieldTracker): ExecutionGuard {
  const guard = new ExecutionGuard(args);
  guard.tracker = tracker;
  if (tracker !== undefined) expectTrackers();
  args.schema = guardedSchema(args.schema, args.fieldResolver ?? defaultFieldResolver);
  args.typeResolver = guardedTypeResolver(args.typeResolver);
  return guard;
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
  if (isThenable(result)) result.then(end, () => guard.end(undefined));
  else end(result);
  return result;
}
