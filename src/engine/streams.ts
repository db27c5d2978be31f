import type { GraphQLResolveInfo } from 'graphql';
import { type Fault, faultAt } from './errors.ts';
import type { Execution } from './execution.ts';
import { type ItemRun, itemRun } from './items.ts';
import { endStretch } from './outcome.ts';
import type { Deferral, Position, ResponsePath } from './plan.ts';
import { childDone, childFailed, handle } from './settling.ts';
import { attach, DONE, FAILED, Slot } from './slots.ts';
import { after, turnsFromStream } from './turns.ts';
import { writeByte } from './writer.ts';

const OPEN = 91;
const CLOSE = 93;
const TEXT: Position = { plan: undefined, nullable: true, shape: 'leaf', complete: () => undefined };

/** An asynchronous iterable that is being read into a list (graphql 17). */
interface Stream {
  readonly ex: Execution;
  readonly slot: Slot;
  readonly iterator: AsyncIterator<unknown>;
  readonly write: ItemRun;
  readonly info: GraphQLResolveInfo | undefined;
  index: number;
}

/** Completes asynchronous iterables: item by item, each in a stretch of its own. */
export function completeStream(
  items: Position,
): (ex: Execution, value: AsyncIterable<unknown>, info: GraphQLResolveInfo | undefined) => Deferral {
  const write = itemRun(items);
  return (ex, value, info) => (slot) => {
    slot.children = [];
    slot.open = 1;
    // An asynchronous function returns the Promise.all: one promise more than around a list.
    slot.climb = 3 + slot.layers;
    slot.hold = earliestFault();
    let iterator: AsyncIterator<unknown>;
    try {
      iterator = value[Symbol.asyncIterator]();
    } catch (caught) {
      failStream(slot, faultAt(caught, slot.position, slot.path));
      return;
    }
    pull({ ex, slot, iterator, write, info, index: 0 });
  };
}

/** While the iterable is read, items that fail are only remembered: the first one in the list counts. */
function earliestFault(): NonNullable<Slot['hold']> {
  let earliest: { fault: Fault; index: number } | undefined;
  return {
    keep(fault, index) {
      if (earliest === undefined || index < earliest.index) earliest = { fault, index };
    },
    kept: () => earliest?.fault,
  };
}

function pull(stream: Stream): void {
  let step: unknown;
  try {
    step = stream.iterator.next();
  } catch (caught) {
    give(stream, caught);
    return;
  }
  Promise.resolve(step as Promise<IteratorResult<unknown>>).then(
    (result) => whenIdle(stream, () => receive(stream, result)),
    (reason) => whenIdle(stream, () => give(stream, reason)),
  );
}

function whenIdle(stream: Stream, proceed: () => void): void {
  if (stream.ex.busy) after(1, () => whenIdle(stream, proceed));
  else proceed();
}

function receive(stream: Stream, result: IteratorResult<unknown>): void {
  const { ex, slot } = stream;
  if (ex.finished) {
    if (result.done !== true) close(stream.iterator);
    return;
  }
  try {
    if (result.done === true) end(stream);
    else {
      writeItem(stream, result.value);
      pull(stream);
    }
  } catch (caught) {
    close(stream.iterator);
    failStream(slot, faultAt(caught, slot.position, slot.path));
  }
}

/** Writes the next item; the first one's comma becomes the bracket. */
function writeItem(stream: Stream, item: unknown): void {
  const { ex, slot, info } = stream;
  const index = stream.index++;
  const start = ex.pos;
  const parts = stretch(ex, () => {
    stream.write(ex, item, index, slot.path as ResponsePath, info);
    if (index === 0) ex.buf[start] = OPEN;
  });
  slot.children?.push(...parts);
  attach(slot, parts);
}

function end({ ex, slot, index }: Stream): void {
  const parts = stretch(ex, () => {
    if (index === 0) writeByte(ex, OPEN);
    writeByte(ex, CLOSE);
  });
  slot.children?.push(...parts);
  const fault = slot.hold?.kept();
  slot.hold = undefined;
  if (fault === undefined) childDone(slot);
  else childFailed(slot, fault, 0);
}

/** Writes a piece of a list: the slots in it, and the text behind them as one more. */
function stretch(ex: Execution, write: () => void): Slot[] {
  const start = ex.pos;
  ex.segment = start;
  ex.busy = true;
  try {
    write();
  } catch (caught) {
    ex.parts = [];
    ex.pos = start;
    throw caught;
  } finally {
    endStretch(ex);
  }
  const parts = ex.parts;
  ex.parts = [];
  if (ex.pos > ex.segment) parts.push(textPiece(ex));
  return parts;
}

function textPiece(ex: Execution): Slot {
  const piece = new Slot(ex, TEXT, undefined);
  piece.state = DONE;
  piece.start = ex.segment;
  piece.end = ex.pos;
  return piece;
}

/** The iterable itself failed, or gave an item that the list cannot hold. */
function give(stream: Stream, reason: unknown): void {
  const { ex, slot } = stream;
  if (ex.finished) return;
  close(stream.iterator);
  failStream(slot, faultAt(reason, slot.position, slot.path));
}

function failStream(slot: Slot, fault: Fault): void {
  slot.hold = undefined;
  slot.state = FAILED;
  after(turnsFromStream(slot), () => handle(slot, fault));
}

/** Lets an iterable clean up; how that ends is nobody's business any more. */
function close(iterator: AsyncIterator<unknown>): void {
  const ignore = (): void => undefined;
  try {
    Promise.resolve(iterator.return?.()).then(ignore, ignore);
  } catch {
    // As above.
  }
}
