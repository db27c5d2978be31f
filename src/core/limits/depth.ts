import type { TypeNode, ValueNode } from 'graphql';
import { HttpError } from '../../http/reply/http-error.ts';

/** Levels of lists and objects in a literal; stops counting above `most`. */
export function nestingOfValue(value: ValueNode, most: number): number {
  if (value.kind !== 'ListValue' && value.kind !== 'ObjectValue') return 0;
  if (most <= 0) return 1;
  const parts = value.kind === 'ListValue' ? value.values : value.fields.map((field) => field.value);
  let deepest = 0;
  for (const part of parts) deepest = Math.max(deepest, nestingOfValue(part, most - 1));
  return deepest + 1;
}

/** Levels of lists in a type reference. */
export function nestingOfType(type: TypeNode): number {
  let levels = 0;
  for (let inner = type; inner.kind !== 'NamedType'; inner = inner.type) levels += 1;
  return levels;
}

/** Members of one object, and levels, that the variables of one request may have. */
const MOST_MEMBERS = 2000;
const MOST_LEVELS = 200;

/**
 * Refuses variables that are too much to be coerced: coercing recurses, and quotes whole objects in its messages, so that
 * bytes are no bound for its time. The variables of a batch count together; an upload counts as one value.
 *
 * @throws HttpError 400.
 */
export function requireFew(variables: readonly unknown[], mostValues: number): void {
  if (variables.length === 1 && isFlat(variables[0], mostValues)) return;
  const pending: { value: object; level: number }[] = [{ value: variables, level: 0 }];
  let values = 0;
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value, level } = next;
    const members: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
    values += members.length;
    if (values > mostValues) throw excess(`hold more than ${mostValues} values`);
    if (level > MOST_LEVELS) throw excess(`are nested deeper than ${MOST_LEVELS} levels`);
    if (members !== value && members.length > MOST_MEMBERS) {
      throw excess(`have an object of more than ${MOST_MEMBERS} members`);
    }
    for (const member of members) {
      if (isPlain(member)) pending.push({ value: member, level: level + 1 });
    }
  }
}

/** Enough values for most requests, and far below every bound. */
const FEW = 32;

/** Whether these are a few values and no more: there is nothing to walk through. */
function isFlat(variables: unknown, mostValues: number): boolean {
  let left = Math.min(FEW, mostValues);
  for (const name in variables as Record<string, unknown>) {
    const value = (variables as Record<string, unknown>)[name];
    left -= 1;
    if (left <= 0 || (typeof value === 'object' && value !== null)) return false;
  }
  return true;
}

const excess = (what: string): HttpError =>
  new HttpError(400, `The variables ${what}`, { code: 'LIMIT_VARIABLES' });

function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return true;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
