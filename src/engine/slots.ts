import type { Fault } from './errors.ts';
import type { Execution } from './execution.ts';
import type { Position, ResponsePath } from './plan.ts';

export const PENDING = 0;
/** A child has failed; the error is on its way. */
export const FAILED = 1;
export const DONE = 2;

/** A position whose text is not there yet: it waits for a promise, for its children, or for both in turn. */
export class Slot {
  /** Undefined: nobody waits for it. Either it is the root, or what held it was given up. */
  parent: Slot | undefined = undefined;
  children: Slot[] | undefined = undefined;
  /** The parent's text in front of this slot. */
  before = 0;
  beforeEnd = 0;
  /** Its own text; behind the children, when there are some. */
  start = 0;
  end = 0;
  /** Children (and a running stream) that are not done. */
  open = 0;
  /** How many promises of graphql-js's are wrapped around the value (see turns.ts). */
  layers = 0;
  state: number = PENDING;
  isNull = false;
  /** Successes below have to be counted in turns. */
  counted = false;
  doom: Fault | undefined = undefined;
  /** So many bytes in front of it, its key, are not to be written. */
  omitted = 0;
  /** A value that could not be written; JSON.stringify says so when the answer is put together. */
  late: { readonly value: unknown; text: string } | undefined = undefined;
  /** What to do when the children are there, instead of telling the parent. */
  proceed: (() => void) | undefined = undefined;
  /** Turns from a child's failure to the handler, where the shape does not tell: serial execution. */
  climb: number | undefined = undefined;
  /** While a stream is read: keeps what fails in it. */
  hold: { keep(fault: Fault, index: number): void; kept(): Fault | undefined } | undefined = undefined;
  /** Numbers the subscriptions, so that a promise that calls back twice is heard once. */
  ticket = 0;
  readonly ex: Execution;
  readonly position: Position;
  path: ResponsePath | undefined;

  constructor(ex: Execution, position: Position, path: ResponsePath | undefined) {
    this.ex = ex;
    this.position = position;
    this.path = path;
  }
}

/** A slot at the place where the stretch is writing. */
export function openSlot(ex: Execution, position: Position, path: ResponsePath | undefined): Slot {
  const slot = new Slot(ex, position, path);
  slot.before = ex.segment;
  slot.beforeEnd = ex.pos;
  ex.segment = ex.pos;
  ex.parts.push(slot);
  return slot;
}

/** Makes one slot of a composite that was written from `start` on and holds slots since `mark`. */
export function wrapSlots(
  ex: Execution,
  position: Position,
  path: ResponsePath | undefined,
  from: { mark: number; segment: number; start: number },
): void {
  if (!hasPending(ex, from.mark)) return;
  const slot = new Slot(ex, position, path);
  const children = ex.parts.splice(from.mark);
  (children[0] as Slot).before = from.start;
  slot.before = from.segment;
  slot.beforeEnd = from.start;
  adopt(ex, slot, children);
  ex.segment = ex.pos;
  ex.parts.push(slot);
}

/** Whether a slot since `mark` has to be waited for. */
export function hasPending(ex: Execution, mark: number): boolean {
  for (let i = mark; i < ex.parts.length; i++) if ((ex.parts[i] as Slot).state !== DONE) return true;
  return false;
}

/** Gives a slot the children of the stretch that ends here, with the text behind them. */
export function adopt(ex: Execution, slot: Slot, children: Slot[]): void {
  slot.children = children;
  slot.start = ex.segment;
  slot.end = ex.pos;
  slot.doom = ex.doom;
  ex.doom = undefined;
  attach(slot, children);
}

/** Counts children in. */
export function attach(slot: Slot, children: readonly Slot[]): void {
  for (const child of children) {
    if (child.state === DONE) continue;
    child.parent = slot;
    if (slot.counted || slot.doom !== undefined) countBelow(child);
    slot.open++;
  }
}

function countBelow(slot: Slot): void {
  slot.counted = true;
  for (const child of slot.children ?? []) countBelow(child);
}
