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
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
  typeFromAST,
} from 'graphql';
import { V17 } from '../../execution/graphql-version.ts';

/** The parts of a document that collecting fields needs. */
export interface CollectContext {
  readonly schema: GraphQLSchema;
  readonly fragments: Readonly<Record<string, FragmentDefinitionNode>>;
}

interface Collection extends CollectContext {
  readonly type: GraphQLObjectType;
  readonly variables: Record<string, unknown>;
  readonly visited: Set<string>;
  readonly grouped: Map<string, FieldNode[]>;
}

/**
 * The fields of an operation by response key, in order of appearance (CollectFields of the specification).
 */
export function collectRootFields(
  context: CollectContext & { readonly operation: OperationDefinitionNode },
  type: GraphQLObjectType,
  variables: Record<string, unknown>,
): ReadonlyMap<string, readonly FieldNode[]> {
  const collection = createCollection(context, type, variables);
  visit(collection, context.operation.selectionSet);
  return collection.grouped;
}

/** The merged fields of the selection sets of some field nodes (CollectSubfields). */
export function collectSubfields(
  context: CollectContext,
  type: GraphQLObjectType,
  nodes: readonly FieldNode[],
  variables: Record<string, unknown>,
): ReadonlyMap<string, readonly FieldNode[]> {
  const collection = createCollection(context, type, variables);
  for (const node of nodes) if (node.selectionSet !== undefined) visit(collection, node.selectionSet);
  return collection.grouped;
}

function createCollection(
  { schema, fragments }: CollectContext,
  type: GraphQLObjectType,
  variables: Record<string, unknown>,
): Collection {
  return { schema, fragments, type, variables, visited: new Set(), grouped: new Map() };
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

/** 16 marks a fragment as visited before it checks the type condition, 17 after it. */
function visitSpread(
  collection: Collection,
  spread: Extract<SelectionNode, { kind: 'FragmentSpread' }>,
): void {
  const { visited, fragments } = collection;
  const name = spread.name.value;
  if (visited.has(name) || !isIncluded(spread, collection.variables)) return;
  if (!V17) visited.add(name);
  const fragment = fragments[name];
  if (fragment === undefined || !applies(collection, fragment)) return;
  visited.add(name);
  visit(collection, fragment.selectionSet);
}

/** Whether `@skip` and `@include` keep a selection. */
export function isIncluded(node: SelectionNode, variables: Record<string, unknown>): boolean {
  if (node.directives === undefined || node.directives.length === 0) return true;
  if (getDirectiveValues(GraphQLSkipDirective, node, variables)?.['if'] === true) return false;
  return getDirectiveValues(GraphQLIncludeDirective, node, variables)?.['if'] !== false;
}

/** Whether the type condition of a fragment applies to an object type. */
export function applies(
  { schema, type }: Pick<CollectContext, 'schema'> & { readonly type: GraphQLObjectType },
  fragment: FragmentDefinitionNode | InlineFragmentNode,
): boolean {
  const condition = fragment.typeCondition;
  if (condition === undefined) return true;
  const conditional = typeFromAST(schema, condition);
  if (conditional === type) return true;
  return isAbstractType(conditional) && schema.isSubType(conditional, type);
}
