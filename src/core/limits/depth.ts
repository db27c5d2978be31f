import type { TypeNode, ValueNode } from 'graphql';

/** Returns the levels of lists and objects in a literal; stops counting above `maxLevels`. */
export function depthOfValue(value: ValueNode, maxLevels: number): number {
  if (value.kind !== 'ListValue' && value.kind !== 'ObjectValue') return 0;
  if (maxLevels <= 0) return 1;
  const parts = value.kind === 'ListValue' ? value.values : value.fields.map((field) => field.value);
  let deepest = 0;
  for (const part of parts) deepest = Math.max(deepest, depthOfValue(part, maxLevels - 1));
  return deepest + 1;
}

/** Returns the levels of lists in a type reference. */
export function depthOfType(type: TypeNode): number {
  let levels = 0;
  for (let inner = type; inner.kind !== 'NamedType'; inner = inner.type) levels += 1;
  return levels;
}
