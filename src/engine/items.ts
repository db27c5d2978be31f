import type { GraphQLResolveInfo } from 'graphql';
import type { Execution } from './execution.ts';
import { itemPath, type Position, type ResponsePath } from './plan.ts';
import { fill, giveUp } from './positions.ts';
import { writeByte } from './writer.ts';

const COMMA = 44;

/** Writes one item, comma included, and settles its errors; throws a Fault when the list has to be null. */
export type ItemRun = (
  ex: Execution,
  item: unknown,
  index: number,
  list: ResponsePath,
  info: GraphQLResolveInfo | undefined,
) => void;

/** How an item is written: its comma, then its value. The first item's comma becomes the list's bracket. */
export function itemRun(position: Position): ItemRun {
  const { direct } = position;
  return (ex, item, index, list, info) => {
    writeByte(ex, COMMA);
    if (direct?.(ex, item) === true) return;
    const mark = ex.parts.length;
    const { segment } = ex;
    const start = ex.pos;
    const path = itemPath(list, index);
    try {
      fill(ex, position, item, path, info);
    } catch (caught) {
      giveUp(ex, caught, position, path, { mark, segment, start });
    }
  };
}
