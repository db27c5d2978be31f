import type { TypeNode, ValueNode } from 'graphql';

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

/** Values, members of one object and levels that the variables of one request may have. */
const MOST_MEMBERS = 5000;
const MOST_LEVELS = 200;

/**
 * Why a parsed JSON value is too much to be coerced, or undefined. Coercing recurses and quotes whole objects in its
 * messages, so size in bytes is no bound for its time. What is no plain object or list (an upload) counts as one value.
 */
export function excessOf(root: unknown, mostValues: number): string | undefined {
  const pending: { value: object; level: number }[] = [];
  let values = 0;
  const visit = (value: unknown, level: number): void => {
    values += 1;
    if (typeof value === 'object' && value !== null && isPlain(value)) pending.push({ value, level });
  };
  visit(root, 1);
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value, level } = next;
    if (level > MOST_LEVELS) return `The variables are nested deeper than ${MOST_LEVELS} levels`;
    const members = Array.isArray(value) ? value : Object.values(value);
    if (members !== value && members.length > MOST_MEMBERS) {
      return `An object in the variables has more than ${MOST_MEMBERS} members`;
    }
    if (values + members.length > mostValues) return `The variables hold more than ${mostValues} values`;
    for (const member of members) visit(member, level + 1);
  }
  return undefined;
}

function isPlain(value: object): boolean {
  if (Array.isArray(value)) return true;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
