import {
  type DirectiveNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLSchema,
  isCompositeType,
  isObjectType,
  Kind,
  type NamedTypeNode,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';
import type { CachedOperation } from '../../execution/types.ts';
import type { FieldPlace, SchemaHints, SelectedField } from './schema-hints.ts';

/** The values of the variables in `@skip` and `@include`; a variable that is missing counts as either value. */
export type ConditionValues = ReadonlyMap<string, boolean>;

/** Receives each selected field of an operation at least once. */
export type VisitField = (field: SelectedField, isRoot: boolean, node: FieldNode) => void;

/**
 * Visits the fields that an execution may resolve, for every object type that a value may have. Each
 * selection set is visited once per type, so the time is linear in the document.
 */
export function visitSelectedFields(
  operation: CachedOperation,
  hints: SchemaHints,
  values: ConditionValues,
  visitField: VisitField,
): void {
  const rootType = operation.schema.getRootType(operation.operation.operation);
  if (rootType === undefined || rootType === null) return;
  new Walk(operation, hints, values, visitField).visit(rootType, operation.operation.selectionSet, 'root');
}

class Walk {
  readonly #schema: GraphQLSchema;
  readonly #fragments = new Map<string, FragmentDefinitionNode>();
  readonly #hints: SchemaHints;
  readonly #values: ConditionValues;
  readonly #visitField: VisitField;
  readonly #visited = {
    root: new Map<GraphQLCompositeType, Set<SelectionSetNode>>(),
    nested: new Map<GraphQLCompositeType, Set<SelectionSetNode>>(),
  };

  constructor(
    { schema, document }: CachedOperation,
    hints: SchemaHints,
    values: ConditionValues,
    visitField: VisitField,
  ) {
    this.#schema = schema;
    this.#hints = hints;
    this.#values = values;
    this.#visitField = visitField;
    for (const definition of document.definitions) {
      if (definition.kind === Kind.FRAGMENT_DEFINITION) {
        this.#fragments.set(definition.name.value, definition);
      }
    }
  }

  visit(type: GraphQLCompositeType, selectionSet: SelectionSetNode, place: FieldPlace): void {
    const visited = this.#visited[place];
    let sets = visited.get(type);
    if (sets === undefined) {
      sets = new Set();
      visited.set(type, sets);
    }
    if (sets.has(selectionSet)) return;
    sets.add(selectionSet);
    for (const node of selectionSet.selections) {
      if (isIncluded(node.directives, this.#values)) this.#visitSelection(type, node, place);
    }
  }

  #visitSelection(type: GraphQLCompositeType, node: SelectionNode, place: FieldPlace): void {
    if (node.kind === Kind.FIELD) {
      const name = node.name.value;
      if (name === '__typename') return;
      const isRoot = place === 'root';
      const field =
        isRoot && isObjectType(type)
          ? this.#hints.selectRoot(type, name)
          : this.#hints.select(this.#schema, type, name);
      this.#visitField(field, isRoot, node);
      if (node.selectionSet === undefined) return;
      for (const valueType of field.types) this.visit(valueType, node.selectionSet, 'nested');
      return;
    }
    const fragment = node.kind === Kind.INLINE_FRAGMENT ? node : this.#fragments.get(node.name.value);
    if (fragment === undefined) return;
    const narrowed = this.#narrow(type, fragment.typeCondition);
    if (narrowed !== undefined) this.visit(narrowed, fragment.selectionSet, place);
  }

  /** The type of values in a fragment; undefined if it never applies. */
  #narrow(
    type: GraphQLCompositeType,
    typeCondition: NamedTypeNode | undefined,
  ): GraphQLCompositeType | undefined {
    if (typeCondition === undefined) return type;
    const condition = this.#schema.getType(typeCondition.name.value);
    if (condition === type || !isCompositeType(condition)) return type;
    if (!isObjectType(type)) return condition;
    return !isObjectType(condition) && this.#schema.isSubType(condition, type) ? type : undefined;
  }
}

function isIncluded(directives: readonly DirectiveNode[] = [], values: ConditionValues): boolean {
  return directives.every(({ name, arguments: [argument] = [] }) => {
    if (name.value !== 'skip' && name.value !== 'include') return true;
    const node = argument?.value;
    const value =
      node?.kind === Kind.VARIABLE
        ? values.get(node.name.value)
        : node?.kind === Kind.BOOLEAN
          ? node.value
          : undefined;
    return value === undefined || value === (name.value === 'include');
  });
}
