import { type DocumentNode, type FragmentDefinitionNode, Kind } from 'graphql';

/** Returns the fragments of a document by name. A Map, because the names of clients may be those of inherited members. */
export function fragmentsOf({ definitions }: DocumentNode): ReadonlyMap<string, FragmentDefinitionNode> {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  }
  return fragments;
}
