import type { OperationDefinitionNode, SelectionNode } from 'graphql';

const MAX_LENGTH = 80;
const names = new WeakMap<object, string>();

/** Returns the name of an operation or, if it has none, its root fields. */
export function operationName(operation: OperationDefinitionNode): string {
  let name = names.get(operation);
  if (name === undefined) {
    name = (operation.name?.value ?? rootFields(operation)).slice(0, MAX_LENGTH);
    names.set(operation, name);
  }
  return name;
}

function rootFields({ selectionSet }: OperationDefinitionNode): string {
  return `{ ${[...new Set(selectionSet.selections.map(labelOf))].join(' ')} }`;
}

function labelOf(selection: SelectionNode): string {
  // Kinds are strings, and an enum from graphql 17 on; the enum would load graphql.
  switch (`${selection.kind}`) {
    case 'Field':
      return 'name' in selection ? selection.name.value : '';
    case 'FragmentSpread':
      return 'name' in selection ? `...${selection.name.value}` : '';
    default:
      return '...';
  }
}
