/*
 * graphql-js joins promises with Promise.all and `then`, so an error needs several microtasks to propagate
 * from its position to the position that becomes null. Meanwhile other errors are still added, so the number
 * of microtasks decides which errors a response contains and in which order. The engine has counters instead
 * of promises. Only after a failure does it wait for the number of microtasks that the promises would have
 * taken.
 */
import { V17 } from '../../execution/graphql-version.ts';
import type { Pending } from './execution.ts';

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
export function microtasksToHandler(pending: Pending): number {
  return pending.promiseDepth;
}

/**
 * Counts microtasks from the failure of a child until the position of the object or list handles the error.
 */
export function microtasksFromChild(pending: Pending): number {
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
export function microtasksOfValue(pending: Pending): number {
  return pending.promiseDepth + 1;
}

/** Counts microtasks from the last child until the Promise.all of the parent receives the object or list. */
export function microtasksOfComposite(pending: Pending): number {
  return joinMicrotasks(pending) - 1 + pending.promiseDepth + 2;
}

/**
 * Counts microtasks from the last sibling until the position handles the error that waited for the siblings.
 */
export function microtasksOfPendingError(pending: Pending): number {
  return 2 + pending.promiseDepth + 1;
}
