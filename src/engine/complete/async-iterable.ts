import type { GraphQLResolveInfo, ResponsePath } from 'graphql';
import { writeByte } from '../json/buffer.ts';
import { DONE, type ErrorCollector, type Execution, endSyncRun, FAILED, Pending } from '../run/execution.ts';
import { type ErrorPosition, type FieldError, toFieldError } from '../run/field-error.ts';
import { ignoreRejections } from '../run/ignore-rejections.ts';
import { afterMicrotasks, microtasksFromIterable } from '../run/microtasks.ts';
import { takePending, waitForChildren } from '../run/pending.ts';
import type { Continuation, Position } from '../run/plan.ts';
import { handleError, onChildDone, onChildError } from '../run/promises.ts';
import { compileItem, type ItemRun } from './complete-value.ts';

const OPEN = 91;
const CLOSE = 93;
const TEXT: ErrorPosition = { field: undefined, nullable: true, shape: 'leaf' };

/** An asynchronous iterable that is read into a list (graphql 17). */
interface Iteration {
  readonly ex: Execution;
  readonly list: Pending;
  readonly iterator: AsyncIterator<unknown>;
  readonly writeItem: ItemRun;
  readonly info: GraphQLResolveInfo | undefined;
  index: number;
}

/** Completes asynchronous iterables item by item, one synchronous run per item. */
export function completeAsyncIterable(
  items: Position,
): (ex: Execution, value: AsyncIterable<unknown>, info: GraphQLResolveInfo | undefined) => Continuation {
  const writeItem = compileItem(items);
  return (ex, value, info) => (list) => {
    list.children = [];
    list.openChildren = 1;
    // graphql-js returns the Promise.all from an async function: one promise more than for a list.
    list.childErrorMicrotasks = 3 + list.promiseDepth;
    list.errorCollector = createErrorCollector();
    let iterator: AsyncIterator<unknown>;
    try {
      iterator = value[Symbol.asyncIterator]();
    } catch (caught) {
      failList(list, toFieldError(caught, list.position, list.path));
      return;
    }
    readNext({ ex, list, iterator, writeItem, info, index: 0 });
  };
}

/** Stores the errors of items while the iterable is read; only the first one in the list is reported. */
function createErrorCollector(): ErrorCollector {
  let first: { error: FieldError; index: number } | undefined;
  return {
    add(error, index) {
      if (first === undefined || index < first.index) first = { error, index };
    },
    first: () => first?.error,
  };
}

function readNext(iteration: Iteration): void {
  let step: unknown;
  try {
    step = iteration.iterator.next();
  } catch (caught) {
    onIteratorError(iteration, caught);
    return;
  }
  Promise.resolve(step as Promise<IteratorResult<unknown>>).then(
    (result) => whenNotRunning(iteration, () => onStep(iteration, result)),
    (reason) => whenNotRunning(iteration, () => onIteratorError(iteration, reason)),
  );
}

function whenNotRunning(iteration: Iteration, proceed: () => void): void {
  if (iteration.ex.running) afterMicrotasks(1, () => whenNotRunning(iteration, proceed));
  else proceed();
}

function onStep(iteration: Iteration, result: IteratorResult<unknown>): void {
  const { ex, list } = iteration;
  let value: unknown;
  try {
    // Any truthy `done` ends an iteration. The result of a faulty iterator may be null, or have getters that throw.
    if (result.done) {
      if (ex.finished) ignoreRejections(ex, result.value);
      else endList(iteration);
      return;
    }
    value = result.value;
    if (ex.finished) {
      close(iteration.iterator);
      ignoreRejections(ex, value);
      return;
    }
    addItem(iteration, value);
    readNext(iteration);
  } catch (caught) {
    close(iteration.iterator);
    ignoreRejections(ex, value);
    if (!ex.finished) failList(list, toFieldError(caught, list.position, list.path));
  }
}

/** Writes the next item. The bracket of the list replaces the comma of the first item. */
function addItem(iteration: Iteration, item: unknown): void {
  const { ex, list, info } = iteration;
  const index = iteration.index++;
  const start = ex.pos;
  const parts = writePart(ex, () => {
    iteration.writeItem(ex, item, index, list.path as ResponsePath, info);
    if (index === 0) ex.buf[start] = OPEN;
  });
  list.children?.push(...parts);
  waitForChildren(list, parts);
}

function endList({ ex, list, index }: Iteration): void {
  const parts = writePart(ex, () => {
    if (index === 0) writeByte(ex, OPEN);
    writeByte(ex, CLOSE);
  });
  list.children?.push(...parts);
  const error = list.errorCollector?.first();
  list.errorCollector = undefined;
  if (error === undefined) onChildDone(list);
  else onChildError(list, error, 0);
}

/**
 * Writes a part of the list in a synchronous run. Returns the pending positions, with the text after them as
 * the last one.
 */
function writePart(ex: Execution, write: () => void): Pending[] {
  const start = ex.pos;
  ex.segment = start;
  ex.running = true;
  try {
    write();
  } catch (caught) {
    ex.pending = [];
    ex.pos = start;
    throw caught;
  } finally {
    endSyncRun(ex);
  }
  const parts = takePending(ex);
  if (ex.pos > ex.segment) parts.push(textPart(ex));
  return parts;
}

function textPart(ex: Execution): Pending {
  const part = new Pending(ex, TEXT, undefined);
  part.state = DONE;
  part.start = ex.segment;
  part.end = ex.pos;
  return part;
}

function onIteratorError(iteration: Iteration, reason: unknown): void {
  const { ex, list } = iteration;
  if (ex.finished) return;
  close(iteration.iterator);
  failList(list, toFieldError(reason, list.position, list.path));
}

function failList(list: Pending, error: FieldError): void {
  list.errorCollector = undefined;
  list.state = FAILED;
  afterMicrotasks(microtasksFromIterable(list), () => handleError(list, error));
}

/** Lets the iterator release its resources. Errors are ignored: the result of the list is known. */
function close(iterator: AsyncIterator<unknown>): void {
  const ignore = (): void => undefined;
  try {
    Promise.resolve(iterator.return?.()).then(ignore, ignore);
  } catch {
    // Ignored for the same reason.
  }
}
