import type { MaybePromise } from '../../../types/connect.ts';
import { V17 } from '../../execution/graphql-version.ts';
import type { ExecutionInputs, ExecutionOutcome } from '../../execution/types.ts';
import { compileRootFields, createCompiler, runFields, type SharedPlans } from '../compile/selection-set.ts';
import { toNullOutcome, toOutcome } from '../result/outcome.ts';
import { addError, Execution, Pending } from '../run/execution.ts';
import { type ErrorPosition, toFieldError } from '../run/field-error.ts';
import { attachChildren, takePending } from '../run/pending.ts';
import type { FieldRun } from '../run/plan.ts';
import type { Program } from '../run/program.ts';
import { abortExecution } from '../run/sync-run.ts';
import { ignoreRootRejections } from '../run/unused-values.ts';
import { runSerially } from './serial.ts';

/** Executes a program whose `@skip` and `@include` variables are known, with coerced variables. */
export type ProgramRun = (
  inputs: ExecutionInputs,
  variables: Record<string, unknown>,
  values: Record<string, unknown>,
) => MaybePromise<ExecutionOutcome>;

/** The position of `data`. */
const ROOT: ErrorPosition = { field: undefined, nullable: true, shape: 'object' };

/** Compiles one variant of a program, when it is first executed. */
export function compileRoot(program: Program, shared: SharedPlans): ProgramRun {
  const compiler = createCompiler(program, shared);
  let fields: FieldRun[] | undefined;
  const isSerial = program.operation.operation === 'mutation';
  return (inputs, variables, values) => {
    const ex = new Execution(program, inputs, variables, values);
    const root = isSerial ? new Pending(ex, ROOT, undefined) : undefined;
    let isComplete = true;
    try {
      fields ??= compileRootFields(compiler, ex);
      if (root === undefined) runFields(ex, fields, inputs.rootValue, undefined);
      else isComplete = runSerially(ex, fields, root);
    } catch (caught) {
      addError(ex, toFieldError(caught, ROOT, undefined), undefined);
      ignoreRootRejections(ex);
      return toNullOutcome(ex);
    }
    ex.running = false;
    if (root !== undefined) return isComplete ? toOutcome(ex, root) : promiseOutcome(ex, root);
    return ex.pending.length === 0 ? toOutcome(ex, undefined) : joinPending(ex);
  };
}

function joinPending(ex: Execution): MaybePromise<ExecutionOutcome> {
  const root = new Pending(ex, ROOT, undefined);
  attachChildren(ex, root, takePending(ex));
  return root.openChildren === 0 ? toOutcome(ex, root) : promiseOutcome(ex, root);
}

/** Returns the promise of an execution that has to wait. */
function promiseOutcome(ex: Execution, root: Pending): Promise<ExecutionOutcome> {
  root.onDone = () => resolveOutcome(ex, root);
  return new Promise((resolve, reject) => {
    ex.resolve = resolve;
    ex.reject = reject;
    if (V17) rejectOnAbort(ex);
  });
}

/** graphql 17 rejects an aborted execution without waiting for its promises; 16 ignores the signal. */
function rejectOnAbort(ex: Execution): void {
  const { signal } = ex.inputs;
  if (signal === undefined || signal === null) return;
  const abort = (): void => abortExecution(ex, signal.reason);
  if (signal.aborted) abort();
  else {
    signal.addEventListener('abort', abort);
    ex.removeAbortListener = () => signal.removeEventListener('abort', abort);
  }
}

function resolveOutcome(ex: Execution, root: Pending): void {
  if (ex.finished) return;
  const { resolve, reject } = ex;
  try {
    resolve?.(root.isNull ? toNullOutcome(ex) : toOutcome(ex, root));
  } catch (error) {
    reject?.(error);
  }
  // A finished object graph in V8's old space keeps later graphs alive, which doubled the cost of garbage collection.
  root.onDone = undefined;
  root.children = undefined;
}
