import { GraphQLError, type GraphQLFormattedError, locatedError } from 'graphql';
import { noteThrown } from '../execution/graphql-error.ts';
import type { ExecutionOutcome } from '../execution/types.ts';
import {
  type Execution,
  type FieldError,
  keysOf,
  NO_BUFFER,
  type Pending,
  releaseExecution,
} from './execution.ts';
import { LONG_RESPONSE, type PooledBuffer, RESPONSE_START, useBuffer, writeByte } from './json.ts';

const CLOSE = 125;
/** Bytes up to which an operation keeps its last result. */
const SHORT_EVENT = 2048;
const NO_GRAPHQL_ERRORS: readonly never[] = Object.freeze([]);

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
  if (pos < SHORT_EVENT && ex.program.operation.operation === 'subscription') return eventOutcome(ex);
  if (pos < LONG_RESPONSE || isMostlyEmpty(buffer, pos)) return copiedOutcome(buffer.buf, pos);
  useBuffer(ex, NO_BUFFER);
  return bufferOutcome(ex, buffer, pos);
}

/**
 * The result of an event. Clients that subscribe to the same often have equal results: they share the bytes, which then
 * take memory once and are framed once.
 */
function eventOutcome({ program, buffer: { buf }, pos }: Execution): ExecutionOutcome {
  const last = program.lastEvent;
  if (last?.length === pos && buf.compare(last, 0, pos, 0, pos) === 0) {
    return { kind: 'data', body: last, errors: NO_GRAPHQL_ERRORS };
  }
  const outcome = copiedOutcome(buf, pos);
  program.lastEvent = outcome.body as Buffer;
  return outcome;
}

function concatenatedOutcome(ex: Execution, root: Pending): ExecutionOutcome {
  const { pool } = ex;
  const size = maxConcatSize(root, RESPONSE_START);
  if (size < LONG_RESPONSE) {
    const body = concatSegments(ex, root, RESPONSE_START, Buffer.allocUnsafe(size));
    return { kind: 'data', body, errors: NO_GRAPHQL_ERRORS };
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
  return { kind: 'data', body, errors: NO_GRAPHQL_ERRORS };
}

/** A long response that keeps its buffer until `release` is called. */
function bufferOutcome({ pool }: Execution, buffer: PooledBuffer, length: number): ExecutionOutcome {
  const release = once(() => pool.give(buffer));
  return { kind: 'data', body: buffer.buf.subarray(0, length), errors: NO_GRAPHQL_ERRORS, release };
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

/** Converts the errors of an execution, in order. */
function toGraphQLErrors(errors: readonly FieldError[]): GraphQLError[] {
  // Each GraphQLError shows the stack of its original error, and capturing another stack would be most of the
  // cost.
  const limit = Error.stackTraceLimit;
  Reflect.set(Error, 'stackTraceLimit', 0);
  try {
    return errors.map(toGraphQLError);
  } finally {
    Reflect.set(Error, 'stackTraceLimit', limit);
  }
}

/** The parts of an execution that formatting its errors needs. */
type ErrorScope = Pick<Execution, 'program' | 'inputs'>;

/** Masks, formats and reports the errors of one part of a response, as JSON. */
export function textOfFieldErrors(errors: readonly FieldError[], scope: ErrorScope): string {
  const { settings } = scope.program;
  const masked = maskErrors(errors, scope);
  return JSON.stringify(masked ?? settings.formatErrors(toGraphQLErrors(errors), scope.inputs.origin));
}

/** Formats errors without creating GraphQLErrors; undefined if one of them needs it. */
function maskErrors(
  errors: readonly FieldError[],
  { program, inputs }: ErrorScope,
): readonly GraphQLFormattedError[] | undefined {
  const { maskError } = program.settings;
  if (maskError === undefined || !errors.every(isMaskable)) return undefined;
  return errors.map(({ reason, field, path }) =>
    maskError(reason as Error, { locations: field?.locations(), path: keysOf(path) }, inputs.origin),
  );
}

function isMaskable({ reason, field }: FieldError): boolean {
  try {
    return field !== undefined && isPlainError(reason) && hasPlainText(reason);
  } catch {
    return false;
  }
}

function hasPlainText({ name, message }: Error): boolean {
  return name !== 'GraphQLError' && typeof message === 'string';
}

/** An outcome whose errors were masked by `maskError`. */
class MaskedOutcome implements ExecutionOutcome {
  readonly kind = 'partial';
  readonly isMasked = true;
  readonly body: Buffer;
  readonly #errors: readonly FieldError[];
  #graphqlErrors: readonly GraphQLError[] | undefined;

  constructor(body: Buffer, errors: readonly FieldError[]) {
    this.body = body;
    this.#errors = errors;
  }

  get errors(): readonly GraphQLError[] {
    this.#graphqlErrors ??= toGraphQLErrors(this.#errors);
    return this.#graphqlErrors;
  }
}

function toGraphQLError(error: FieldError): GraphQLError {
  try {
    return convert(error);
  } catch (cause) {
    // A getter of the reason has thrown. The other fields and errors of the response remain.
    const originalError = new Error('A resolver threw an error whose properties cannot be read', { cause });
    return locatedError(originalError, error.field?.nodes, keysOf(error.path));
  }
}

/** Creates the GraphQLError that graphql-js would create. */
function convert({ reason, field, path }: FieldError): GraphQLError {
  noteThrown(reason);
  if (field === undefined) return reason instanceof GraphQLError ? reason : locatedError(reason, undefined);
  return locatedError(reason, field.nodes, keysOf(path));
}

/** Properties that `locatedError` copies from an error into the response. */
const COPIED_PROPERTIES = ['path', 'nodes', 'source', 'positions', 'extensions'];

/** An Error without any property that `locatedError` would copy. */
function isPlainError(reason: unknown): reason is Error {
  return reason instanceof Error && !COPIED_PROPERTIES.some((name) => name in reason);
}

const NULL_BYTES = Buffer.from('null');
const NO_HEAD = Buffer.alloc(0);
const CLOSE_BRACE = 125;
/** Up to this many bytes a loop is faster than a native copy. */
const SHORT = 48;

interface Target {
  readonly from: Buffer;
  readonly bytes: Buffer;
  at: number;
}

/** The maximum number of bytes that `concatSegments` needs, with `head`. */
function maxConcatSize(root: Pending, head: Buffer): number {
  return head.length + sizeOf(root) + 1;
}

/** Joins the segments of an asynchronous execution in `bytes`, after `head`. Returns the part that was filled. */
function concatSegments(ex: Execution, root: Pending, head: Buffer, bytes: Buffer): Buffer {
  head.copy(bytes);
  const target: Target = { from: ex.buf, bytes, at: head.length };
  copyPosition(target, root);
  bytes[target.at++] = CLOSE_BRACE;
  return bytes.subarray(0, target.at);
}

function copyPosition(target: Target, pending: Pending): void {
  if (pending.isNull) target.at += NULL_BYTES.copy(target.bytes, target.at);
  else {
    for (const child of pending.children ?? []) {
      copySegment(target, child.precedingStart, child.precedingEnd);
      copyPosition(target, child);
    }
    copySegment(target, pending.start, pending.end);
  }
}

function copySegment(target: Target, start: number, end: number): void {
  const { from, bytes } = target;
  if (end - start > SHORT) {
    target.at += from.copy(bytes, target.at, start, end);
    return;
  }
  let { at } = target;
  for (let i = start; i < end; i++) bytes[at++] = from[i] as number;
  target.at = at;
}

/** An upper bound of the bytes of a position. */
function sizeOf(pending: Pending): number {
  if (pending.isNull) return NULL_BYTES.length;
  let size = pending.end - pending.start;
  for (const child of pending.children ?? []) {
    size += child.precedingEnd - child.precedingStart + sizeOf(child);
  }
  return size;
}

/** Returns the data of an execution as text, without `{"data":` around it. `root` is that of `toOutcome`. */
export function dataText(ex: Execution, root: Pending | undefined): string {
  if (root === undefined) return ex.buf.toString('utf8', RESPONSE_START.length, ex.pos);
  const bytes = concatSegments(ex, root, NO_HEAD, Buffer.allocUnsafe(maxConcatSize(root, NO_HEAD)));
  return bytes.toString('utf8', 0, bytes.length - 1);
}
