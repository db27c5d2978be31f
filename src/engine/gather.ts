import type { Execution } from './execution.ts';
import type { Slot } from './slots.ts';

const NULL = Buffer.from('null');
const OPEN = 123;
const CLOSE = 125;
const COMMA = 44;
/** Up to so many bytes a loop beats a native copy. */
const SHORT = 48;

interface Target {
  readonly from: Buffer;
  readonly bytes: Buffer;
  at: number;
  /** The brace of an object whose first key was left out is written: the next key comes without its comma. */
  braced: boolean;
}

/** The most bytes that an execution whose parts lie scattered over its buffer takes behind `head`; asked before `gather`. */
export function gatheredSize(root: Slot, head: Buffer): number {
  writeLateValues(root);
  return head.length + sizeOf(root) + 1;
}

/** Puts its text together in `bytes`, behind `head`: what has been filled. */
export function gather(ex: Execution, root: Slot, head: Buffer, bytes: Buffer): Buffer {
  head.copy(bytes);
  const target: Target = { from: ex.buf, bytes, at: head.length, braced: false };
  put(target, root);
  bytes[target.at++] = CLOSE;
  return bytes.subarray(0, target.at);
}

function put(target: Target, slot: Slot): void {
  if (slot.isNull) target.at += NULL.copy(target.bytes, target.at);
  else if (slot.late !== undefined) target.at += target.bytes.write(slot.late.text, target.at);
  else {
    for (const child of slot.children ?? []) {
      const end = child.beforeEnd - child.omitted;
      copy(target, child.before, end);
      if (child.omitted === 0) put(target, child);
      else if (target.from[end] === OPEN) {
        target.bytes[target.at++] = OPEN;
        target.braced = true;
      }
    }
    copy(target, slot.start, slot.end);
  }
}

function copy(target: Target, start: number, end: number): void {
  if (start === end) return;
  const from = target.braced && target.from[start] === COMMA ? start + 1 : start;
  target.braced = false;
  if (end - from > SHORT) {
    target.at += target.from.copy(target.bytes, target.at, from, end);
    return;
  }
  const { from: source, bytes } = target;
  let { at } = target;
  for (let i = from; i < end; i++) bytes[at++] = source[i] as number;
  target.at = at;
}

/** At most so many bytes. */
function sizeOf(slot: Slot): number {
  if (slot.isNull) return NULL.length;
  if (slot.late !== undefined) return Buffer.byteLength(slot.late.text);
  let size = slot.end - slot.start;
  for (const child of slot.children ?? []) size += child.beforeEnd - child.before + sizeOf(child);
  return size;
}

/** Values that could not be written are tried again here, in document order: the first one throws, as in a stringify of it all. */
function writeLateValues(slot: Slot): void {
  if (slot.isNull) return;
  if (slot.late !== undefined) slot.late.text = JSON.stringify(slot.late.value) ?? 'null';
  for (const child of slot.children ?? []) writeLateValues(child);
}
