import type { MaybePromise } from '../../types/connect.ts';
import { V17 } from '../execution/graphql-version.ts';
import type { ExecutionInputs, ExecutionOutcome } from '../execution/types.ts';
import { Compiler, type RootFields, type SharedPlans } from './compile.ts';
import {
  abortExecution,
  addError,
  type ErrorPosition,
  Execution,
  endSyncRun,
  FAILED,
  type FieldError,
  type FieldRun,
  Pending,
  type Program,
  toFieldError,
} from './execution.ts';
import { runFields } from './fields.ts';
import { RESPONSE_START, writeByte } from './json.ts';
import { toNullOutcome, toOutcome } from './outcome.ts';
import {
  afterMicrotasks,
  attachChildren,
  handleError,
  ignoreRootRejections,
  isWaiting,
  onChildDone,
  takePending,
} from './promises.ts';

const OPEN = 123;
const CLOSE = 125;

/** Executes a program whose `@skip` and `@include` variables are known, with coerced variables. */
export type ProgramRun = (
  inputs: ExecutionInputs,
  variables: Record<string, unknown>,
  values: Record<string, unknown>,
) => MaybePromise<ExecutionOutcome>;

/** The position of `data`. */
const ROOT: ErrorPosition = { field: undefined, nullable: true, shape: 'object' };

export function compileProgram(program: Program, shared: SharedPlans): ProgramRun {
  const run = compileRoot(new Compiler(program, shared));
  return (inputs, variables, values) => run(new Execution(program, inputs, variables, values));
}

/** Compiles the execution of a variant. Its fields are compiled when it is first executed. */
export function compileRoot(compiler: Compiler): (ex: Execution) => MaybePromise<ExecutionOutcome> {
  let compiled: RootFields | undefined;
  const isSerial = compiler.program.operation.operation === 'mutation';
  return (ex) => {
    const { rootValue } = ex.inputs;
    const root = isSerial ? new Pending(ex, ROOT, undefined) : undefined;
    let isComplete = true;
    try {
      compiled ??= compiler.compileRoot(ex);
      const { fields, after } = compiled;
      if (root === undefined) runFields(ex, fields, rootValue, undefined);
      else isComplete = runSerially(ex, fields, root);
      after?.(ex, rootValue, undefined);
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

/** graphql 17 rejects an aborted execution without waiting for its promises; 16 only starts no further mutation. */
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
  // A finished object graph in V8's old space keeps later graphs alive, which doubled the cost of garbage
  // collection.
  root.onDone = undefined;
  root.children = undefined;
}

interface SerialRun {
  readonly ex: Execution;
  readonly root: Pending;
  readonly fields: readonly FieldRun[];
  next: number;
  /** The run has waited for a field. */
  hasWaited: boolean;
}

/**
 * Executes the fields of a mutation one after the other. Returns true if no field had to wait. Throws a
 * FieldError if `data` becomes null synchronously.
 */
function runSerially(ex: Execution, fields: readonly FieldRun[], root: Pending): boolean {
  root.children = [];
  root.openChildren = 1;
  return advance({ ex, root, fields, next: 0, hasWaited: false });
}

/** Executes fields until one has to wait; returns true after the last one. */
function advance(run: SerialRun): boolean {
  const { ex, root, fields } = run;
  ex.running = true;
  while (run.next < fields.length) {
    if (ex.finished) {
      endSyncRun(ex);
      return false;
    }
    (fields[run.next++] as FieldRun)(ex, ex.inputs.rootValue, undefined);
    if (ex.pending.length === 0) continue;
    const waits = isWaiting(ex, 0);
    const children = takePending(ex);
    root.children?.push(...children);
    if (waits) {
      waitFor(run, children[children.length - 1] as Pending);
      return false;
    }
  }
  if (ex.pos === RESPONSE_START.length) writeByte(ex, OPEN);
  else ex.buf[RESPONSE_START.length] = OPEN;
  writeByte(ex, CLOSE);
  root.start = ex.segment;
  root.end = ex.pos;
  endSyncRun(ex);
  return true;
}

function waitFor(run: SerialRun, field: Pending): void {
  const { ex, root, fields, next } = run;
  // The properties of the root value are read later. Some of their promises may have rejected by then.
  if (!run.hasWaited && ex.inputs.rootValue !== undefined) ignoreRootRejections(ex);
  // graphql-js has a `then` that stores the field, one for each remaining field, and the handler. A field
  // that was started by such a `then` is one promise deeper.
  root.childErrorMicrotasks = 2 + (run.hasWaited ? 1 : 0) + fields.length - next;
  root.openChildren++;
  field.parent = root;
  field.onDone = () => resume(run);
  endSyncRun(ex);
}

const NO_SIGNAL: { readonly signal?: AbortSignal } = {};

function resume(run: SerialRun): void {
  const { ex, root, fields } = run;
  if (ex.finished) return;
  // graphql 17 has ended the execution.
  const { signal } = !V17 && run.next < fields.length ? ex.inputs : NO_SIGNAL;
  if (signal?.aborted === true) {
    abortExecution(ex, signal.reason);
    return;
  }
  run.hasWaited = true;
  ex.segment = ex.pos;
  try {
    if (advance(run)) onChildDone(root);
  } catch (error) {
    ex.pending = [];
    endSyncRun(ex);
    root.state = FAILED;
    afterMicrotasks(fields.length - run.next + 1, () => handleError(root, error as FieldError));
  }
}
