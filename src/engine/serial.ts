import type { Fault } from './errors.ts';
import type { Execution } from './execution.ts';
import { endStretch } from './outcome.ts';
import type { FieldRun } from './plan.ts';
import { OPENING } from './pool.ts';
import { childDone, handle } from './settling.ts';
import { FAILED, hasPending, type Slot } from './slots.ts';
import { after } from './turns.ts';
import { writeByte } from './writer.ts';

const OPEN = 123;
const CLOSE = 125;

interface Series {
  readonly ex: Execution;
  readonly root: Slot;
  readonly fields: readonly FieldRun[];
  next: number;
  /** A field has been waited for. */
  waited: boolean;
}

/**
 * The fields of a mutation: each one starts when the one before it is complete. True when none had to be waited for.
 * Throws a Fault for `data: null` at once.
 */
export function runSerially(ex: Execution, fields: readonly FieldRun[], root: Slot): boolean {
  root.children = [];
  root.open = 1;
  return advance({ ex, root, fields, next: 0, waited: false });
}

/** Runs fields until one has to be waited for; true when none is left. */
function advance(series: Series): boolean {
  const { ex, root, fields } = series;
  ex.busy = true;
  while (series.next < fields.length) {
    if (ex.finished) {
      endStretch(ex);
      return false;
    }
    (fields[series.next++] as FieldRun)(ex, ex.inputs.rootValue, undefined);
    if (ex.parts.length === 0) continue;
    const waits = hasPending(ex, 0);
    const children = ex.parts;
    ex.parts = [];
    root.children?.push(...children);
    if (waits) {
      wait(series, children[children.length - 1] as Slot);
      return false;
    }
  }
  if (ex.pos === OPENING.length) writeByte(ex, OPEN);
  else ex.buf[OPENING.length] = OPEN;
  writeByte(ex, CLOSE);
  root.start = ex.segment;
  root.end = ex.pos;
  endStretch(ex);
  return true;
}

function wait(series: Series, slot: Slot): void {
  const { root, fields, next } = series;
  // A `then` that stores the field, one for each field that is left, and the handler; a field that was started by
  // such a `then` is one promise deeper.
  root.climb = 2 + (series.waited ? 1 : 0) + fields.length - next;
  root.open++;
  slot.parent = root;
  slot.proceed = () => resume(series);
  endStretch(series.ex);
}

function resume(series: Series): void {
  const { ex, root, fields } = series;
  if (ex.finished) return;
  series.waited = true;
  ex.segment = ex.pos;
  try {
    if (advance(series)) childDone(root);
  } catch (fault) {
    ex.parts = [];
    endStretch(ex);
    root.state = FAILED;
    after(fields.length - series.next + 1, () => handle(root, fault as Fault));
  }
}
