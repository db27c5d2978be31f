import type { ResponsePath } from 'graphql';
import { DONE, type Execution, Pending } from './execution.ts';
import type { ErrorPosition } from './field-error.ts';

/** The start of a position: its index in `pending`, the segment it is in, and its first byte. */
export interface PositionStart {
  readonly mark: number;
  readonly segment: number;
  readonly start: number;
}

/** Adds a Pending at the current offset. */
export function openPending(ex: Execution, position: ErrorPosition, path: ResponsePath | undefined): Pending {
  const pending = new Pending(ex, position, path);
  pending.precedingStart = ex.segment;
  pending.precedingEnd = ex.pos;
  ex.segment = ex.pos;
  ex.pending.push(pending);
  return pending;
}

/**
 * Creates one Pending for an object or list that was written from `start` on and contains the positions since
 * `mark`.
 */
export function wrapPending(
  ex: Execution,
  position: ErrorPosition,
  path: ResponsePath | undefined,
  from: PositionStart,
): void {
  if (!isWaiting(ex, from.mark)) return;
  const pending = new Pending(ex, position, path);
  const children = ex.pending.splice(from.mark);
  (children[0] as Pending).precedingStart = from.start;
  pending.precedingStart = from.segment;
  pending.precedingEnd = from.start;
  attachChildren(ex, pending, children);
  ex.segment = ex.pos;
  ex.pending.push(pending);
}

/** Whether a position that was added since `mark` is not done. */
export function isWaiting(ex: Execution, mark: number): boolean {
  for (let i = mark; i < ex.pending.length; i++) {
    if ((ex.pending[i] as Pending).state !== DONE) return true;
  }
  return false;
}

/** Removes and returns the positions that wait since the synchronous run began. */
export function takePending(ex: Execution): Pending[] {
  const { pending } = ex;
  ex.pending = [];
  return pending;
}

/** Gives a position its children and the text after them, which ends at the current offset. */
export function attachChildren(ex: Execution, pending: Pending, children: Pending[]): void {
  pending.children = children;
  pending.start = ex.segment;
  pending.end = ex.pos;
  pending.pendingError = ex.pendingError;
  ex.pendingError = undefined;
  waitForChildren(pending, children);
}

/** Counts the children that are not done. */
export function waitForChildren(parent: Pending, children: readonly Pending[]): void {
  for (const child of children) {
    if (child.state === DONE) continue;
    child.parent = parent;
    if (parent.countsMicrotasks || parent.pendingError !== undefined) countMicrotasksBelow(child);
    parent.openChildren++;
  }
}

function countMicrotasksBelow(pending: Pending): void {
  pending.countsMicrotasks = true;
  for (const child of pending.children ?? []) countMicrotasksBelow(child);
}
