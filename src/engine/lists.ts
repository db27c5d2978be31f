import { GraphQLError } from 'graphql';
import { V17 } from '../execution/graphql-version.ts';
import { itemRun } from './items.ts';
import { type Complete, type FieldPlan, isThenable, type Position } from './plan.ts';
import { completeStream } from './streams.ts';
import { writeByte } from './writer.ts';

const OPEN = 91;
const CLOSE = 93;

/** Completes a list, which is any iterable object; on graphql 17 an asynchronous one too. */
export function completeList(plan: FieldPlan, items: Position): Complete {
  const write = itemRun(items);
  const stream = V17 ? completeStream(items) : undefined;
  return (ex, value, path, info) => {
    const start = ex.pos;
    if (isPlainArray(value)) {
      // The length is read anew each time, as an array's iterator does.
      for (let i = 0; i < value.length; i++) write(ex, value[i], i, path, info);
    } else if (stream !== undefined && isAsyncIterable(value)) {
      return stream(ex, value, info);
    } else if (isIterable(value)) {
      iterate(value, (item, index) => write(ex, item, index, path, info));
    } else {
      throw new GraphQLError(
        `Expected Iterable, but did not find one for field "${plan.parentType.name}.${plan.name}".`,
      );
    }
    if (ex.pos === start) writeByte(ex, OPEN);
    else ex.buf[start] = OPEN;
    writeByte(ex, CLOSE);
    return undefined;
  };
}

const nativeIterator = Array.prototype[Symbol.iterator];

/** An array whose iterator is the native one, so that a loop over its indices comes to the same. */
function isPlainArray(value: unknown): value is readonly unknown[] {
  return (
    Array.isArray(value) &&
    value[Symbol.iterator] === nativeIterator &&
    !(V17 && Symbol.asyncIterator in value)
  );
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof (value as Partial<AsyncIterable<unknown>>)[Symbol.asyncIterator] === 'function';
}

function isIterable(value: unknown): value is Iterable<unknown> {
  return (
    typeof value === 'object' && typeof (value as Partial<Iterable<unknown>>)[Symbol.iterator] === 'function'
  );
}

/** 16 closes the iterator when an item makes the list fail; 17 runs it to its end, for the promises it may hold. */
const iterate: (values: Iterable<unknown>, visit: (item: unknown, index: number) => void) => void = V17
  ? (values, visit) => {
      const iterator = values[Symbol.iterator]();
      try {
        let index = 0;
        for (let step = iterator.next(); step.done !== true; step = iterator.next())
          visit(step.value, index++);
      } catch (caught) {
        drain(iterator);
        throw caught;
      }
    }
  : (values, visit) => {
      let index = 0;
      for (const item of values) visit(item, index++);
    };

function drain(iterator: Iterator<unknown>): void {
  const ignore = (): void => undefined;
  try {
    for (let step = iterator.next(); step.done !== true; step = iterator.next()) {
      if (isThenable(step.value)) step.value.then(ignore, ignore);
    }
  } catch {
    // Its own failure is nobody's: the list has failed already.
  }
}
