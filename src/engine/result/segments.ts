import { RESPONSE_START } from '../json/buffer.ts';
import type { Execution, Pending } from '../run/execution.ts';

const NULL = Buffer.from('null');
const NO_HEAD = Buffer.alloc(0);
const OPEN = 123;
const CLOSE = 125;
const COMMA = 44;
/** Up to this many bytes a loop is faster than a native copy. */
const SHORT = 48;

interface Target {
  readonly from: Buffer;
  readonly bytes: Buffer;
  at: number;
  /** The first key of the object was removed and its brace is written: the next key is written without its comma. */
  braceWritten: boolean;
}

/** The maximum number of bytes that `concatSegments` needs, with `head`. Must be called before `concatSegments`. */
export function maxConcatSize(root: Pending, head: Buffer): number {
  writeDeferredJson(root);
  return head.length + sizeOf(root) + 1;
}

/** Joins the segments of an asynchronous execution in `bytes`, after `head`. Returns the part that was filled. */
export function concatSegments(ex: Execution, root: Pending, head: Buffer, bytes: Buffer): Buffer {
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

/** Returns the data of an execution as text, without `{"data":` around it. `root` is that of `toOutcome`. */
export function dataText(ex: Execution, root: Pending | undefined): string {
  if (root === undefined) return ex.buf.toString('utf8', RESPONSE_START.length, ex.pos);
  const bytes = concatSegments(ex, root, NO_HEAD, Buffer.allocUnsafe(maxConcatSize(root, NO_HEAD)));
  return bytes.toString('utf8', 0, bytes.length - 1);
}
