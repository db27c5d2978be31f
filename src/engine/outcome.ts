import type { GraphQLError } from 'graphql';
import * as graphql from 'graphql';
import type { ExecutionOutcome } from '../execution/types.ts';
import { type Fault, toGraphQLErrors } from './errors.ts';
import type { Execution } from './execution.ts';
import { gather, gatheredSize } from './gather.ts';
import { isMasked, maskedErrors } from './masked.ts';
import { LONG_ANSWER, OPENING, type Page, pageOf } from './pool.ts';
import type { Slot } from './slots.ts';
import { hold, writeByte } from './writer.ts';

const CLOSE = 125;
const DATA_NULL = 'null';
const NONE: readonly never[] = Object.freeze([]);

/** The answer of an execution, in bytes of its own; the working buffer goes back to the pool, now or with the answer's. */
export function conclude(ex: Execution, root: Slot | undefined, isNull: boolean): ExecutionOutcome {
  ex.finished = true;
  ex.busy = false;
  ex.abortResolvers?.();
  try {
    return ex.faults === undefined ? dataOnly(ex, root) : partial(ex, root, isNull);
  } finally {
    release(ex);
  }
}

function dataOnly(ex: Execution, root: Slot | undefined): ExecutionOutcome {
  if (root !== undefined) return gathered(ex, root);
  writeByte(ex, CLOSE);
  const { buf, page, pos } = ex;
  if (pos < LONG_ANSWER || isWasteful(page, pos)) return short(buf, pos);
  hold(ex, NO_PAGE);
  return long(ex, page, pos);
}

function gathered(ex: Execution, root: Slot): ExecutionOutcome {
  const { pool } = ex;
  const size = gatheredSize(root, OPENING);
  if (size < LONG_ANSWER) {
    return { kind: 'data', body: gather(ex, root, OPENING, Buffer.allocUnsafe(size)), errors: NONE };
  }
  const page = pool.take(size);
  const { length } = gather(ex, root, OPENING, page.buf);
  if (!isWasteful(page, length)) return long(ex, page, length);
  const copied = short(page.buf, length);
  pool.give(page);
  return copied;
}

/** Half of the buffer would be kept for nothing. */
const isWasteful = ({ buf }: Page, length: number): boolean => length * 2 < buf.length;

function short(buf: Buffer, length: number): ExecutionOutcome {
  const body = Buffer.allocUnsafe(length);
  buf.copy(body, 0, 0, length);
  return { kind: 'data', body, errors: NONE };
}

/** An answer that takes its buffer along. */
function long({ pool }: Execution, page: Page, length: number): ExecutionOutcome {
  const release = once(() => pool.give(page));
  return { kind: 'data', body: page.buf.subarray(0, length), errors: NONE, release };
}

/** A page that came back twice would be given to two. */
function once(run: () => void): () => void {
  let over = false;
  return () => {
    if (!over) run();
    over = true;
  };
}

function partial(ex: Execution, root: Slot | undefined, isNull: boolean): ExecutionOutcome {
  const faults = ex.faults ?? [];
  const { maskedMessage, formatErrors } = ex.program.settings;
  if (maskedMessage !== undefined && faults.every(isMasked)) {
    return new MaskedOutcome(bodyBehind(ex, root, isNull, maskedErrors(faults, maskedMessage)), faults);
  }
  const errors = toGraphQLErrors(faults);
  return {
    kind: 'partial',
    body: bodyBehind(ex, root, isNull, JSON.stringify(formatErrors(errors))),
    errors,
  };
}

/** An outcome whose errors are told without having been made. */
class MaskedOutcome implements ExecutionOutcome {
  readonly kind = 'partial';
  readonly body: Buffer;
  readonly noExtensions = true;
  readonly #faults: readonly Fault[];
  #errors: readonly GraphQLError[] | undefined;

  constructor(body: Buffer, faults: readonly Fault[]) {
    this.body = body;
    this.#faults = faults;
  }

  get errors(): readonly GraphQLError[] {
    this.#errors ??= toGraphQLErrors(this.#faults);
    return this.#errors;
  }
}

function bodyBehind(ex: Execution, root: Slot | undefined, isNull: boolean, errors: string): Buffer {
  const head = Buffer.from(`{"errors":${errors},"data":${isNull ? `${DATA_NULL}}` : ''}`);
  if (isNull) return head;
  if (root !== undefined) return gather(ex, root, head, Buffer.allocUnsafe(gatheredSize(root, head)));
  const body = Buffer.allocUnsafe(head.length + ex.pos - OPENING.length + 1);
  head.copy(body);
  ex.buf.copy(body, head.length, OPENING.length, ex.pos);
  body[body.length - 1] = CLOSE;
  return body;
}

/** What graphql 17 rejects with; 16 knows no signal. */
const { AbortedGraphQLExecutionError: Aborted } = graphql as {
  AbortedGraphQLExecutionError?: new (reason: unknown) => Error;
};

const NO_PAGE: Page = pageOf(Buffer.alloc(0));

/** Orphaned promises may live on: they find neither the buffer nor anything of the user's. */
function release(ex: Execution): void {
  ex.deaf?.();
  ex.deaf = undefined;
  ex.program.expected = ex.pos;
  if (ex.page !== NO_PAGE) ex.pool.give(ex.page);
  hold(ex, NO_PAGE);
  ex.parts = [];
  ex.faults = undefined;
  ex.nulled = undefined;
  ex.answer = undefined;
  ex.fail = undefined;
}

/** Ends an asynchronous execution without an answer. A stretch that is running keeps its buffer until its end. */
export function abandon(ex: Execution, reason: unknown): void {
  if (ex.finished) return;
  const { fail } = ex;
  ex.finished = true;
  ex.abortResolvers?.(reason);
  if (!ex.busy) release(ex);
  fail?.(Aborted === undefined ? reason : new Aborted(reason));
}

/** A stretch has ended: what was abandoned meanwhile gives its buffer back now. */
export function endStretch(ex: Execution): void {
  ex.busy = false;
  if (ex.finished) release(ex);
}

/** Ends an asynchronous execution. */
export function finish(ex: Execution, root: Slot): void {
  if (ex.finished) return;
  const { answer, fail } = ex;
  try {
    answer?.(conclude(ex, root, root.isNull));
  } catch (error) {
    fail?.(error);
  }
  // A dead graph that has grown old keeps the next ones alive: half of the CPU went into garbage collection.
  root.proceed = undefined;
  root.children = undefined;
}
