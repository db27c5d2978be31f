import type { GraphQLResolveInfo, ResponsePath } from 'graphql';
import type { Caching } from '../../execution/caching.ts';
import { V17 } from '../../execution/graphql-version.ts';
import { type ExecutionInputs, isThenable } from '../../execution/types.ts';
import type { Execution } from './execution.ts';
import type { FieldPlan } from './plan.ts';

/** The functions that graphql 17 adds to `info`. */
interface InfoFunctions {
  getAbortSignal(): AbortSignal | undefined;
  getAsyncHelpers(): {
    promiseAll(values: readonly unknown[]): Promise<unknown[]>;
    track(values: readonly unknown[]): void;
  };
}

/** Creates the `info` of a field, with the same properties in the same order as in graphql-js. */
export function createInfo(ex: Execution, plan: FieldPlan, path: ResponsePath): GraphQLResolveInfo {
  const info = createGraphqlInfo(ex, plan, path);
  const { caching } = ex.program.settings;
  return caching === undefined ? info : withCacheControl(caching, info, ex, plan);
}

const createGraphqlInfo: typeof createInfo = V17
  ? (ex, plan, path) => {
      ex.infoFunctions ??= createInfoFunctions(ex);
      return { ...infoData(ex, plan, path), ...ex.infoFunctions };
    }
  : infoData;

/** Adds the member that resolvers have with the option `cacheControl`. */
function withCacheControl(
  caching: Caching,
  info: GraphQLResolveInfo,
  ex: Execution,
  { definition }: FieldPlan,
): GraphQLResolveInfo {
  const isRoot = info.path.prev === undefined;
  return Object.assign(info, { cacheControl: caching.controlFor(ex.inputs.caching, definition, isRoot) });
}

function infoData(ex: Execution, plan: FieldPlan, path: ResponsePath): GraphQLResolveInfo {
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

/** Executions that have one abort signal for their resolvers: usually one, several with deferred parts. */
export interface AbortScope {
  readonly inputs: Pick<ExecutionInputs, 'signal'>;
  /** The resolvers are no longer needed. */
  readonly finished: boolean;
  /** Aborts the signal; undefined if no resolver has asked for it. */
  abortResolvers: ((reason?: unknown) => void) | undefined;
}

/** Called once per scope. The controller is created when a resolver first asks for the signal. */
export function createInfoFunctions(scope: AbortScope): InfoFunctions {
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
        const { signal } = scope.inputs;
        const abort = (reason?: unknown): void => {
          signal?.removeEventListener('abort', onAbort);
          controller?.abort(reason);
        };
        const onAbort = (): void => abort(signal?.reason);
        if (scope.finished || signal?.aborted === true) abort(signal?.reason);
        else signal?.addEventListener('abort', onAbort);
        scope.abortResolvers = abort;
      }
      return controller.signal;
    },
    getAsyncHelpers: () => helpers,
  };
}

/** Prevents unhandled rejections of promises whose values are no longer needed. */
function track(values: readonly unknown[]): void {
  const ignore = (): void => undefined;
  for (const value of values) if (isThenable(value)) value.then(ignore, ignore);
}

/** The path of a field. */
export function fieldPath(plan: FieldPlan, parent: ResponsePath | undefined): ResponsePath {
  return { prev: parent, key: plan.key, typename: plan.parentType.name };
}

/** The path of a list item. */
export function itemPath(list: ResponsePath, index: number): ResponsePath {
  return { prev: list, key: index, typename: undefined };
}

/** The keys of a path, from the root on. */
export function keysOf(path: ResponsePath | undefined): (string | number)[] {
  const keys: (string | number)[] = [];
  for (let at = path; at !== undefined; at = at.prev) keys.push(at.key);
  return keys.reverse();
}
