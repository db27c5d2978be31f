import { RESPONSE_START } from '../json/buffer-pool.ts';
import { writeByte } from '../json/sink.ts';
import { type Execution, FAILED, type Pending } from '../run/execution.ts';
import type { FieldError } from '../run/field-error.ts';
import { afterMicrotasks } from '../run/microtasks.ts';
import { isWaiting, takePending } from '../run/pending.ts';
import type { FieldRun } from '../run/plan.ts';
import { handleError, onChildDone } from '../run/promises.ts';
import { endSyncRun } from '../run/sync-run.ts';

const OPEN = 123;
const CLOSE = 125;

interface SerialRun {
  readonly ex: Execution;
  readonly root: Pending;
  readonly fields: readonly FieldRun[];
  next: number;
  /** The run has waited for a field. */
  hasWaited: boolean;
}

/**
 * Executes the fields of a mutation one after the other. Returns true if no field had to wait. Throws a FieldError if
 * `data` becomes null synchronously.
 */
export function runSerially(ex: Execution, fields: readonly FieldRun[], root: Pending): boolean {
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
  const { root, fields, next } = run;
  // graphql-js has a `then` that stores the field, one for each remaining field, and the handler. A field that was started
  // by such a `then` is one promise deeper.
  root.childErrorMicrotasks = 2 + (run.hasWaited ? 1 : 0) + fields.length - next;
  root.openChildren++;
  field.parent = root;
  field.onDone = () => resume(run);
  endSyncRun(run.ex);
}

function resume(run: SerialRun): void {
  const { ex, root, fields } = run;
  if (ex.finished) return;
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
