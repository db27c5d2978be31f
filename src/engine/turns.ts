import { V17 } from '../execution/graphql-version.ts';
import type { Slot } from './slots.ts';

/*
 * graphql-js joins promises with Promise.all and `then`, so an error needs a number of microtask turns to climb from
 * the position where it happened to the one that it makes null, and meanwhile errors elsewhere are still recorded.
 * Which errors an answer holds, and in which order, depends on it. We keep counters instead of promises; when
 * something has failed, and only then, we wait as many turns as the promises would have taken.
 */

/** What a promised value adds: `result.then(completeValue)` in 16; 17 awaits in place. */
export const PROMISE_LAYERS: number = V17 ? 0 : 1;

const NOW = Promise.resolve();

/** Calls back after so many turns of the microtask queue; at once for none. */
export function after(turns: number, callback: () => void): void {
  if (turns === 0) callback();
  else if (turns === 1) void NOW.then(callback);
  else void NOW.then(() => after(turns - 1, callback));
}

/** From the moment a continuation throws until its position's handler runs: one for each `then` around it. */
export function turnsToHandler(slot: Slot): number {
  return slot.layers;
}

/** From the moment a child fails for good until the handler of the composite's position runs. */
export function turnsFromChild(slot: Slot): number {
  return slot.climb ?? joinTurns(slot) + (slot.doom === undefined ? 0 : 1) + slot.layers + 1;
}

/** `Promise.all`, and for objects the `then` that builds them; a stream returns its Promise.all. */
function joinTurns(slot: Slot): number {
  return slot.position.shape === 'list' ? 1 : 2;
}

/** From a stream's own failure until its position's handler runs. */
export function turnsFromStream(slot: Slot): number {
  return slot.layers + 1;
}

/*
 * Successes have to be counted only in graphql 16, below an object one of whose fields threw while others were
 * pending: there the error waits for all of them (`finally`).
 */

/** From a value until its parent's Promise.all sees it. */
export function turnsOfValue(slot: Slot): number {
  return slot.layers + 1;
}

/** From the last child's arrival until the parent's Promise.all sees the composite. */
export function turnsOfComposite(slot: Slot): number {
  return joinTurns(slot) - 1 + slot.layers + 2;
}

/** From the last sibling's arrival until the handler sees the error that waited for them. */
export function turnsOfDoom(slot: Slot): number {
  return 2 + slot.layers + 1;
}
