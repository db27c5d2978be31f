import { GraphQLError } from 'graphql';
import { V17 } from '../../execution/graphql-version.ts';
import { isThenable } from '../../execution/types.ts';
import { writeByte } from '../json/buffer.ts';
import type { Execution } from '../run/execution.ts';
import { ignoreRejections } from '../run/ignore-rejections.ts';
import type { Complete, FieldPlan, Position } from '../run/plan.ts';
import { completeAsyncIterable } from './async-iterable.ts';
import { compileItem } from './complete-value.ts';

const OPEN = 91;
const CLOSE = 93;

/** Completes a list: an iterable object, or with graphql 17 an asynchronous iterable. */
export function completeList(plan: FieldPlan, items: Position): Complete {
  const writeItem = compileItem(items);
  const completeAsync = V17 ? completeAsyncIterable(items) : undefined;
  return (ex, value, path, info) => {
    const start = ex.pos;
    if (isPlainArray(value)) {
      // The length is read for each item because a resolver may change it, as with an array's iterator.
      for (let i = 0; i < value.length; i++) writeItem(ex, value[i], i, path, info);
    } else if (completeAsync !== undefined && isAsyncIterable(value)) {
      return completeAsync(ex, value, info);
    } else if (isIterable(value)) {
      iterate(ex, value, (item, index) => writeItem(ex, item, index, path, info));
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

/** Whether a value is an array with the native iterator, for which a loop over the indices is equivalent. */
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

/**
 * 16 closes the iterator if an item makes the list fail. 17 reads it to the end, because it may contain
 * promises.
 */
const iterate: (
  ex: Execution,
  values: Iterable<unknown>,
  visit: (item: unknown, index: number) => void,
) => void = V17
  ? (ex, values, visit) => {
      const iterator = values[Symbol.iterator]();
      try {
        let index = 0;
        for (let step = iterator.next(); !step.done; step = iterator.next()) visit(step.value, index++);
      } catch (caught) {
        drain(ex, iterator);
        throw caught;
      }
    }
  : (_ex, values, visit) => {
      let index = 0;
      for (const item of values) visit(item, index++);
    };

function drain(ex: Execution, iterator: Iterator<unknown>): void {
  const ignore = (): void => undefined;
  try {
    for (let step = iterator.next(); !step.done; step = iterator.next()) {
      if (isThenable(step.value)) step.value.then(ignore, ignore);
      else ignoreRejections(ex, step.value);
    }
  } catch {
    // The list has failed already; only its first error is reported.
  }
}
