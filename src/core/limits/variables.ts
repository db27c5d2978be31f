import { HttpError } from '../../http/reply.ts';

/** Members of one object, and levels of nesting, that the variables of one request may have. */
const MAX_MEMBERS = 2000;
const MAX_LEVELS = 200;

/** Flat variables with at most this many values are within every limit. */
const FEW_VALUES = 32;

/**
 * Marks the files of requests. JSON has no symbols, so no client can forge the mark. It is a registered
 * symbol, so that files of the CommonJS build are recognised by the ES build.
 */
export const UPLOADED: unique symbol = Symbol.for('espalier.uploaded');

/**
 * Refuses variables that are expensive to coerce. Coercion recurses and quotes whole objects in error
 * messages, so a limit of bytes does not bound its time. The variables of a batch count together; an uploaded
 * file counts as one value.
 *
 * @throws HttpError 400.
 */
export function assertVariableLimits(variables: readonly unknown[], maxValues: number): void {
  if (variables.length === 1 && isFlat(variables[0], maxValues)) return;
  const pending: { value: object; level: number }[] = [{ value: variables, level: 0 }];
  let values = 0;
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value, level } = next;
    const members: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
    values += members.length;
    if (values > maxValues) throw variableLimit(`contain more than ${maxValues} values`);
    if (level > MAX_LEVELS) throw variableLimit(`are nested deeper than ${MAX_LEVELS} levels`);
    if (members !== value && members.length > MAX_MEMBERS) {
      throw variableLimit(`contain an object with more than ${MAX_MEMBERS} members`);
    }
    for (const member of members) {
      if (isListOrRecord(member)) pending.push({ value: member, level: level + 1 });
    }
  }
}

/** Whether the variables are a few values without lists and objects. */
function isFlat(variables: unknown, maxValues: number): boolean {
  let left = Math.min(FEW_VALUES, maxValues);
  for (const name in variables as Record<string, unknown>) {
    const value = (variables as Record<string, unknown>)[name];
    left -= 1;
    if (left <= 0 || (typeof value === 'object' && value !== null)) return false;
  }
  return true;
}

const variableLimit = (message: string): HttpError =>
  new HttpError(400, `The variables ${message}`, { code: 'LIMIT_VARIABLES' });

function isListOrRecord(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return true;
  if (Object.hasOwn(value, UPLOADED)) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
