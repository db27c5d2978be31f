import type { GraphQLResolveInfo } from 'graphql';
import { type Fault, faultAt, record } from './errors.ts';
import type { Execution } from './execution.ts';
import { endStretch } from './outcome.ts';
import type { Complete, Deferral, ResponsePath } from './plan.ts';
import { adopt, DONE, FAILED, PENDING, type Slot } from './slots.ts';
import {
  after,
  turnsFromChild,
  turnsOfComposite,
  turnsOfDoom,
  turnsOfValue,
  turnsToHandler,
} from './turns.ts';

/** Goes on with a slot when a promise settles. Throws what `then` throws. */
export function subscribe(
  slot: Slot,
  promise: PromiseLike<unknown>,
  resume: Complete,
  info: GraphQLResolveInfo | undefined,
): void {
  const ticket = ++slot.ticket;
  promise.then(
    (value) => {
      if (isAwaited(slot, ticket)) resumed(slot, resume, value, info);
      else lateFor(slot, ticket, () => resumed(slot, resume, value, info));
    },
    (reason) => {
      if (isAwaited(slot, ticket)) failed(slot, reason);
      else lateFor(slot, ticket, () => failed(slot, reason));
    },
  );
}

/** Takes a settlement: true once, when the execution goes on and no stretch is running. */
function isAwaited(slot: Slot, ticket: number): boolean {
  const { ex } = slot;
  if (ex.finished || ex.busy || slot.ticket !== ticket) return false;
  slot.ticket++;
  return true;
}

/** A foreign promise may settle in the middle of a stretch: it is heard behind it. */
function lateFor(slot: Slot, ticket: number, proceed: () => void): void {
  if (slot.ex.finished || slot.ticket !== ticket) return;
  after(1, () => {
    if (isAwaited(slot, ticket)) proceed();
    else lateFor(slot, ticket, proceed);
  });
}

/** Runs a stretch that writes a slot's value where the buffer ends now. */
function resumed(slot: Slot, resume: Complete, value: unknown, info: GraphQLResolveInfo | undefined): void {
  const { ex } = slot;
  const start = ex.pos;
  ex.segment = start;
  ex.busy = true;
  let later: Deferral | undefined;
  try {
    later = resume(ex, value, slot.path as ResponsePath, info);
    if (later !== undefined) later(slot);
  } catch (caught) {
    ex.parts = [];
    ex.pos = start;
    endStretch(ex);
    failed(slot, caught);
    return;
  }
  endStretch(ex);
  if (later === undefined && !ex.finished) arrive(ex, slot, start);
}

function arrive(ex: Execution, slot: Slot, start: number): void {
  if (ex.parts.length === 0) {
    slot.start = start;
    slot.end = ex.pos;
    slot.omitted = ex.omitted;
    ex.omitted = 0;
    done(slot, turnsOfValue);
    return;
  }
  const children = ex.parts;
  ex.parts = [];
  adopt(ex, slot, children);
  if (slot.open === 0) done(slot, turnsOfValue);
}

/** A continuation threw, or its promise was rejected. */
export function failed(slot: Slot, caught: unknown): void {
  slot.state = FAILED;
  const fault = faultAt(caught, slot.position, slot.path);
  after(turnsToHandler(slot), () => handle(slot, fault));
}

/** The position's handler: null here, or the error goes on to the parent. */
export function handle(slot: Slot, fault: Fault): void {
  const { ex } = slot;
  if (ex.finished) return;
  if (slot.position.nullable) {
    record(ex, fault, slot.path);
    slot.isNull = true;
    done(slot, () => 1);
  } else if (slot.parent !== undefined) {
    childFailed(slot.parent, fault, slot.path?.key);
  }
}

/** Promise.all rejects once: what fails later in the same composite is not heard. */
export function childFailed(slot: Slot, fault: Fault, key: string | number | undefined): void {
  if (slot.state !== PENDING) return;
  if (slot.hold !== undefined) {
    slot.hold.keep(fault, Number(key));
    return;
  }
  slot.state = FAILED;
  after(turnsFromChild(slot), () => handle(slot, slot.doom ?? fault));
}

/** The text is complete (or null). */
export function done(slot: Slot, turns: (slot: Slot) => number): void {
  slot.state = DONE;
  const parent = slot.parent;
  if (slot.proceed !== undefined) slot.proceed();
  if (parent === undefined) return;
  slot.parent = undefined;
  if (slot.counted) after(turns(slot), () => childDone(parent));
  else childDone(parent);
}

/** One less to wait for. */
export function childDone(slot: Slot): void {
  if (--slot.open > 0 || slot.state !== PENDING) return;
  const { doom } = slot;
  if (doom !== undefined) {
    slot.state = FAILED;
    after(turnsOfDoom(slot), () => handle(slot, doom));
  } else done(slot, turnsOfComposite);
}
