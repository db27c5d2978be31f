import type {
  DirectiveNode,
  DocumentNode,
  FieldNode,
  FragmentSpreadNode,
  InlineFragmentNode,
  SelectionSetNode,
  VariableDefinitionNode,
} from 'graphql';
import { fragmentsOf } from '../../execution/document.ts';
import type { DocumentLimitSettings } from '../options.ts';
import { depthOfType, depthOfValue } from './depth.ts';
import { limitExceeded } from './limit-exceeded.ts';
import { countOverlappingFields } from './overlapping-fields.ts';

/** The cost of one operation; a fragment counts at each spread. */
export interface Cost {
  fields: number;
  /** Fields, spreads and inline fragments. Validation visits each of them. */
  selections: number;
  rootFields: number;
  aliases: number;
  directives: number;
  depth: number;
  /** Levels below `__schema` and `__type`, which have a separate limit. */
  introspection: number;
  /** Aliases of `__schema`, and aliases below it and `__type`. Each alias repeats the output of the whole schema. */
  introspectionAliases: number;
  /** Levels of any kind: selection sets, spreads, literals. */
  nesting: number;
}

/** Introspection queries usually have nine levels of `ofType`; some tools send fifteen. */
const MAX_INTROSPECTION_DEPTH = 25;
/** The introspection queries of tools have no aliases. */
const MAX_INTROSPECTION_ALIASES = 10;
/** Each operation of a document is measured with all its fragments. */
const MAX_OPERATIONS = 200;
/** Levels of any kind per level of fields, because inline fragments and spreads nest without a field. */
const NESTING_PER_DEPTH = 4;
const MAX_NESTING = 500;
/** Selections per field that the limit allows: a spread usually has several fields. */
const SELECTIONS_PER_FIELD = 2;

/**
 * Measures the operations of a parsed document before validation, which can take very long for a malicious document. Returns the
 * highest cost of any operation. Each fragment is measured once, so the walk is linear where the cost is exponential.
 *
 * @throws GraphQLError that names the limit.
 */
export function measure(document: DocumentNode, limits: DocumentLimitSettings): Cost {
  const max: Cost = {
    ...limits,
    introspection: MAX_INTROSPECTION_DEPTH,
    introspectionAliases: MAX_INTROSPECTION_ALIASES,
    selections: limits.fields * SELECTIONS_PER_FIELD,
    nesting: Math.min(limits.depth * NESTING_PER_DEPTH, MAX_NESTING),
  };
  const costOf = createMeter(document, max.nesting);
  const highest = zeroCost();
  const count = (kind: string): number => document.definitions.filter((node) => node.kind === kind).length;
  if (count('FragmentDefinition') > limits.fragments) {
    throw limitExceeded('fragments', limits.fragments, 'The document');
  }
  if (count('OperationDefinition') > MAX_OPERATIONS) {
    throw limitExceeded('operations', MAX_OPERATIONS, 'The document');
  }
  for (const definition of document.definitions) {
    if (definition.kind !== 'OperationDefinition' && definition.kind !== 'FragmentDefinition') continue;
    const cost = costOf(definition.selectionSet, 1);
    countDirectives(cost, definition.directives, max.nesting);
    if (definition.kind === 'FragmentDefinition') cost.rootFields = 0;
    else countVariables(cost, definition.variableDefinitions, max.nesting);
    for (const name of Object.keys(highest) as (keyof Cost)[]) {
      if (cost[name] > max[name]) throw limitExceeded(name, max[name]);
      highest[name] = Math.max(highest[name], cost[name]);
    }
  }
  // Checked last, since the limit of fields bounds the work of this check.
  if (countOverlappingFields(document, limits.merges) > limits.merges) {
    throw limitExceeded('merges', limits.merges);
  }
  return highest;
}

const zeroCost = (): Cost => ({
  fields: 0,
  selections: 0,
  rootFields: 0,
  aliases: 0,
  directives: 0,
  depth: 0,
  introspection: 0,
  introspectionAliases: 0,
  nesting: 0,
});

type Meter = (set: SelectionSetNode, level: number) => Cost;

/** Creates the function that measures selection sets of one document; `level` bounds its recursion. */
function createMeter(document: DocumentNode, maxNesting: number): Meter {
  const definitions = fragmentsOf(document);
  const fragments = new Map<string, Cost>();

  function costOf(set: SelectionSetNode, level: number): Cost {
    if (level > maxNesting) throw limitExceeded('nesting', maxNesting);
    const cost = zeroCost();
    for (const selection of set.selections) {
      cost.selections += 1;
      countDirectives(cost, selection.directives, maxNesting);
      if (selection.kind === 'Field') countField(cost, selection, level);
      else {
        const below = costOfFragment(selection, level);
        add(cost, below);
        // The fields of a fragment are fields of this level.
        cost.rootFields += below.rootFields;
      }
    }
    cost.nesting += 1;
    return cost;
  }

  function countField(cost: Cost, field: FieldNode, level: number): void {
    cost.fields += 1;
    cost.rootFields += 1;
    if (field.alias !== undefined) cost.aliases += 1;
    for (const argument of field.arguments ?? []) {
      cost.nesting = Math.max(cost.nesting, depthOfValue(argument.value, maxNesting));
    }
    const below = field.selectionSet === undefined ? zeroCost() : costOf(field.selectionSet, level + 1);
    below.depth += 1;
    const name = field.name.value;
    if (name === '__schema' || name === '__type') {
      below.introspection = below.depth;
      below.depth = 1;
      below.introspectionAliases = below.aliases;
      if (name === '__schema' && field.alias !== undefined) below.introspectionAliases += 1;
    }
    add(cost, below);
  }

  function costOfFragment(selection: InlineFragmentNode | FragmentSpreadNode, level: number): Cost {
    if (selection.kind === 'InlineFragment') return costOf(selection.selectionSet, level + 1);
    const name = selection.name.value;
    let cost = fragments.get(name);
    if (cost === undefined) {
      // Zero while it is being measured: a cycle of fragments ends here, and validation reports it.
      fragments.set(name, zeroCost());
      const definition = definitions.get(name);
      cost = definition === undefined ? zeroCost() : costOf(definition.selectionSet, level + 1);
      countDirectives(cost, definition?.directives, maxNesting);
      fragments.set(name, cost);
    }
    return cost;
  }

  return costOf;
}

function countVariables(
  cost: Cost,
  variables: readonly VariableDefinitionNode[] | undefined,
  maxNesting: number,
): void {
  for (const { directives, defaultValue, type } of variables ?? []) {
    countDirectives(cost, directives, maxNesting);
    const value = defaultValue === undefined ? 0 : depthOfValue(defaultValue, maxNesting);
    cost.nesting = Math.max(cost.nesting, value, depthOfType(type));
  }
}

/** Adds the cost of the selections below, except their root fields. */
function add(cost: Cost, below: Cost): void {
  cost.fields += below.fields;
  cost.selections += below.selections;
  cost.aliases += below.aliases;
  cost.directives += below.directives;
  cost.introspectionAliases += below.introspectionAliases;
  cost.depth = Math.max(cost.depth, below.depth);
  cost.introspection = Math.max(cost.introspection, below.introspection);
  cost.nesting = Math.max(cost.nesting, below.nesting);
}

function countDirectives(
  cost: Cost,
  directives: readonly DirectiveNode[] | undefined,
  maxNesting: number,
): void {
  for (const directive of directives ?? []) {
    cost.directives += 1;
    for (const argument of directive.arguments ?? []) {
      cost.nesting = Math.max(cost.nesting, depthOfValue(argument.value, maxNesting));
    }
  }
}
