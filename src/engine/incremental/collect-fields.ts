import {
  type FieldNode,
  type FragmentSpreadNode,
  type GraphQLDirective,
  type GraphQLObjectType,
  getDirectiveValues,
  type InlineFragmentNode,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';
import { optionalExport } from '../../execution/graphql-version.ts';
import { applies, type CollectContext, isIncluded } from '../compile/collect-fields.ts';
import type { DeferUsage } from '../run/deferred-parts.ts';

/** A field with the innermost `@defer` around it. */
export interface DeferredField {
  readonly node: FieldNode;
  readonly usage: DeferUsage | undefined;
}

export type DeferredFields = ReadonlyMap<string, readonly DeferredField[]>;

/** The fields of a selection set by response key, and the usages of `@defer` in it. */
export interface DeferredSelection {
  readonly grouped: DeferredFields;
  readonly usages: readonly DeferUsage[];
}

/** The inputs of collecting. `createId` numbers the usages of an operation. */
export interface DeferredContext extends CollectContext {
  readonly type: GraphQLObjectType;
  readonly variables: Record<string, unknown>;
  readonly createId: () => number;
}

interface Collection extends DeferredContext {
  /** By fragment: the usages that it was visited for. Undefined in it stands for a visit outside of usages. */
  readonly visited: Map<string, Set<object | undefined>>;
  readonly grouped: Map<string, DeferredField[]>;
  readonly usages: DeferUsage[];
}

/** Only graphql 17 has the directive. */
const DEFER = optionalExport('GraphQLDeferDirective') as GraphQLDirective;

/** Collects the fields of an operation with their usages of `@defer`. */
export function collectRootSelection(
  context: DeferredContext,
  operation: OperationDefinitionNode,
): DeferredSelection {
  const collection = createCollection(context);
  visit(collection, operation.selectionSet, undefined);
  return collection;
}

/** Collects the merged selection sets of some fields with their usages of `@defer`. */
export function collectSubselection(
  context: DeferredContext,
  fields: readonly DeferredField[],
): DeferredSelection {
  const collection = createCollection(context);
  for (const { node, usage } of fields) {
    if (node.selectionSet !== undefined) visit(collection, node.selectionSet, usage);
  }
  return collection;
}

function createCollection(context: DeferredContext): Collection {
  return { ...context, visited: new Map(), grouped: new Map(), usages: [] };
}

function visit(collection: Collection, set: SelectionSetNode, usage: DeferUsage | undefined): void {
  for (const selection of set.selections) {
    if (!isIncluded(selection, collection.variables)) continue;
    if (selection.kind === 'Field') addField(collection, selection, usage);
    else if (selection.kind === 'FragmentSpread') visitSpread(collection, selection, usage);
    else if (applies(collection, selection)) {
      const created = usageOf(collection, selection, usage);
      if (created !== undefined) collection.usages.push(created);
      visit(collection, selection.selectionSet, created ?? usage);
    }
  }
}

function addField({ grouped }: Collection, node: FieldNode, usage: DeferUsage | undefined): void {
  const key = (node.alias ?? node.name).value;
  const fields = grouped.get(key);
  if (fields === undefined) grouped.set(key, [{ node, usage }]);
  else fields.push({ node, usage });
}

/** Visits a fragment once outside of usages, or once for each usage. */
function visitSpread(
  collection: Collection,
  spread: FragmentSpreadNode,
  enclosing: DeferUsage | undefined,
): void {
  const fragment = collection.fragments[spread.name.value];
  if (fragment === undefined || !applies(collection, fragment)) return;
  const created = usageOf(collection, spread, enclosing);
  const usage = created ?? enclosing;
  const visited = collection.visited.get(spread.name.value) ?? new Set();
  collection.visited.set(spread.name.value, visited);
  if (visited.has(undefined) || visited.has(usage?.directive)) return;
  visited.add(usage?.directive);
  if (created !== undefined) collection.usages.push(created);
  visit(collection, fragment.selectionSet, usage);
}

function usageOf(
  { variables, usages, createId }: Collection,
  node: InlineFragmentNode | FragmentSpreadNode,
  parent: DeferUsage | undefined,
): DeferUsage | undefined {
  const directive = node.directives?.find(({ name }) => name.value === DEFER.name);
  if (directive === undefined) return undefined;
  const values = getDirectiveValues(DEFER, node, variables);
  if (values?.['if'] === false) return undefined;
  const label = values?.['label'];
  return {
    id: createId(),
    index: usages.length,
    label: typeof label === 'string' ? label : undefined,
    directive,
    parent,
  };
}
