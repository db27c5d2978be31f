import {
  type DirectiveNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLSchema,
  isCompositeType,
  isObjectType,
  isUnionType,
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
function isIncluded(directives: readonly DirectiveNode[] = [], variable: (name: string) => unknown): boolean {
  return directives.every(({ name, arguments: [argument] = [] }) => {
    if (argument === undefined || !CONDITIONS.includes(name.value)) return true;
    const { value: node } = argument;
    const value =
      node.kind === Kind.VARIABLE ? variable(node.name.value) : node.kind === Kind.BOOLEAN && node.value;
    return value !== (name.value === 'skip');
  });
}

/** A field that values of a type have; undefined for an introspection field. */
export const fieldOf = (
  type: GraphQLCompositeType,
  name: string,
): GraphQLField<unknown, unknown> | undefined => (isUnionType(type) ? undefined : type.getFields()[name]);

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

/** What is visited below a field: its values of some types, whose fields are at a place that the caller chooses. */
interface Below<Place> {
  readonly types: Iterable<GraphQLCompositeType>;
  readonly place: Place;
}

/** Receives a field of a selection set, with the type and the place of the set. */
type VisitPlace<Place> = (type: GraphQLCompositeType, node: FieldNode, place: Place) => Below<Place>;

interface SelectedOperation {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
}

/**
 * Visits the fields that an execution may resolve, for every type that `visitField` returns. Each selection set is visited
 * once per type and place. `variable` returns the values of variables in `@skip` and `@include`, undefined for either value.
 */
export function visitPlaces<Place>(
  { schema, document, operation }: SelectedOperation,
  variable: (name: string) => unknown,
  root: Place,
  visitField: VisitPlace<Place>,
): void {
  const rootType = schema.getRootType(operation.operation);
  if (rootType === undefined || rootType === null) return;
  const fragments = fragmentsOf(document);
  const visited = new Map<Place, Map<GraphQLCompositeType, Set<SelectionSetNode>>>();

  function visitSet(type: GraphQLCompositeType, set: SelectionSetNode, place: Place): void {
    const ofPlace = getOrCreate(visited, place, () => new Map());
    const sets = getOrCreate(ofPlace, type, () => new Set());
    if (sets.has(set)) return;
    sets.add(set);
    for (const node of set.selections) {
      if (!isIncluded(node.directives, variable)) continue;
      if (node.kind === Kind.FIELD) {
        const below = visitField(type, node, place);
        if (node.selectionSet !== undefined)
          for (const valueType of below.types) visitSet(valueType, node.selectionSet, below.place);
        continue;
      }
      const fragment = node.kind === Kind.INLINE_FRAGMENT ? node : fragments.get(node.name.value);
      if (fragment === undefined) continue;
      const narrowed = narrow(schema, type, fragment.typeCondition);
      if (narrowed !== undefined) visitSet(narrowed, fragment.selectionSet, place);
    }
  }

  visitSet(rootType, operation.selectionSet, root);
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

/** Visits the fields as `visitPlaces` does, with two places, the root and the rest: the time is linear in the document. */
export function visitFields(
  operation: SelectedOperation,
  variable: (name: string) => unknown,
  visitField: VisitField,
): void {
  visitPlaces(operation, variable, true, (type, node, isRoot) => ({
    types: visitField(type, node, isRoot),
    place: false,
  }));
}

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

/** What an operation keeps for each combination of the variables in `@skip` and `@include`. */
export class OperationVariants<Value> {
  readonly #conditions: readonly Condition[];
  readonly #create: (key: string) => Value;
  readonly #kept: KeptVariants<Value>;

  /** `variable` returns the value of a variable, undefined for either value. */
  constructor(
    { operation, document }: Pick<SelectedOperation, 'operation' | 'document'>,
    create: (variable: (name: string) => boolean | undefined) => Value,
  ) {
    this.#conditions = conditionsOf(operation, document, CONDITIONS);
    this.#create = (key) => {
      const values = conditionValues(this.#conditions, key);
      return create((name) => values.get(name));
    };
    this.#kept = new KeptVariants(this.#create);
  }

  /** The most combinations that are kept. */
  get size(): number {
    return Math.min(MAX_VARIANTS, 2 ** this.#conditions.length);
  }

  /** A variable that is missing, or not a boolean, counts as either value. */
  of(variables: Record<string, unknown>): Value {
    const key = variantKey(this.#conditions, variables) ?? '';
    return this.#kept.get(key) ?? this.#create(key);
  }
}
