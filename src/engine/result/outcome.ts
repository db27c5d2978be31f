import type { ExecutionOutcome } from '../../execution/types.ts';
import { LONG_RESPONSE, type PooledBuffer, RESPONSE_START, useBuffer, writeByte } from '../json/buffer.ts';
import { type Execution, NO_BUFFER, type Pending, releaseExecution } from '../run/execution.ts';
import { copiedOutcome } from '../run/repeated-outcome.ts';
import { MaskedOutcome, maskErrors, toGraphQLErrors } from './graphql-errors.ts';
import { concatSegments, maxConcatSize } from './segments.ts';

const CLOSE = 125;
const NO_ERRORS: readonly never[] = Object.freeze([]);

/**
 * Finishes an execution. Without `root` the text of `data` is contiguous in the working buffer; with `root` the segments have
 * to be joined. The working buffer returns to the pool now, or later together with a long response.
 */
export function toOutcome(ex: Execution, root: Pending | undefined): ExecutionOutcome {
  markFinished(ex);
  try {
    return ex.errors === undefined ? dataOutcome(ex, root) : partialOutcome(ex, root, bodyAfter);
  } finally {
    releaseExecution(ex);
  }
}

/** Finishes an execution whose error has propagated to `data`. */
export function toNullOutcome(ex: Execution): ExecutionOutcome {
  markFinished(ex);
  try {
    return partialOutcome(ex, undefined, nullBodyAfter);
  } finally {
    releaseExecution(ex);
  }
}

function markFinished(ex: Execution): void {
  ex.finished = true;
  ex.running = false;
  ex.abortResolvers?.();
}

function dataOutcome(ex: Execution, root: Pending | undefined): ExecutionOutcome {
  if (root !== undefined) return concatenatedOutcome(ex, root);
  writeByte(ex, CLOSE);
  const { buffer, pos } = ex;
  if (pos < LONG_RESPONSE || isMostlyEmpty(buffer, pos)) return copiedResult(ex, pos);
  useBuffer(ex, NO_BUFFER);
  return bufferOutcome(ex, buffer, pos);
}

function concatenatedOutcome(ex: Execution, root: Pending): ExecutionOutcome {
  const { pool } = ex;
  const size = maxConcatSize(root, RESPONSE_START);
  if (size < LONG_RESPONSE) {
    const body = concatSegments(ex, root, RESPONSE_START, Buffer.allocUnsafe(size));
    return { kind: 'data', body, errors: NO_ERRORS };
  }
  const buffer = pool.take(size);
  const { length } = concatSegments(ex, root, RESPONSE_START, buffer.buf);
  if (!isMostlyEmpty(buffer, length)) return bufferOutcome(ex, buffer, length);
  const copied = copiedOutcome(buffer.buf, length);
  pool.give(buffer);
  return copied;
}

/** Whether the response would keep more unused than used memory. */
const isMostlyEmpty = ({ buf }: PooledBuffer, length: number): boolean => length * 2 < buf.length;

function copiedResult({ program, buffer }: Execution, length: number): ExecutionOutcome {
  const { repeated } = program;
  return repeated === undefined ? copiedOutcome(buffer.buf, length) : repeated.outcomeOf(buffer, length);
}

/** A long response that keeps its buffer until `release` is called. */
function bufferOutcome({ pool }: Execution, buffer: PooledBuffer, length: number): ExecutionOutcome {
  const release = once(() => pool.give(buffer));
  return { kind: 'data', body: buffer.buf.subarray(0, length), errors: NO_ERRORS, release };
}

/** Guards against a double release, after which two executions would share one buffer. */
function once(run: () => void): () => void {
  let called = false;
  return () => {
    if (!called) run();
    called = true;
  };
}

/**
 * Returns the body with the JSON text of the errors. The execution is a parameter, because a closure over it would
 * be created for executions without errors too.
 */
type BodyOf = (errorsJson: string, ex: Execution, root: Pending | undefined) => Buffer;

function partialOutcome(ex: Execution, root: Pending | undefined, bodyOf: BodyOf): ExecutionOutcome {
  const errors = ex.errors ?? [];
  const masked = maskErrors(errors, ex);
  if (masked !== undefined) return new MaskedOutcome(bodyOf(JSON.stringify(masked), ex, root), errors);
  const graphqlErrors = toGraphQLErrors(errors);
  const formatted = ex.program.settings.formatErrors(graphqlErrors, ex.inputs.origin);
  const body = bodyOf(JSON.stringify(formatted), ex, root);
  return { kind: 'partial', body, errors: graphqlErrors };
}

function nullBodyAfter(errorsJson: string): Buffer {
  return Buffer.from(`{"errors":${errorsJson},"data":null}`);
}

function bodyAfter(errorsJson: string, ex: Execution, root: Pending | undefined): Buffer {
  if (root?.isNull === true) return nullBodyAfter(errorsJson);
  const head = Buffer.from(`{"errors":${errorsJson},"data":`);
  if (root !== undefined) {
    return concatSegments(ex, root, head, Buffer.allocUnsafe(maxConcatSize(root, head)));
  }
  const body = Buffer.allocUnsafe(head.length + ex.pos - RESPONSE_START.length + 1);
  head.copy(body);
  ex.buf.copy(body, head.length, RESPONSE_START.length, ex.pos);
  body[body.length - 1] = CLOSE;
  return body;
}
