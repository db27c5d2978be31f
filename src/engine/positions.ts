import type { GraphQLResolveInfo } from 'graphql';
import { V17 } from '../execution/graphql-version.ts';
import { faultAt, record } from './errors.ts';
import type { Execution } from './execution.ts';
import { NULL, writeFixed } from './fixed.ts';
import { isThenable, type Position, type ResponsePath } from './plan.ts';
import { subscribe } from './settling.ts';
import { openSlot, wrapSlots } from './slots.ts';
import { PROMISE_LAYERS } from './turns.ts';

/** Where a position began, to go back to. */
export interface Beginning {
  readonly mark: number;
  readonly segment: number;
  readonly start: number;
}

/** Puts a resolved value, promise or not, where the stretch is writing. Throws what made it fail. */
export function fill(
  ex: Execution,
  position: Position,
  value: unknown,
  path: ResponsePath,
  info: GraphQLResolveInfo | undefined,
): void {
  if (isThenable(value)) {
    openPromise(ex, position, value, path, info);
    return;
  }
  const mark = ex.parts.length;
  const { segment, pos } = ex;
  const later = position.complete(ex, value, path, info);
  if (later !== undefined) later(openSlot(ex, position, path));
  else if (ex.parts.length > mark) wrapSlots(ex, position, path, { mark, segment, start: pos });
}

function openPromise(
  ex: Execution,
  position: Position,
  promise: PromiseLike<unknown>,
  path: ResponsePath,
  info: GraphQLResolveInfo | undefined,
): void {
  const slot = openSlot(ex, position, path);
  slot.layers = PROMISE_LAYERS;
  // 17 awaits the value, which adopts a foreign thenable first; 16 calls its `then`.
  subscribe(slot, V17 ? Promise.resolve(promise) : promise, position.complete, info);
}

/** A position failed in the stretch that writes it: null here, or the parent's failure. */
export function giveUp(
  ex: Execution,
  caught: unknown,
  position: Position,
  path: ResponsePath,
  from: Beginning,
): void {
  ex.parts.length = from.mark;
  ex.segment = from.segment;
  const fault = faultAt(caught, position, path);
  if (!position.nullable) throw fault;
  ex.pos = from.start;
  record(ex, fault, path);
  writeFixed(ex, NULL);
}
