import {
  type DirectiveNode,
  type DocumentNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLSchema,
  isCompositeType,
  isObjectType,
  Kind,
  type NamedTypeNode,
  type OperationDefinitionNode,
  visit,
} from 'graphql';

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
export function narrow(
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
