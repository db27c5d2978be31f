import type { GraphQLResolveInfo, ResponsePath } from 'graphql';
import { writeByte } from '../json/sink.ts';
import type { Execution } from '../run/execution.ts';
import { itemPath, type Position } from '../run/plan.ts';
import { completeValue, handleSyncError } from './complete-value.ts';

const COMMA = 44;

/** Writes one item with its comma and handles its errors. Throws a FieldError if the list has to become null. */
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
