import { types } from 'node:util';
import {
  defaultTypeResolver,
  type FieldNode,
  type GraphQLAbstractType,
  type GraphQLNullableType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  isAbstractType,
  isLeafType,
  isListType,
  isNonNullType,
  type ResponsePath,
} from 'graphql';
import { V17 } from '../execution/graphql-version.ts';
import { isThenable } from '../execution/types.ts';
import { stepOf } from '../options/rules.ts';
import type { Compiler } from './compile.ts';
import { assertRuntimeType, notIterable, wrongTypeError } from './completion-errors.ts';
import {
  addError,
  type Complete,
  type Continuation,
  createInfo,
  DONE,
  type ErrorCollector,
  type ErrorPosition,
  type Execution,
  endSyncRun,
  FAILED,
  type FieldError,
  type FieldPlan,
  itemPath,
  Pending,
  type Position,
  type Program,
  type Shape,
  toFieldError,
} from './execution.ts';
import { NULL, writeByte, writeStatic } from './json.ts';
import { completeLeaf, directWrite } from './leaf.ts';
import {
  afterMicrotasks,
  handleError,
  ignoreRejections,
  microtasksFromIterable,
  onChildDone,
  onChildError,
  openPending,
  type PositionStart,
  PROMISE_DEPTH,
  subscribe,
  takePending,
  unusedValuesOf,
  waitForChildren,
  wrapPending,
} from './promises.ts';

/** Compiles the completion of a field's values. */
export function compilePosition(compiler: Compiler, plan: FieldPlan): Position {
  return positionOf(compiler, plan, plan.type);
}

function positionOf(compiler: Compiler, plan: FieldPlan, type: GraphQLOutputType): Position {
  const nullable = !isNonNullType(type);
  const inner = (isNonNullType(type) ? type.ofType : type) as GraphQLOutputType & GraphQLNullableType;
  const completeNonNull = completeType(compiler, plan, inner);
  const complete: Complete = (ex, value, path, info) => {
    if (value === null || value === undefined) {
      if (!nullable) throw nonNullError(plan);
      writeStatic(ex, NULL);
      return undefined;
    }
    if (value instanceof Error) throw value;
    return completeNonNull(ex, value, path, info);
  };
  return {
    field: plan,
    nullable,
    shape: shapeOf(inner),
    complete,
    direct: isLeafType(inner) ? directWrite(inner) : undefined,
  };
}

function completeType(
  compiler: Compiler,
  plan: FieldPlan,
  type: GraphQLOutputType & GraphQLNullableType,
): Complete {
  if (isListType(type)) return completeList(plan, positionOf(compiler, plan, type.ofType));
  if (isLeafType(type)) return completeLeaf(type);
  if (isAbstractType(type)) return completeAbstract(compiler, plan, type);
  return completeObject(compiler, plan, type);
}

function shapeOf(type: GraphQLOutputType): Shape {
  if (isListType(type)) return 'list';
  return isLeafType(type) ? 'leaf' : 'object';
}

function nonNullError({ parentType, name }: FieldPlan): Error {
  return new Error(`Cannot return null for non-nullable field ${parentType.name}.${name}.`);
}

/** Writes a resolved value, or adds a Pending if it is a promise. Throws the reason if completing the value fails. */
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

/** Writes one item with its comma and handles its errors. Throws a FieldError if the list has to become null. */
type ItemRun = (
  ex: Execution,
  item: unknown,
  index: number,
  list: ResponsePath,
  info: GraphQLResolveInfo | undefined,
) => void;

/** Compiles the writer of an item. The bracket of the list replaces the comma of the first item. */
function compileItem(position: Position): ItemRun {
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

/** `isTypeOf` as the engine calls it: `info` is missing if the function cannot read it. */
interface WithTypeCheck {
  isTypeOf?: ((value: unknown, context: unknown, info: GraphQLResolveInfo | undefined) => unknown) | null;
}

/** Completes a value of an object type, after its `isTypeOf` if it has one. */
function completeObject(compiler: Compiler, plan: FieldPlan, type: GraphQLObjectType): Complete {
  const run = compiler.compileSelectionSet(type, plan.nodes);
  if (!type.isTypeOf) {
    return (ex, value, path) => {
      run(ex, value, path);
      return undefined;
    };
  }
  return (ex, value, path, info) => {
    const isOfType = (type as WithTypeCheck).isTypeOf?.(value, ex.inputs.contextValue, info);
    if (isThenable(isOfType)) {
      return (pending) => {
        pending.promiseDepth++;
        const complete: Complete = (later, resolved, at) => {
          if (!resolved) throw wrongTypeError(type.name, value, plan.nodes);
          run(later, value, at);
          return undefined;
        };
        subscribe(pending, isOfType, complete, info, value);
      };
    }
    if (!isOfType) throw wrongTypeError(type.name, value, plan.nodes);
    run(ex, value, path);
    return undefined;
  };
}

type TypeNameResolver = (
  ex: Execution,
  value: unknown,
  path: ResponsePath,
  info: GraphQLResolveInfo | undefined,
) => unknown;

/** A type resolver as the engine calls it: `info` is missing if the function cannot read it. */
type ResolveType = (
  value: unknown,
  context: unknown,
  info: GraphQLResolveInfo | undefined,
  type: GraphQLAbstractType,
) => unknown;

/** Completes a value of an interface or union: resolves its object type, then completes it as that type. */
function completeAbstract(compiler: Compiler, plan: FieldPlan, type: GraphQLAbstractType): Complete {
  const resolveTypeName = typeNameResolver(compiler.program, plan, type);
  const byTypeName = new Map<unknown, Complete>();
  const completeAs = (name: unknown, value: unknown): Complete => {
    let complete = byTypeName.get(name);
    if (complete === undefined) {
      const { schema } = compiler.program;
      const { nodes, parentType } = plan;
      assertRuntimeType(schema, type, { name, value, field: `${parentType.name}.${plan.name}`, nodes });
      complete = guardedValue(compiler, plan, schema.getType(name as string) as GraphQLObjectType);
      byTypeName.set(name, complete);
    }
    return complete;
  };
  return (ex, value, path, info) => {
    const name = resolveTypeName(ex, value, path, info);
    if (!isThenable(name)) return completeAs(name, value)(ex, value, path, info);
    return (pending) => {
      pending.promiseDepth++;
      const complete: Complete = (later, resolved, at) => completeAs(resolved, value)(later, value, at, info);
      subscribe(pending, name, complete, info, value);
    };
  };
}

/** Completes an object of an abstract type. Checks the caller first, if the schema requires something for its type. */
function guardedValue(compiler: Compiler, plan: FieldPlan, type: GraphQLObjectType): Complete {
  const { schema, operation, settings, isRestricted } = compiler.program;
  const complete = completeObject(compiler, plan, type);
  const guard = isRestricted ? settings.guards?.valueGuard?.(schema, type) : undefined;
  if (guard === undefined) return complete;
  return (ex, value, path, info) => {
    const refusal = guard(ex.inputs, plan.nodes[0] as FieldNode, operation);
    if (refusal !== undefined) throw refusal;
    return complete(ex, value, path, info);
  };
}

/** The default resolver reads `__typename` first and needs `info` only if that is missing. */
function typeNameResolver(program: Program, plan: FieldPlan, type: GraphQLAbstractType): TypeNameResolver {
  const resolveType = type.resolveType ?? program.typeResolver;
  if (resolveType !== undefined && resolveType !== defaultTypeResolver) {
    const call = resolveType as ResolveType;
    return (ex, value, _path, info) => call(value, ex.inputs.contextValue, info, type);
  }
  return (ex, value, path, info) => {
    if (typeof value === 'object' && value !== null) {
      const name = (value as { __typename?: unknown }).__typename;
      if (typeof name === 'string') return name;
    }
    const fieldInfo = info ?? createInfo(ex, plan, pathOfField(path));
    return defaultTypeResolver(value, ex.inputs.contextValue, fieldInfo, type);
  };
}

/** `info.path` is the path of the field, also for list items. */
function pathOfField(path: ResponsePath): ResponsePath {
  let at = path;
  while (typeof at.key === 'number' && at.prev !== undefined) at = at.prev;
  return at;
}

const OPEN = 91;
const CLOSE = 93;

/** Completes a list: an iterable object, or with graphql 17 an asynchronous iterable. */
function completeList(plan: FieldPlan, items: Position): Complete {
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
      throw notIterable(`${plan.parentType.name}.${plan.name}`);
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
    !types.isProxy(value) &&
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

type Visit = (item: unknown, index: number) => void;

/** 17 reads an iterator to its end after an item that fails, because it may contain promises. 16 closes it. */
const iterate: (ex: Execution, values: Iterable<unknown>, visit: Visit) => void = V17
  ? (ex, values, visit) => {
      const iterator = values[Symbol.iterator]();
      try {
        let index = 0;
        for (let step = nextOf(iterator); !step.done; step = nextOf(iterator)) visit(step.value, index++);
      } catch (caught) {
        drain(ex, iterator);
        throw caught;
      }
    }
  : (ex, values, visit) => {
      const iterator = values[Symbol.iterator]();
      let index = 0;
      try {
        for (const item of { [Symbol.iterator]: () => iterator }) visit(item, index++);
      } catch (caught) {
        unusedValuesOf(ex).drain(iterator);
        throw caught;
      }
    };

const nextOf = (iterator: Iterator<unknown>): IteratorResult<unknown> => stepOf(iterator.next());

// The list has failed already: only its first error is reported.
function drain(ex: Execution, iterator: Iterator<unknown>): void {
  const ignore = (): void => undefined;
  try {
    for (let step = nextOf(iterator); !step.done; step = nextOf(iterator)) {
      if (isThenable(step.value)) step.value.then(ignore, ignore);
      else ignoreRejections(ex, step.value);
    }
  } catch {}
}

const OPEN_LIST = 91;
const CLOSE_LIST = 93;
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
function completeAsyncIterable(
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
    if (stepOf(result).done) {
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
    if (index === 0) ex.buf[start] = OPEN_LIST;
  });
  list.children?.push(...parts);
  waitForChildren(list, parts);
}

function endList({ ex, list, index }: Iteration): void {
  const parts = writePart(ex, () => {
    if (index === 0) writeByte(ex, OPEN_LIST);
    writeByte(ex, CLOSE_LIST);
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
