import type { FragmentDefinitionNode, SelectionSetNode } from 'graphql';

/** Whether a fragment spreads itself, directly or through other fragments. Validation reports such a document. */
export function hasFragmentCycle(fragments: ReadonlyMap<string, FragmentDefinitionNode>): boolean {
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
