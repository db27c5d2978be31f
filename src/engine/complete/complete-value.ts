import type { GraphQLResolveInfo, ResponsePath } from 'graphql';
import { V17 } from '../../execution/graphql-version.ts';
import { isThenable } from '../../execution/types.ts';
import { NULL, writeByte, writeStatic } from '../json/buffer.ts';
import { addError, type Execution } from '../run/execution.ts';
import { toFieldError } from '../run/field-error.ts';
import { ignoreRejections } from '../run/ignore-rejections.ts';
import { PROMISE_DEPTH } from '../run/microtasks.ts';
import { openPending, type PositionStart, wrapPending } from '../run/pending.ts';
import type { Continuation, Position } from '../run/plan.ts';
import { subscribe } from '../run/promises.ts';
import { itemPath } from '../run/resolve-info.ts';

/**
 * Writes a resolved value, or adds a Pending if it is a promise. Throws the reason if completing the value
 * fails.
 */
export function completeValue(
  ex: Execution,
  position: Position,
  value: unknown,
  path: ResponsePath,
  info: GraphQLResolveInfo | undefined,
): void {
  if (isThenable(value)) {
    completePromise(ex, position, value, path, info);
    return;
  }
  const mark = ex.pending.length;
  const { segment, pos } = ex;
  let continuation: Continuation | undefined;
  try {
    continuation = position.complete(ex, value, path, info);
  } catch (caught) {
    // The execution does not read the items or fields after the failed one.
    ignoreRejections(ex, value);
    throw caught;
  }
  if (continuation !== undefined) continuation(openPending(ex, position, path));
  else if (ex.pending.length > mark) wrapPending(ex, position, path, { mark, segment, start: pos });
}

function completePromise(
  ex: Execution,
  position: Position,
  promise: PromiseLike<unknown>,
  path: ResponsePath,
  info: GraphQLResolveInfo | undefined,
): void {
  const pending = openPending(ex, position, path);
  pending.promiseDepth = PROMISE_DEPTH;
  // 17 awaits the value, which converts other thenables into promises; 16 calls their `then`.
  subscribe(pending, V17 ? Promise.resolve(promise) : promise, position.complete, info);
}

/** Handles an error in the synchronous run that writes the position: null here, or the parent fails. */
export function handleSyncError(
  ex: Execution,
  caught: unknown,
  position: Position,
  path: ResponsePath,
  from: PositionStart,
): void {
  ex.pending.length = from.mark;
  ex.segment = from.segment;
  const error = toFieldError(caught, position, path);
  if (!position.nullable) throw error;
  ex.pos = from.start;
  addError(ex, error, path);
  writeStatic(ex, NULL);
}

const COMMA = 44;

/**
 * Writes one item with its comma and handles its errors. Throws a FieldError if the list has to become null.
 */
export type ItemRun = (
  ex: Execution,
  item: unknown,
  index: number,
  list: ResponsePath,
  info: GraphQLResolveInfo | undefined,
) => void;

/** Compiles the writer of an item. The bracket of the list replaces the comma of the first item. */
export function compileItem(position: Position): ItemRun {
  const { direct } = position;
  return (ex, item, index, list, info) => {
    writeByte(ex, COMMA);
    if (direct?.(ex, item) === true) return;
    const mark = ex.pending.length;
    const { segment } = ex;
    const start = ex.pos;
    const path = itemPath(list, index);
    try {
      completeValue(ex, position, item, path, info);
    } catch (caught) {
      handleSyncError(ex, caught, position, path, { mark, segment, start });
    }
  };
}
