import type { ExecutionOutcome } from '../../execution/types.ts';
import { LONG_RESPONSE, type PooledBuffer, RESPONSE_START, useBuffer, writeByte } from '../json/buffer.ts';
import { type Execution, NO_BUFFER, type Pending, releaseExecution } from '../run/execution.ts';
import { MaskedOutcome, maskErrors, toGraphQLErrors } from './graphql-errors.ts';

const NULL = Buffer.from('null');
const OPEN = 123;
const CLOSE = 125;
const COMMA = 44;
/** Up to this many bytes a loop is faster than a native copy. */
const SHORT = 48;
const NO_ERRORS: readonly never[] = Object.freeze([]);

/**
 * Finishes an execution. Without `root` the text of `data` is contiguous in the working buffer; with `root` the segments have
 * to be joined. The working buffer returns to the pool now, or later together with a long response.
 */
export function toOutcome(ex: Execution, root: Pending | undefined): ExecutionOutcome {
  markFinished(ex);
  try {
    if (ex.errors === undefined) return dataOutcome(ex, root);
    return partialOutcome(ex, (errors) => bodyAfter(errors, ex, root));
  } finally {
    releaseExecution(ex);
  }
}

/** Finishes an execution whose error has propagated to `data`. */
export function toNullOutcome(ex: Execution): ExecutionOutcome {
  markFinished(ex);
  try {
    return partialOutcome(ex, nullBodyAfter);
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
  const { buf, buffer, pos } = ex;
  if (pos < LONG_RESPONSE || isMostlyEmpty(buffer, pos)) return copiedOutcome(buf, pos);
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

function copiedOutcome(buf: Buffer, length: number): ExecutionOutcome {
  const body = Buffer.allocUnsafe(length);
  buf.copy(body, 0, 0, length);
  return { kind: 'data', body, errors: NO_ERRORS };
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

function partialOutcome(ex: Execution, bodyOf: (errorsJson: string) => Buffer): ExecutionOutcome {
  const errors = ex.errors ?? [];
  const masked = maskErrors(errors, ex);
  if (masked !== undefined) return new MaskedOutcome(bodyOf(JSON.stringify(masked)), errors);
  const graphqlErrors = toGraphQLErrors(errors);
  const formatted = ex.program.settings.formatErrors(graphqlErrors, ex.inputs.origin);
  const body = bodyOf(JSON.stringify(formatted));
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

interface Target {
  readonly from: Buffer;
  readonly bytes: Buffer;
  at: number;
  /** The first key of the object was removed and its brace is written: the next key is written without its comma. */
  braceWritten: boolean;
}

/** The maximum number of bytes that `concatSegments` needs, with `head`. Must be called before `concatSegments`. */
function maxConcatSize(root: Pending, head: Buffer): number {
  writeDeferredJson(root);
  return head.length + sizeOf(root) + 1;
}

/** Joins the segments of an asynchronous execution in `bytes`, after `head`. Returns the part that was filled. */
function concatSegments(ex: Execution, root: Pending, head: Buffer, bytes: Buffer): Buffer {
  head.copy(bytes);
  const target: Target = { from: ex.buf, bytes, at: head.length, braceWritten: false };
  copyPosition(target, root);
  bytes[target.at++] = CLOSE;
  return bytes.subarray(0, target.at);
}

function copyPosition(target: Target, pending: Pending): void {
  if (pending.isNull) target.at += NULL.copy(target.bytes, target.at);
  else if (pending.deferredJson !== undefined) {
    target.at += target.bytes.write(pending.deferredJson.json, target.at);
  } else {
    for (const child of pending.children ?? []) {
      const end = child.precedingEnd - child.omittedKeyLength;
      copySegment(target, child.precedingStart, end);
      if (child.omittedKeyLength === 0) copyPosition(target, child);
      else if (target.from[end] === OPEN) {
        target.bytes[target.at++] = OPEN;
        target.braceWritten = true;
      }
    }
    copySegment(target, pending.start, pending.end);
  }
}

function copySegment(target: Target, start: number, end: number): void {
  if (start === end) return;
  const from = target.braceWritten && target.from[start] === COMMA ? start + 1 : start;
  target.braceWritten = false;
  if (end - from > SHORT) {
    target.at += target.from.copy(target.bytes, target.at, from, end);
    return;
  }
  const { from: source, bytes } = target;
  let { at } = target;
  for (let i = from; i < end; i++) bytes[at++] = source[i] as number;
  target.at = at;
}

/** An upper bound of the bytes of a position. */
function sizeOf(pending: Pending): number {
  if (pending.isNull) return NULL.length;
  if (pending.deferredJson !== undefined) return Buffer.byteLength(pending.deferredJson.json);
  let size = pending.end - pending.start;
  for (const child of pending.children ?? []) {
    size += child.precedingEnd - child.precedingStart + sizeOf(child);
  }
  return size;
}

/**
 * Stringifies the values that failed before, in document order. The first failure throws, as JSON.stringify of the whole
 * response would.
 */
function writeDeferredJson(pending: Pending): void {
  if (pending.isNull) return;
  const { deferredJson } = pending;
  if (deferredJson !== undefined) deferredJson.json = JSON.stringify(deferredJson.value) ?? 'null';
  for (const child of pending.children ?? []) writeDeferredJson(child);
}
