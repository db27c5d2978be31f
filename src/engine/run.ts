import type { MaybePromise } from '../../types/connect.ts';
import { V17 } from '../execution/graphql-version.ts';
import type { ExecutionOutcome } from '../execution/types.ts';
import { Fault, record } from './errors.ts';
import { Execution } from './execution.ts';
import { compileRoot, runFields } from './objects.ts';
import { abandon, conclude, finish } from './outcome.ts';
import type { FieldRun, Position } from './plan.ts';
import type { Program, ProgramRun } from './program.ts';
import { runSerially } from './serial.ts';
import { adopt, Slot } from './slots.ts';

/** The place of `data` itself. */
const ROOT: Position = { plan: undefined, nullable: true, shape: 'object', complete: () => undefined };

/** A program for one variant of its selection; compiled when it first runs. */
export function compileRun(program: Program): ProgramRun {
  let fields: FieldRun[] | undefined;
  const serial = program.operation.operation === 'mutation';
  return (inputs, variables, values) => {
    const ex = new Execution(program, inputs, variables, values);
    const root = serial ? new Slot(ex, ROOT, undefined) : undefined;
    let complete = true;
    try {
      fields ??= compileRoot(program, program.rootType, ex);
      if (root === undefined) runFields(ex, fields, inputs.rootValue, undefined);
      else complete = runSerially(ex, fields, root);
    } catch (caught) {
      return failedAtOnce(ex, caught);
    }
    ex.busy = false;
    if (root !== undefined) return complete ? conclude(ex, root, false) : promised(ex, root);
    return ex.parts.length === 0 ? conclude(ex, undefined, false) : joined(ex);
  };
}

/** `data: null` before anything was waited for. */
function failedAtOnce(ex: Execution, caught: unknown): ExecutionOutcome {
  const fault = caught instanceof Fault ? caught : new Fault(caught, undefined, undefined);
  record(ex, fault, undefined);
  return conclude(ex, undefined, true);
}

function joined(ex: Execution): MaybePromise<ExecutionOutcome> {
  const root = new Slot(ex, ROOT, undefined);
  const children = ex.parts;
  ex.parts = [];
  adopt(ex, root, children);
  return root.open === 0 ? conclude(ex, root, false) : promised(ex, root);
}

/** The outcome of an execution that has begun to wait. */
export function promised(ex: Execution, root: Slot): Promise<ExecutionOutcome> {
  root.proceed = () => finish(ex, root);
  return new Promise((resolve, reject) => {
    ex.answer = resolve;
    ex.fail = reject;
    if (V17) endOnAbort(ex);
  });
}

/** As in graphql 17, nobody waits for an answer that nobody wants; 16 knows no signal. */
function endOnAbort(ex: Execution): void {
  const { signal } = ex.inputs;
  if (signal === undefined || signal === null) return;
  const abort = (): void => abandon(ex, signal.reason);
  if (signal.aborted) abort();
  else {
    signal.addEventListener('abort', abort);
    ex.deaf = () => signal.removeEventListener('abort', abort);
  }
}
