import type { GraphQLResolveInfo, ResponsePath } from 'graphql';
import * as graphql from 'graphql';
import type { UnusedValues } from '../../execution/guard/unused-values.ts';
import type { ExecutionInputs, ExecutionOutcome } from '../../execution/types.ts';
import {
  type BufferPool,
  type PooledBuffer,
  RESPONSE_START,
  type Sink,
  useBuffer,
  withViews,
} from '../json/buffer.ts';
import type { DeferredParts } from './deferred-parts.ts';
import type { ErrorPosition, FieldError } from './field-error.ts';
import type { Program } from './program.ts';

export const WAITING = 0;
/** A child has failed and its error is propagating. */
export const FAILED = 1;
export const DONE = 2;

/**
 * The state of one execution. A synchronous run is the code between two waits; it appends to `buf`. A
 * position that waits for a promise becomes a Pending; the text since the last one is the open segment, from
 * `segment` to `pos`.
 */
export class Execution implements Sink {
  buffer: PooledBuffer;
  buf: Buffer;
  view: DataView;
  readonly pool: BufferPool;
  pos: number = RESPONSE_START.length;
  segment: number = RESPONSE_START.length;
  /** The positions that wait since the current synchronous run began. */
  pending: Pending[] = [];
  /** A synchronous run is in progress. A thenable that settles in it has to wait for its end. */
  running = true;
  /** The execution has an outcome or was aborted, so it may no longer use the buffer. */
  finished = false;
  errors: FieldError[] | undefined = undefined;
  /** The positions that an error has set to null; undefined in it stands for `data`. */
  nulledPaths: Set<ResponsePath | undefined> | undefined = undefined;
  /** graphql 16: the error of an object that still waits for the siblings of the field that failed. */
  pendingError: FieldError | undefined = undefined;
  /** The value just written has no JSON text: the length of the key that has to be removed with it. */
  omittedKeyLength = 0;
  /** Settles the promise of an asynchronous execution. */
  resolve: ((outcome: ExecutionOutcome) => void) | undefined = undefined;
  reject: ((reason: unknown) => void) | undefined = undefined;
  removeAbortListener: (() => void) | undefined = undefined;
  /** graphql 17: the functions of `info`, created for the first resolver that needs `info`. */
  infoFunctions: Pick<GraphQLResolveInfo, never> | undefined = undefined;
  /** The values that the execution does not use any more (see execution/guard/unused-values.ts). */
  unusedValues: UnusedValues | undefined = undefined;
  abortResolvers: ((reason?: unknown) => void) | undefined = undefined;
  /** The parts that the execution defers; undefined if it is not incremental. */
  deferred: DeferredParts<Execution> | undefined = undefined;
  readonly program: Program;
  readonly inputs: ExecutionInputs;
  /** The coerced variables for `info`: a map (16), or `{ sources, coerced }` (17). */
  readonly variables: Record<string, unknown>;
  /** The coerced variables by name. */
  readonly values: Record<string, unknown>;

  constructor(
    program: Program,
    inputs: ExecutionInputs,
    variables: Record<string, unknown>,
    values: Record<string, unknown>,
  ) {
    this.program = program;
    this.inputs = inputs;
    this.variables = variables;
    this.values = values;
    this.pool = program.pool;
    this.buffer = program.pool.take(program.expectedBytes);
    this.buf = this.buffer.buf;
    this.view = this.buffer.view;
  }
}

/**
 * Collects the errors of an asynchronous iterable while it is read; only the error with the lowest index is
 * reported.
 */
export interface ErrorCollector {
  add(error: FieldError, index: number): void;
  first(): FieldError | undefined;
}

/** A position whose text is incomplete, because it waits for a promise, its children, or both in turn. */
export class Pending {
  /** The parent position; undefined for the root, and if an ancestor has failed. */
  parent: Pending | undefined = undefined;
  children: Pending[] | undefined = undefined;
  /** The parent's text before this position. */
  precedingStart = 0;
  precedingEnd = 0;
  /** The start of this position's text; with children, of the text after the last child. */
  start = 0;
  end = 0;
  /** The number of children (and running iterations) that are not done. */
  openChildren = 0;
  /** The number of promises that graphql-js would wrap around the value (see microtasks.ts). */
  promiseDepth = 0;
  state: number = WAITING;
  isNull = false;
  /** Successful positions below also have to be delayed as in graphql-js. */
  countsMicrotasks = false;
  pendingError: FieldError | undefined = undefined;
  /** The length of its key in the preceding text, if the key has to be removed. */
  omittedKeyLength = 0;
  /** A value for which JSON.stringify threw; it is tried again when the response is assembled. */
  deferredJson: { readonly value: unknown; json: string } | undefined = undefined;
  /** Called when the position is done, for the root and for the fields of a mutation. */
  onDone: (() => void) | undefined = undefined;
  /** The number of microtasks from a child's failure to its handler, if the shape does not determine it. */
  childErrorMicrotasks: number | undefined = undefined;
  errorCollector: ErrorCollector | undefined = undefined;
  /** Changes with each subscription, so that the second callback of a faulty thenable is ignored. */
  subscriptionId = 0;
  readonly ex: Execution;
  readonly position: ErrorPosition;
  path: ResponsePath | undefined;

  constructor(ex: Execution, position: ErrorPosition, path: ResponsePath | undefined) {
    this.ex = ex;
    this.position = position;
    this.path = path;
  }
}

/**
 * Sets a position to null and keeps its error, unless the position or one of its ancestors is null already.
 */
export function addError(ex: Execution, error: FieldError, path: ResponsePath | undefined): void {
  ex.nulledPaths ??= new Set();
  for (let at = path; at !== undefined; at = at.prev) if (ex.nulledPaths.has(at)) return;
  if (ex.nulledPaths.has(undefined)) return;
  ex.nulledPaths.add(path);
  ex.errors ??= [];
  ex.errors.push(error);
}

/** graphql 17 rejects aborted executions with this error; 16 has no abort signals. */
const { AbortedGraphQLExecutionError: AbortedError } = graphql as {
  AbortedGraphQLExecutionError?: new (reason: unknown) => Error;
};

/** Replaces the buffer of an execution that has returned its buffer. */
export const NO_BUFFER: PooledBuffer = withViews(Buffer.alloc(0));

/**
 * Returns the working buffer and drops the references to values of the user. Promises whose values are no
 * longer needed may keep the execution alive.
 */
export function releaseExecution(ex: Execution): void {
  ex.removeAbortListener?.();
  ex.removeAbortListener = undefined;
  ex.program.expectedBytes = ex.pos;
  if (ex.buffer !== NO_BUFFER) ex.pool.give(ex.buffer);
  useBuffer(ex, NO_BUFFER);
  if (ex.pending.length > 0) ex.pending = [];
  ex.errors = undefined;
  ex.nulledPaths = undefined;
  ex.resolve = undefined;
  ex.reject = undefined;
}

/** Rejects an asynchronous execution. A synchronous run in progress keeps the buffer until its end. */
export function abortExecution(ex: Execution, reason: unknown): void {
  if (ex.finished) return;
  const { reject } = ex;
  ex.finished = true;
  ex.abortResolvers?.(reason);
  if (!ex.running) releaseExecution(ex);
  reject?.(AbortedError === undefined ? reason : new AbortedError(reason));
}

/** Ends a synchronous run. An execution that was aborted meanwhile returns its buffer now. */
export function endSyncRun(ex: Execution): void {
  ex.running = false;
  if (ex.finished) releaseExecution(ex);
}
