import type { DocumentNode, FieldNode, FragmentDefinitionNode, SelectionSetNode } from 'graphql';
import { fragmentsOf } from '../../execution/document.ts';

/**
 * Selections that are visited. Cyclic fragments have no end; other documents that reach this number are
 * refused.
 */
const MAX_VISITS = 50_000;

/**
 * Counts the pairs of fields with the same response name in the same place, up to `maxPairs`; Infinity if the
 * document is too large to count. The validation rule OverlappingFieldsCanBeMerged compares each pair and all
 * fields below it; no other rule takes more than linear time.
 */
export function countOverlappingFields(document: DocumentNode, maxPairs: number): number {
  const fragments = fragmentsOf(document);
  let pairs = 0;
  let visits = 0;

  function countPairs(sets: readonly SelectionSetNode[]): void {
    const fieldsByName = new Map<string, FieldNode[]>();
    const seenFragments = new Set<string>();
    for (const set of sets) collect(set, fieldsByName, seenFragments);
    for (const fields of fieldsByName.values()) {
      pairs += (fields.length * (fields.length - 1)) / 2;
      if (pairs > maxPairs || visits > MAX_VISITS) return;
      const below = fields.flatMap(({ selectionSet }) => selectionSet ?? []);
      if (below.length > 0) countPairs(below);
    }
  }

  function collect(
    set: SelectionSetNode,
    fieldsByName: Map<string, FieldNode[]>,
    seenFragments: Set<string>,
  ): void {
    for (const selection of set.selections) {
      visits += 1;
      if (visits > MAX_VISITS) return;
      if (selection.kind === 'Field') {
        const name = (selection.alias ?? selection.name).value;
        const fields = fieldsByName.get(name);
        if (fields === undefined) fieldsByName.set(name, [selection]);
        else fields.push(selection);
      } else if (selection.kind === 'InlineFragment') {
        collect(selection.selectionSet, fieldsByName, seenFragments);
      } else if (!seenFragments.has(selection.name.value)) {
        seenFragments.add(selection.name.value);
        const fragment = fragments.get(selection.name.value);
        if (fragment !== undefined) collect(fragment.selectionSet, fieldsByName, seenFragments);
      }
    }
  }

  for (const definition of document.definitions) {
    if (definition.kind === 'OperationDefinition' || definition.kind === 'FragmentDefinition') {
      countPairs([definition.selectionSet]);
    }
  }
  // The number of further pairs is unknown, and validation would visit them all.
  return visits > MAX_VISITS && !hasFragmentCycle(fragments) ? Number.POSITIVE_INFINITY : pairs;
}

/**
 * Whether a fragment spreads itself, directly or through other fragments. Validation reports such a document.
 */
function hasFragmentCycle(fragments: ReadonlyMap<string, FragmentDefinitionNode>): boolean {
  const finished = new Set<string>();
  const open = new Set<string>();

  function reachesItself(name: string): boolean {
    if (open.has(name)) return true;
    const fragment = fragments.get(name);
    if (fragment === undefined || finished.has(name)) return false;
    open.add(name);
    const result = spreadsOf(fragment.selectionSet).some(reachesItself);
    open.delete(name);
    finished.add(name);
    return result;
  }

  return [...fragments.keys()].some(reachesItself);
}

function spreadsOf(set: SelectionSetNode): string[] {
  return set.selections.flatMap((selection) => {
    if (selection.kind === 'FragmentSpread') return [selection.name.value];
    return selection.selectionSet === undefined ? [] : spreadsOf(selection.selectionSet);
  });
}
