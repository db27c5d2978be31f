import { HttpError } from '../http/reply/http-error.ts';
import { formatValue } from '../options/format-value.ts';

/** A place in the operations where a file belongs. */
export interface Slot {
  readonly holder: Record<string, unknown>;
  readonly key: string;
}

const MAX_LENGTH = 512;
const MAX_STEPS = 32;
const INDEX = /^(?:0|[1-9]\d{0,9})$/;

/** What stands in a slot until its file comes: not null, so that no second file goes there, and nothing lies below it. */
const TAKEN: object = Object.freeze({});

/**
 * Finds the place a path of the `map` names and takes it. Nothing is ever created on the way: own members and existing
 * items only, and null at the end (attacks: `__proto__`, an index of 4294967294, 100 000 steps, `query` overwritten).
 */
export function takeSlot(operations: unknown, path: string): Slot {
  const steps = path.length > MAX_LENGTH ? [] : path.split('.');
  // In a batch an index leads to the operation; files belong into its variables.
  const below = steps.indexOf('variables');
  if (below !== (Array.isArray(operations) ? 1 : 0) || steps.length < below + 2 || steps.length > MAX_STEPS) {
    throw badPath(
      path,
      Array.isArray(operations) ? 'must be "<index>.variables.<name>"' : 'must be "variables.<name>"',
    );
  }
  let node = operations;
  let holder: unknown;
  for (const step of steps) {
    if (!has(node, step)) throw badPath(path, 'leads nowhere in "operations"');
    holder = node;
    node = (node as Record<string, unknown>)[step];
  }
  const slot = { holder: holder as Record<string, unknown>, key: steps.at(-1) as string };
  if (node === TAKEN) throw badPath(path, 'is given twice');
  if (node !== null) throw badPath(path, 'must lead to null');
  slot.holder[slot.key] = TAKEN;
  return slot;
}

function has(node: unknown, step: string): boolean {
  if (Array.isArray(node)) return INDEX.test(step) && Number(step) < node.length;
  return typeof node === 'object' && node !== null && step !== '__proto__' && Object.hasOwn(node, step);
}

function badPath(path: string, fault: string): HttpError {
  return new HttpError(400, `Multipart field "map": the path ${formatValue(path)} ${fault}`, {
    code: 'BAD_MAP_PATH',
  });
}
