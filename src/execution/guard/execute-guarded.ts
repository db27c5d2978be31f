import { defaultFieldResolver, type ExecutionArgs, type ExecutionResult } from 'graphql';
import type { MaybePromise } from '../../../types/connect.ts';
import type { ExecuteFunction } from '../../../types/graphql.ts';
import type { FieldTracker } from '../caching.ts';
import { isThenable } from '../types.ts';
import { ExecutionGuard } from './guarded-execution.ts';
import { guardedTypeResolver } from './guarded-resolvers.ts';
import { guardedSchema } from './guarded-schema.ts';

/**
 * Calls `execute` so that no promise in the values of resolvers causes an unhandled rejection. Changes
 * `args`. `tracker` gets the fields.
 */
export function executeGuarded(
  execute: ExecuteFunction,
  args: ExecutionArgs,
  tracker?: FieldTracker,
): MaybePromise<ExecutionResult> {
  const guard = new ExecutionGuard(args.rootValue);
  guard.tracker = tracker;
  args.schema = guardedSchema(args.schema, args.fieldResolver ?? defaultFieldResolver);
  args.typeResolver = guardedTypeResolver(args.typeResolver);
  const failIfPartial = ({ errors }: ExecutionResult): void => {
    if (errors !== undefined) guard.fail();
  };
  // Only functions of the application return several results.
  const result = guard.run(() => execute(args)) as MaybePromise<ExecutionResult>;
  if (isThenable(result)) result.then(failIfPartial, () => guard.fail());
  else failIfPartial(result);
  return result;
}
