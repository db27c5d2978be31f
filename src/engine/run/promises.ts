import type { GraphQLResolveInfo, ResponsePath } from 'graphql';
import { addError, DONE, type Execution, endSyncRun, FAILED, type Pending, WAITING } from './execution.ts';
import { type FieldError, toFieldError } from './field-error.ts';
import { ignoreRejections } from './ignore-rejections.ts';
import {
  afterMicrotasks,
  microtasksFromChild,
  microtasksOfComposite,
  microtasksOfPendingError,
  microtasksOfValue,
  microtasksToHandler,
} from './microtasks.ts';
import { attachChildren, takePending } from './pending.ts';
import type { Complete, Continuation } from './plan.ts';

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
      else if (ex.finished) ignoreRejections(ex, value);
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
    pending.omittedKeyLength = ex.omittedKeyLength;
    ex.omittedKeyLength = 0;
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

/**
 * Handles the failure of a child. Later failures in the same object or list are ignored, as by Promise.all.
 */
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
