import type { DocumentNode, FieldNode, FragmentDefinitionNode, SelectionSetNode } from 'graphql';

/** Selections looked at, at most: a circle of fragments has no end, and validation will report it. */
const MOST_VISITS = 50_000;

/**
 * How many pairs of fields an operation has that answer to the same name in the same place, counted up to `most`.
 * Validation compares each pair with all that lies below it, which makes it the one rule whose time is not linear.
 */
export function countMerges(document: DocumentNode, most: number): number {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions) {
    if (definition.kind === 'FragmentDefinition') fragments.set(definition.name.value, definition);
  }
  let pairs = 0;
  let visits = 0;

  function merge(sets: readonly SelectionSetNode[]): void {
    const groups = new Map<string, FieldNode[]>();
    const seen = new Set<string>();
    for (const set of sets) collect(set, groups, seen);
    for (const fields of groups.values()) {
      pairs += (fields.length * (fields.length - 1)) / 2;
      if (pairs > most || visits > MOST_VISITS) return;
      const below = fields.flatMap(({ selectionSet }) => selectionSet ?? []);
      if (below.length > 0) merge(below);
    }
  }

  function collect(set: SelectionSetNode, groups: Map<string, FieldNode[]>, seen: Set<string>): void {
    for (const selection of set.selections) {
      visits += 1;
      if (visits > MOST_VISITS) return;
      if (selection.kind === 'Field') {
        const name = (selection.alias ?? selection.name).value;
        const group = groups.get(name);
        if (group === undefined) groups.set(name, [selection]);
        else group.push(selection);
      } else if (selection.kind === 'InlineFragment') collect(selection.selectionSet, groups, seen);
      else if (!seen.has(selection.name.value)) {
        seen.add(selection.name.value);
        const fragment = fragments.get(selection.name.value);
        if (fragment !== undefined) collect(fragment.selectionSet, groups, seen);
      }
    }
  }

  for (const definition of document.definitions) {
    if (definition.kind === 'OperationDefinition' || definition.kind === 'FragmentDefinition') {
      merge([definition.selectionSet]);
    }
  }
  return pairs;
}
