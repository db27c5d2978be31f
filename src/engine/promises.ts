import { types } from 'node:util';
import type { GraphQLResolveInfo, ResponsePath } from 'graphql';
import { V17 } from '../execution/graphql-version.ts';
import { UnusedValues } from '../execution/unused-values.ts';
import {
  addError,
  type Complete,
  type Continuation,
  DONE,
  type ErrorPosition,
  type Execution,
  endSyncRun,
  FAILED,
  type FieldError,
  Pending,
  toFieldError,
  WAITING,
} from './execution.ts';

/**
 * Continues with a position when a promise settles. Throws the errors of `then`. `originalValue` is the value
 * that is completed with the result of the promise, if it is not the result itself.
 */
export function subscribe(
  pending: Pending,
  promise: PromiseLike<unknown>,
  complete: Complete,
  info: GraphQLResolveInfo | undefined,
  originalValue?: unknown,
): void {
  const { ex } = pending;
  const id = ++pending.subscriptionId;
  // Its properties are read after the promise has settled. Some of their promises may have rejected by then.
  ignoreRejections(ex, originalValue);
  promise.then(
    (value) => {
      if (claimSettlement(pending, id)) onResolved(pending, complete, value, info);
      else if (ex.finished) ignoreUnread(pending, value);
      else afterSyncRun(pending, id, () => onResolved(pending, complete, value, info));
    },
    (reason) => {
      if (claimSettlement(pending, id)) onRejected(pending, reason);
      else if (!ex.finished) afterSyncRun(pending, id, () => onRejected(pending, reason));
    },
  );
}

/** Returns true for the first settlement of a subscription if the execution can continue with it now. */
function claimSettlement(pending: Pending, id: number): boolean {
  const { ex } = pending;
  if (ex.finished || ex.running || pending.subscriptionId !== id) return false;
  pending.subscriptionId++;
  return true;
}

/** A thenable of another library may settle during a synchronous run. */
function afterSyncRun(pending: Pending, id: number, proceed: () => void): void {
  if (pending.ex.finished || pending.subscriptionId !== id) return;
  afterMicrotasks(1, () => {
    if (claimSettlement(pending, id)) proceed();
    else afterSyncRun(pending, id, proceed);
  });
}

/** Writes the value of a position at the end of the buffer, in a synchronous run. */
function onResolved(
  pending: Pending,
  complete: Complete,
  value: unknown,
  info: GraphQLResolveInfo | undefined,
): void {
  const { ex } = pending;
  const start = ex.pos;
  ex.segment = start;
  ex.running = true;
  let continuation: Continuation | undefined;
  try {
    continuation = complete(ex, value, pending.path as ResponsePath, info);
    if (continuation !== undefined) continuation(pending);
  } catch (caught) {
    ex.pending = [];
    ex.pos = start;
    endSyncRun(ex);
    ignoreRejections(ex, value);
    onRejected(pending, caught);
    return;
  }
  endSyncRun(ex);
  if (continuation === undefined && !ex.finished) onWritten(ex, pending, start);
}

function onWritten(ex: Execution, pending: Pending, start: number): void {
  if (ex.pending.length === 0) {
    pending.start = start;
    pending.end = ex.pos;
    markDone(pending, microtasksOfValue);
    return;
  }
  attachChildren(ex, pending, takePending(ex));
  if (pending.openChildren === 0) markDone(pending, microtasksOfValue);
}

/** The promise was rejected, or its value could not be completed. */
function onRejected(pending: Pending, caught: unknown): void {
  pending.state = FAILED;
  const error = toFieldError(caught, pending.position, pending.path);
  afterMicrotasks(microtasksToHandler(pending), () => handleError(pending, error));
}

/** Sets the position to null, or propagates the error to the parent. */
export function handleError(pending: Pending, error: FieldError): void {
  const { ex } = pending;
  if (ex.finished) return;
  if (pending.position.nullable) {
    addError(ex, error, pending.path);
    pending.isNull = true;
    markDone(pending, () => 1);
  } else if (pending.parent !== undefined) {
    onChildError(pending.parent, error, pending.path?.key);
  }
}

/** Handles the failure of a child. Later failures in the same object or list are ignored, as by Promise.all. */
export function onChildError(pending: Pending, error: FieldError, key: string | number | undefined): void {
  if (pending.state !== WAITING) return;
  if (pending.errorCollector !== undefined) {
    pending.errorCollector.add(error, Number(key));
    return;
  }
  pending.state = FAILED;
  afterMicrotasks(microtasksFromChild(pending), () => handleError(pending, pending.pendingError ?? error));
}

/** The text of the position is complete, or it is null. */
function markDone(pending: Pending, microtasks: (pending: Pending) => number): void {
  pending.state = DONE;
  const { parent } = pending;
  if (pending.onDone !== undefined) pending.onDone();
  if (parent === undefined) return;
  pending.parent = undefined;
  if (pending.countsMicrotasks) afterMicrotasks(microtasks(pending), () => onChildDone(parent));
  else onChildDone(parent);
}

/** Decrements the number of open children; after the last child the position itself is done. */
export function onChildDone(pending: Pending): void {
  if (--pending.openChildren > 0 || pending.state !== WAITING) return;
  const { pendingError } = pending;
  if (pendingError === undefined) markDone(pending, microtasksOfComposite);
  else {
    pending.state = FAILED;
    afterMicrotasks(microtasksOfPendingError(pending), () => handleError(pending, pendingError));
  }
}

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

/*
 * graphql-js joins promises with Promise.all and `then`, so an error needs several microtasks to propagate
 * from its position to the position that becomes null. Meanwhile other errors are still added, so the number
 * of microtasks decides which errors a response contains and in which order. The engine has counters instead
 * of promises. Only after a failure does it wait for the number of microtasks that the promises would have
 * taken.
 */

/** The promises around a promised value: `result.then(completeValue)` in 16; 17 awaits in place. */
export const PROMISE_DEPTH: number = V17 ? 0 : 1;

const RESOLVED = Promise.resolve();

/** Calls `callback` after `count` microtasks; synchronously for 0. */
export function afterMicrotasks(count: number, callback: () => void): void {
  if (count === 0) callback();
  else if (count === 1) void RESOLVED.then(callback);
  else void RESOLVED.then(() => afterMicrotasks(count - 1, callback));
}

/**
 * Counts microtasks from the exception of a continuation until its position handles the error: one per
 * enclosing `then`.
 */
function microtasksToHandler(pending: Pending): number {
  return pending.promiseDepth;
}

/** Counts microtasks from the failure of a child until the position of the object or list handles the error. */
function microtasksFromChild(pending: Pending): number {
  return (
    pending.childErrorMicrotasks ??
    joinMicrotasks(pending) + (pending.pendingError === undefined ? 0 : 1) + pending.promiseDepth + 1
  );
}

/** `Promise.all`; for objects also the `then` that builds them. */
function joinMicrotasks(pending: Pending): number {
  return pending.position.shape === 'list' ? 1 : 2;
}

/** Counts microtasks from the failure of an asynchronous iterable until its position handles the error. */
export function microtasksFromIterable(pending: Pending): number {
  return pending.promiseDepth + 1;
}

/*
 * Successes count only in graphql 16, below an object of which one field threw while others were pending: its
 * error waits for all of them (`finally`).
 */

/** Counts microtasks from a value until the parent's Promise.all receives it. */
function microtasksOfValue(pending: Pending): number {
  return pending.promiseDepth + 1;
}

/** Counts microtasks from the last child until the Promise.all of the parent receives the object or list. */
function microtasksOfComposite(pending: Pending): number {
  return joinMicrotasks(pending) - 1 + pending.promiseDepth + 2;
}

/** Counts microtasks from the last sibling until the position handles the error that waited for the siblings. */
function microtasksOfPendingError(pending: Pending): number {
  return 2 + pending.promiseDepth + 1;
}

/** Handles the rejections of promises in a value that the execution does not use any more (see `UnusedValues`). */
export function ignoreRejections(ex: Execution, value: unknown): void {
  // Returned errors are frequent and contain no values of the response.
  if (typeof value !== 'object' || value === null || types.isNativeError(value)) return;
  unusedValuesOf(ex).ignoreRejections(value);
}

/** Like `ignoreRejections`, for a value that arrives after the end of the execution. */
function ignoreUnread({ ex, position }: Pending, value: unknown): void {
  if (position.shape === 'list') unusedValuesOf(ex).ignoreItems(value);
  else ignoreRejections(ex, value);
}

/** Like `ignoreRejections`, for the root value. Only its properties are searched, because it may be very large. */
export function ignoreRootRejections(ex: Execution): void {
  unusedValuesOf(ex).ignoreRootRejections(ex.inputs.rootValue);
}

export function unusedValuesOf(ex: Execution): UnusedValues {
  ex.unusedValues ??= new UnusedValues();
  return ex.unusedValues;
}
