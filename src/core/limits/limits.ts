import type {
  DirectiveNode,
  DocumentNode,
  FieldNode,
  FragmentDefinitionNode,
  FragmentSpreadNode,
  InlineFragmentNode,
  SelectionSetNode,
  VariableDefinitionNode,
} from 'graphql';
import type { DocumentLimitSettings } from '../options.ts';
import { nestingOfType, nestingOfValue } from './depth.ts';
import { exceed } from './limit-exceeded.ts';
import { countMerges } from './overlapping-fields.ts';

/** What one operation comes to, each fragment counted wherever it is spread. */
export interface Cost {
  fields: number;
  rootFields: number;
  aliases: number;
  directives: number;
  depth: number;
  /** Levels below `__schema` and `__type`, which have an allowance of their own. */
  introspection: number;
  /** Aliases of `__schema`, and below it and `__type`: each asks once more for what the whole schema has. */
  introspectionAliases: number;
  /** Levels of anything: selection sets, spreads, literals. */
  nesting: number;
}

/** Levels of an introspection query: the customary ones ask for nine levels of `ofType`, some tools for fifteen. */
const INTROSPECTION_DEPTH = 25;
/** The customary queries of tools have none. */
const INTROSPECTION_ALIASES = 10;
/** Operations of one document: each walks through the fragments of its own. */
const MOST_OPERATIONS = 200;
/** Levels of anything per level of fields: inline fragments and spreads nest without adding a field. */
const NESTING_PER_DEPTH = 4;
const MOST_NESTING = 500;

/**
 * Measures the operations of a parsed document, by name, before it is validated: validation is what a bomb would blow up.
 * Fragments are measured once, so that the walk is linear where the fields are exponential.
 *
 * @throws GraphQLError that names the limit.
 */
export function measure(document: DocumentNode, limits: DocumentLimitSettings): Cost {
  const most: Cost = {
    ...limits,
    introspection: INTROSPECTION_DEPTH,
    introspectionAliases: INTROSPECTION_ALIASES,
    nesting: Math.min(limits.depth * NESTING_PER_DEPTH, MOST_NESTING),
  };
  const costOf = createMeter(document, most.nesting);
  const highest = nothing();
  const count = (wanted: string): number => document.definitions.filter(({ kind }) => kind === wanted).length;
  if (count('FragmentDefinition') > limits.fragments) exceed('fragments', limits.fragments, 'The document');
  if (count('OperationDefinition') > MOST_OPERATIONS) exceed('operations', MOST_OPERATIONS, 'The document');
  for (const definition of document.definitions) {
    if (definition.kind !== 'OperationDefinition' && definition.kind !== 'FragmentDefinition') continue;
    const cost = costOf(definition.selectionSet, 1);
    countDirectives(cost, definition.directives, most.nesting);
    if (definition.kind === 'FragmentDefinition') cost.rootFields = 0;
    else countVariables(cost, definition.variableDefinitions, most.nesting);
    for (const name of Object.keys(highest) as (keyof Cost)[]) {
      if (cost[name] > most[name]) exceed(name, most[name]);
      highest[name] = Math.max(highest[name], cost[name]);
    }
  }
  // Only now: what is expanded here is bounded by the fields that have been counted.
  if (countMerges(document, limits.merges) > limits.merges) exceed('merges', limits.merges);
  return highest;
}

const nothing = (): Cost => ({
  fields: 0,
  rootFields: 0,
  aliases: 0,
  directives: 0,
  depth: 0,
  introspection: 0,
  introspectionAliases: 0,
  nesting: 0,
});

type Meter = (set: SelectionSetNode, level: number) => Cost;

/** Measures selection sets of one document; `level` bounds the recursion. */
function createMeter(document: DocumentNode, mostNesting: number): Meter {
  const definitions = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions) {
    if (definition.kind === 'FragmentDefinition') definitions.set(definition.name.value, definition);
  }
  const fragments = new Map<string, Cost>();

  function costOf(set: SelectionSetNode, level: number): Cost {
    if (level > mostNesting) exceed('nesting', mostNesting);
    const cost = nothing();
    for (const selection of set.selections) {
      countDirectives(cost, selection.directives, mostNesting);
      if (selection.kind === 'Field') countField(cost, selection, level);
      else add(cost, inner(selection, level), true);
    }
    cost.nesting += 1;
    return cost;
  }

  function countField(cost: Cost, field: FieldNode, level: number): void {
    cost.fields += 1;
    cost.rootFields += 1;
    if (field.alias !== undefined) cost.aliases += 1;
    for (const argument of field.arguments ?? []) {
      cost.nesting = Math.max(cost.nesting, nestingOfValue(argument.value, mostNesting));
    }
    const below = field.selectionSet === undefined ? nothing() : costOf(field.selectionSet, level + 1);
    below.depth += 1;
    const name = field.name.value;
    if (name === '__schema' || name === '__type') {
      below.introspection = below.depth;
      below.depth = 1;
      below.introspectionAliases = below.aliases;
      if (name === '__schema' && field.alias !== undefined) below.introspectionAliases += 1;
    }
    add(cost, below, false);
  }

  function inner(selection: InlineFragmentNode | FragmentSpreadNode, level: number): Cost {
    if (selection.kind === 'InlineFragment') return costOf(selection.selectionSet, level + 1);
    const name = selection.name.value;
    let cost = fragments.get(name);
    if (cost === undefined) {
      // Counts as nothing while it is being measured: a circle ends here and validation reports it.
      fragments.set(name, nothing());
      const definition = definitions.get(name);
      cost = definition === undefined ? nothing() : costOf(definition.selectionSet, level + 1);
      countDirectives(cost, definition?.directives, mostNesting);
      fragments.set(name, cost);
    }
    return cost;
  }

  return costOf;
}

function countVariables(
  cost: Cost,
  variables: readonly VariableDefinitionNode[] | undefined,
  mostNesting: number,
): void {
  for (const { directives, defaultValue, type } of variables ?? []) {
    countDirectives(cost, directives, mostNesting);
    const value = defaultValue === undefined ? 0 : nestingOfValue(defaultValue, mostNesting);
    cost.nesting = Math.max(cost.nesting, value, nestingOfType(type));
  }
}

/** Adds what lies below; the fields of a fragment are fields of this level too. */
function add(cost: Cost, below: Cost, sameLevel: boolean): void {
  cost.fields += below.fields;
  if (sameLevel) cost.rootFields += below.rootFields;
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
  mostNesting: number,
): void {
  for (const directive of directives ?? []) {
    cost.directives += 1;
    for (const argument of directive.arguments ?? []) {
      cost.nesting = Math.max(cost.nesting, nestingOfValue(argument.value, mostNesting));
    }
  }
}
