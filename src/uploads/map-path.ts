import { HttpError } from '../http/reply/http-error.ts';
import { formatValue } from '../options/format-value.ts';

/** A member of the operations that a file is assigned to. */
export interface MapTarget {
  readonly holder: Record<string, unknown>;
  readonly key: string;
}

const MAX_LENGTH = 512;
const MAX_STEPS = 32;
const INDEX = /^(?:0|[1-9]\d{0,9})$/;

/** The value of a reserved target until its file arrives. It is not null, so no second path can lead to it or below it. */
const RESERVED: object = Object.freeze({});

/**
 * Resolves a path of the `map` and reserves its target. Creates no members: each step must be an existing item or own property,
 * and the target must be null (attacks: `__proto__`, an index of 4294967294, 100 000 steps, overwriting `query`).
 *
 * @throws HttpError 400.
 */
export function reservePath(operations: unknown, path: string): MapTarget {
  const steps = path.length > MAX_LENGTH ? [] : path.split('.');
  // In a batch the path begins with the index of the operation; files may only replace its variables.
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
    if (!has(node, step)) throw badPath(path, 'does not exist in "operations"');
    holder = node;
    node = (node as Record<string, unknown>)[step];
  }
  const target = { holder: holder as Record<string, unknown>, key: steps.at(-1) as string };
  if (node === RESERVED) throw badPath(path, 'is listed twice');
  if (node !== null) throw badPath(path, 'must point to null in "operations"');
  target.holder[target.key] = RESERVED;
  return target;
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
