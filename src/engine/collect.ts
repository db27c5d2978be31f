import {
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLIncludeDirective,
  type GraphQLObjectType,
  type GraphQLSchema,
  GraphQLSkipDirective,
  getDirectiveValues,
  type InlineFragmentNode,
  isAbstractType,
  type SelectionNode,
  type SelectionSetNode,
  typeFromAST,
} from 'graphql';
import { V17 } from '../execution/graphql-version.ts';

/** What collecting needs of a program. */
export interface Selections {
  readonly schema: GraphQLSchema;
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode>>;
}

interface Collection {
  readonly selections: Selections;
  readonly type: GraphQLObjectType;
  readonly variables: Record<string, unknown>;
  readonly visited: Set<string>;
  readonly grouped: Map<string, FieldNode[]>;
}

/** CollectFields() of the specification: the fields of a selection set by response key, in order of appearance. */
export function collectFields(
  selections: Selections & { readonly rootSelectionSet: SelectionSetNode },
  type: GraphQLObjectType,
  variables: Record<string, unknown>,
): ReadonlyMap<string, readonly FieldNode[]> {
  const collection = { selections, type, variables, visited: new Set<string>(), grouped: new Map() };
  visit(collection, selections.rootSelectionSet);
  return collection.grouped;
}

/** The merged fields below some field nodes. */
export function collectSubfields(
  selections: Selections,
  type: GraphQLObjectType,
  nodes: readonly FieldNode[],
  variables: Record<string, unknown>,
): ReadonlyMap<string, readonly FieldNode[]> {
  const collection = { selections, type, variables, visited: new Set<string>(), grouped: new Map() };
  for (const node of nodes) if (node.selectionSet !== undefined) visit(collection, node.selectionSet);
  return collection.grouped;
}

function visit(collection: Collection, set: SelectionSetNode): void {
  for (const selection of set.selections) {
    if (selection.kind === 'Field') {
      if (isIncluded(selection, collection.variables)) addField(collection, selection);
    } else if (selection.kind === 'InlineFragment') {
      if (isIncluded(selection, collection.variables) && applies(collection, selection)) {
        visit(collection, selection.selectionSet);
      }
    } else {
      visitSpread(collection, selection);
    }
  }
}

function addField({ grouped }: Collection, node: FieldNode): void {
  const key = (node.alias ?? node.name).value;
  const group = grouped.get(key);
  if (group === undefined) grouped.set(key, [node]);
  else group.push(node);
}

/** 16 takes a fragment as visited before it looks at its type condition, 17 afterwards. */
function visitSpread(
  collection: Collection,
  spread: Extract<SelectionNode, { kind: 'FragmentSpread' }>,
): void {
  const { visited, selections } = collection;
  const name = spread.name.value;
  if (visited.has(name) || !isIncluded(spread, collection.variables)) return;
  if (!V17) visited.add(name);
  const fragment = selections.fragments[name];
  if (fragment === undefined || !applies(collection, fragment)) return;
  visited.add(name);
  visit(collection, fragment.selectionSet);
}

function isIncluded(node: SelectionNode, variables: Record<string, unknown>): boolean {
  if (node.directives === undefined || node.directives.length === 0) return true;
  if (getDirectiveValues(GraphQLSkipDirective, node, variables)?.['if'] === true) return false;
  return getDirectiveValues(GraphQLIncludeDirective, node, variables)?.['if'] !== false;
}

function applies(
  { selections, type }: Collection,
  fragment: FragmentDefinitionNode | InlineFragmentNode,
): boolean {
  const condition = fragment.typeCondition;
  if (condition === undefined) return true;
  const conditional = typeFromAST(selections.schema, condition);
  if (conditional === type) return true;
  return isAbstractType(conditional) && selections.schema.isSubType(conditional, type);
}
