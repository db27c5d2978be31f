import {
  type DirectiveNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLSchema,
  isCompositeType,
  isObjectType,
  Kind,
  type NamedTypeNode,
  type OperationDefinitionNode,
  type SelectionSetNode,
  visit,
} from 'graphql';
import { getOrCreate } from '../options/values.ts';

/** Returns the fragments of a document by name. A Map, because the names of clients may be those of inherited members. */
export function fragmentsOf({ definitions }: DocumentNode): ReadonlyMap<string, FragmentDefinitionNode> {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  }
  return fragments;
}

/** A variable of `@skip`, `@include` or `@defer`, with its default value. */
export interface Condition {
  readonly name: string;
  readonly fallback: boolean | undefined;
}

/** The directives that decide whether a field is executed. */
export const CONDITIONS: readonly string[] = ['skip', 'include'];

/** Whether `@skip` and `@include` keep a selection. One with a variable whose value is not known may be kept. */
export function isIncluded(
  directives: readonly DirectiveNode[] = [],
  variable: (name: string) => unknown,
): boolean {
  return directives.every(({ name, arguments: [argument] = [] }) => {
    if (argument === undefined || !CONDITIONS.includes(name.value)) return true;
    const { value: node } = argument;
    const value =
      node.kind === Kind.VARIABLE ? variable(node.name.value) : node.kind === Kind.BOOLEAN && node.value;
    return value !== (name.value === 'skip');
  });
}

/** The type of values in a fragment; undefined if it never applies. */
function narrow(
  schema: GraphQLSchema,
  type: GraphQLCompositeType,
  typeCondition: NamedTypeNode | undefined,
): GraphQLCompositeType | undefined {
  if (typeCondition === undefined) return type;
  const condition = schema.getType(typeCondition.name.value);
  if (condition === type || !isCompositeType(condition)) return type;
  if (!isObjectType(type)) return condition;
  return !isObjectType(condition) && schema.isSubType(condition, type) ? type : undefined;
}

/**
 * Receives a field of a selection set, with the type of the set. Returns the types of its values whose fields are visited
 * next.
 */
type VisitField = (
  type: GraphQLCompositeType,
  node: FieldNode,
  isRoot: boolean,
) => Iterable<GraphQLCompositeType>;

interface SelectedOperation {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
}

/**
 * Visits the fields that an execution may resolve, for every type that `visitField` returns. Each selection set is visited
 * once per type, so the time is linear in the document. `variable` returns the values of variables in `@skip` and
 * `@include`, undefined for either value.
 */
export function visitFields(
  { schema, document, operation }: SelectedOperation,
  variable: (name: string) => unknown,
  visitField: VisitField,
): void {
  const rootType = schema.getRootType(operation.operation);
  if (rootType === undefined || rootType === null) return;
  const fragments = fragmentsOf(document);
  const visitedRoots: VisitedSets = new Map();
  const visited: VisitedSets = new Map();

  function visitSet(type: GraphQLCompositeType, set: SelectionSetNode, isRoot: boolean): void {
    const sets = getOrCreate(isRoot ? visitedRoots : visited, type, () => new Set());
    if (sets.has(set)) return;
    sets.add(set);
    for (const node of set.selections) {
      if (!isIncluded(node.directives, variable)) continue;
      if (node.kind === Kind.FIELD) {
        const types = visitField(type, node, isRoot);
        if (node.selectionSet !== undefined)
          for (const valueType of types) visitSet(valueType, node.selectionSet, false);
        continue;
      }
      const fragment = node.kind === Kind.INLINE_FRAGMENT ? node : fragments.get(node.name.value);
      if (fragment === undefined) continue;
      const narrowed = narrow(schema, type, fragment.typeCondition);
      if (narrowed !== undefined) visitSet(narrowed, fragment.selectionSet, isRoot);
    }
  }

  visitSet(rootType, operation.selectionSet, true);
}

type VisitedSets = Map<GraphQLCompositeType, Set<SelectionSetNode>>;

/** Returns the variables of an operation that its document uses in some directives. */
export function conditionsOf(
  operation: OperationDefinitionNode,
  document: DocumentNode,
  directives: readonly string[],
): Condition[] {
  const names = new Set<string>();
  visit(document, {
    Directive: (node) => {
      if (!directives.includes(node.name.value)) return;
      for (const { value } of node.arguments ?? [])
        if (value.kind === Kind.VARIABLE) names.add(value.name.value);
    },
  });
  // The document may contain other operations with other variables.
  const used = (operation.variableDefinitions ?? []).filter(({ variable }) => names.has(variable.name.value));
  return used.map(({ variable, defaultValue }) => ({
    name: variable.name.value,
    fallback: defaultValue?.kind === Kind.BOOLEAN ? defaultValue.value : undefined,
  }));
}

/** The values of the conditions as a string of digits; undefined if one is not a boolean. */
export function variantKey(
  conditions: readonly Condition[],
  variables: Record<string, unknown>,
): string | undefined {
  let key = '';
  for (const { name, fallback } of conditions) {
    const value = Object.hasOwn(variables, name) ? variables[name] : fallback;
    if (typeof value !== 'boolean') return undefined;
    key += value ? '1' : '0';
  }
  return key;
}

/** The values of conditions; one that is missing counts as either value. */
export type ConditionValues = ReadonlyMap<string, boolean>;

/** Returns the values of a key of `variantKey`: none if that is undefined. */
export function conditionValues(conditions: readonly Condition[], key = ''): ConditionValues {
  return new Map(conditions.slice(0, key.length).map(({ name }, index) => [name, key[index] === '1']));
}

/** Combinations of the values of conditions for which one operation keeps something: clients choose the values. */
export const MAX_VARIANTS = 64;

/** What an operation keeps for each key of `variantKey`. */
export class KeptVariants<Value> {
  readonly #create: (key: string) => Value;
  readonly #kept = new Map<string, Value>();

  constructor(create: (key: string) => Value) {
    this.#create = create;
  }

  /** Returns undefined for a further key if `MAX_VARIANTS` are kept. */
  get(key: string): Value | undefined {
    const known = this.#kept.get(key);
    if (known !== undefined || this.#kept.size >= MAX_VARIANTS) return known;
    const value = this.#create(key);
    this.#kept.set(key, value);
    return value;
  }

  clear(): void {
    this.#kept.clear();
  }
}
