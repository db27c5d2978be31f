import {
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isAbstractType,
  isCompositeType,
  isUnionType,
  Kind,
  type SelectionSetNode,
} from 'graphql';
import { fragmentsOf } from '../execution/document.ts';
import type { ValidatedOperation } from '../execution/types.ts';
import { costAnnotationOf, fieldAnnotation, type ListSize } from './annotations.ts';
import {
  defaultsOf,
  type Formula,
  inclusionOf,
  largestSum,
  notNegative,
  product,
  sum,
  withDefaults,
} from './formula.ts';
import { argumentsCost, expectedSize, listLevels, sizeCheck } from './list-size.ts';

/** The weights that no directive sets. */
interface CostDefaults {
  /** The assumed number of items of a list. */
  readonly listSize: number;
  /** The weight of a mutation, in addition to its fields. */
  readonly mutation: number;
  /** Whether `requireOneSlicingArgument` refuses operations. */
  readonly requiresSlicing: boolean;
}

/** The sizes of the fields below a field with `sizedFields`. */
type SizedFields = ReadonlyMap<string, Formula>;

/** The cost of selections whose type condition only some object types satisfy; undefined: all types. */
interface ConditionalCost {
  readonly types: ReadonlySet<GraphQLObjectType> | undefined;
  readonly cost: Formula;
}

type Field = GraphQLField<unknown, unknown>;

/** Types that a selection set compares one by one; with more, all fragments are added. */
const MAX_COMPARISONS = 100_000;
const NO_SIZES: SizedFields = new Map();

/**
 * Compiles the cost of an operation by the IBM specification of `@cost` and `@listSize` to a formula of its
 * variables. A field costs its weight and the cost of its selections, times the number of its items, plus its
 * arguments. Its weight and arguments cost nothing if their sum is negative, so that no field pays for others. Of
 * fragments on several types the most expensive type counts.
 */
export function compileCost(
  { schema, document, operation }: Pick<ValidatedOperation, 'schema' | 'document' | 'operation'>,
  defaults: CostDefaults,
): Formula {
  const rootType = schema.getRootType(operation.operation);
  if (rootType === undefined || rootType === null) return 0;
  const base = operation.operation === 'mutation' ? defaults.mutation : 0;
  const compiler = new CostCompiler(schema, fragmentsOf(document), defaults);
  const cost = sum([base, compiler.selectionSet(operation.selectionSet, rootType, NO_SIZES)]);
  return withDefaults(cost, defaultsOf(operation));
}

class CostCompiler {
  readonly #schema: GraphQLSchema;
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly #defaults: CostDefaults;
  /** The parts of fragments without sized fields, so that a fragment is compiled once per type. */
  readonly #compiled = new Map<FragmentDefinitionNode, readonly ConditionalCost[]>();

  constructor(
    schema: GraphQLSchema,
    fragments: ReadonlyMap<string, FragmentDefinitionNode>,
    defaults: CostDefaults,
  ) {
    this.#schema = schema;
    this.#fragments = fragments;
    this.#defaults = defaults;
  }

  selectionSet(set: SelectionSetNode, type: GraphQLCompositeType, sizes: SizedFields): Formula {
    const parts = this.#parts(set, type, sizes);
    const conditional = parts.filter((part) => part.types !== undefined);
    const always = sum(parts.filter((part) => part.types === undefined).map(({ cost }) => cost));
    if (conditional.length === 0) return always;
    const types = isAbstractType(type) ? this.#schema.getPossibleTypes(type) : [type];
    if (types.length * conditional.length > MAX_COMPARISONS) {
      return sum([always, ...conditional.map(({ cost }) => cost)]);
    }
    const combinations = new Map<string, readonly number[]>();
    for (const object of types) {
      const applied = conditional.flatMap((part, index) => (part.types?.has(object) ? [index] : []));
      combinations.set(applied.join(), applied);
    }
    return sum([
      always,
      largestSum(
        conditional.map(({ cost }) => cost),
        [...combinations.values()],
      ),
    ]);
  }

  /** The cost of each selection, with the object types that it applies to. */
  #parts(set: SelectionSetNode, type: GraphQLCompositeType, sizes: SizedFields): readonly ConditionalCost[] {
    return set.selections.flatMap((node) => {
      const included = inclusionOf(node.directives);
      if (included === 0) return [];
      const parts =
        node.kind === Kind.FIELD
          ? [{ types: undefined, cost: this.#field(node, type, sizes) }]
          : this.#fragment(node, type, sizes);
      if (included === 1) return parts;
      return parts.map(({ types, cost }) => ({ types, cost: product(included, cost) }));
    });
  }

  #fragment(
    node: Exclude<SelectionSetNode['selections'][number], FieldNode>,
    type: GraphQLCompositeType,
    sizes: SizedFields,
  ): readonly ConditionalCost[] {
    const fragment = node.kind === Kind.INLINE_FRAGMENT ? node : this.#fragments.get(node.name.value);
    if (fragment === undefined) return [];
    const condition = fragment.typeCondition && this.#schema.getType(fragment.typeCondition.name.value);
    const inner = isCompositeType(condition) ? condition : type;
    const parts = this.#fragmentParts(fragment, inner, sizes);
    if (inner === type || !this.#narrows(type, inner)) return parts;
    const types = new Set(isAbstractType(inner) ? this.#schema.getPossibleTypes(inner) : [inner]);
    // The types of a nested condition are narrower, or the outer condition excludes them.
    return parts.map((part) => ({ types: intersection(part.types, types), cost: part.cost }));
  }

  #fragmentParts(
    fragment:
      | FragmentDefinitionNode
      | Extract<SelectionSetNode['selections'][number], { kind: 'InlineFragment' }>,
    type: GraphQLCompositeType,
    sizes: SizedFields,
  ): readonly ConditionalCost[] {
    if (fragment.kind === Kind.INLINE_FRAGMENT || sizes.size > 0) {
      return this.#parts(fragment.selectionSet, type, sizes);
    }
    let parts = this.#compiled.get(fragment);
    if (parts === undefined) {
      parts = this.#parts(fragment.selectionSet, type, sizes);
      this.#compiled.set(fragment, parts);
    }
    return parts;
  }

  /** Whether a type condition excludes objects of a type. */
  #narrows(type: GraphQLCompositeType, condition: GraphQLCompositeType): boolean {
    if (!isAbstractType(type)) return false;
    if (!isAbstractType(condition)) return true;
    return !this.#schema.getPossibleTypes(type).every((object) => this.#schema.isSubType(condition, object));
  }

  #field(node: FieldNode, parent: GraphQLCompositeType, sizes: SizedFields): Formula {
    const name = node.name.value;
    const definition = isUnionType(parent) ? undefined : parent.getFields()[name];
    // Introspection and __typename have their own limits.
    if (definition === undefined) return 0;
    const type = getNamedType(definition.type);
    const { weight, listSize } = fieldAnnotation(this.#schema, definition, parent);
    const expected = listSize && expectedSize(listSize, definition, node, this.#defaults);
    const below = expected !== undefined && listSize !== undefined && listSize.sizedFields.length > 0;
    const selections =
      node.selectionSet !== undefined && isCompositeType(type)
        ? this.selectionSet(node.selectionSet, type, below ? sizedFields(listSize, expected) : NO_SIZES)
        : 0;
    const own = weight ?? costAnnotationOf(type).weight ?? (isCompositeType(type) ? 1 : 0);
    const items = this.#items(definition, sizes.get(name) ?? (below ? undefined : expected));
    const field = sum([product(items, own), argumentsCost(definition.args, node)]);
    return sum([notNegative(field), product(items, selections), sizeCheck(expected)]);
  }

  /** The number of values of a field. A size applies to the outermost list. */
  #items({ type }: Field, size: Formula | undefined): Formula {
    const levels = listLevels(type);
    if (levels === 0) return 1;
    return product(size ?? this.#defaults.listSize, this.#defaults.listSize ** (levels - 1));
  }
}

const sizedFields = (listSize: ListSize, size: Formula): SizedFields =>
  new Map(listSize.sizedFields.map((name) => [name, size]));

function intersection<T>(left: ReadonlySet<T> | undefined, right: ReadonlySet<T>): ReadonlySet<T> {
  return left === undefined ? right : new Set([...left].filter((item) => right.has(item)));
}
