import type { GraphQLResolveInfo } from 'graphql';
import { V17 } from '../execution/graphql-version.ts';
import type { Execution } from './execution.ts';
import type { FieldPlan, ResponsePath } from './plan.ts';
import { isThenable } from './plan.ts';

/** What graphql 17 adds to `info`. */
interface Facilities {
  getAbortSignal(): AbortSignal | undefined;
  getAsyncHelpers(): {
    promiseAll(values: readonly unknown[]): Promise<unknown[]>;
    track(values: readonly unknown[]): void;
  };
}

/** The `info` of a field: every property graphql-js gives it, in its order. */
export const makeInfo: (ex: Execution, plan: FieldPlan, path: ResponsePath) => GraphQLResolveInfo = V17
  ? (ex, plan, path) => {
      ex.facilities ??= facilitiesOf(ex);
      return { ...dataOf(ex, plan, path), ...ex.facilities };
    }
  : dataOf;

function dataOf(ex: Execution, plan: FieldPlan, path: ResponsePath): GraphQLResolveInfo {
  const { program } = ex;
  return {
    fieldName: plan.name,
    fieldNodes: plan.nodes,
    returnType: plan.type,
    parentType: plan.parentType,
    path,
    schema: program.schema,
    fragments: program.fragments,
    rootValue: ex.inputs.rootValue,
    operation: program.operation,
    variableValues: ex.variables,
  };
}

/** Made once per execution; the controller when a resolver first asks for the signal. */
function facilitiesOf(ex: Execution): Facilities {
  let controller: AbortController | undefined;
  const helpers = {
    promiseAll(values: readonly unknown[]) {
      const all = Promise.all(values);
      all.then(undefined, () => track(values));
      return all;
    },
    track,
  };
  return {
    getAbortSignal() {
      if (controller === undefined) {
        controller = new AbortController();
        const { signal } = ex.inputs;
        const abort = (reason?: unknown): void => {
          signal?.removeEventListener('abort', onAbort);
          controller?.abort(reason);
        };
        const onAbort = (): void => abort(signal?.reason);
        if (ex.finished || signal?.aborted === true) abort(signal?.reason);
        else signal?.addEventListener('abort', onAbort);
        ex.abortResolvers = abort;
      }
      return controller.signal;
    },
    getAsyncHelpers: () => helpers,
  };
}

/** Rejections of what nobody waits for any more are no unhandled rejections. */
function track(values: readonly unknown[]): void {
  const ignore = (): void => undefined;
  for (const value of values) if (isThenable(value)) value.then(ignore, ignore);
}
