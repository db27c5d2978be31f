import {
  type DirectiveNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLArgument,
  type GraphQLCompositeType,
  GraphQLError,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLInputType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isAbstractType,
  isCompositeType,
  isInputObjectType,
  isListType,
  isNonNullType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type ValueNode,
  valueFromASTUntyped,
} from 'graphql';
import { defaultOf } from '../execution/default-values.ts';
import { fieldOf, fragmentsOf } from '../execution/document.ts';
import { refusalError } from '../execution/graphql-error.ts';
import type { ValidatedOperation } from '../execution/types.ts';
import { formatValue } from '../options/rules.ts';
import { getOrCreate, isObject } from '../options/values.ts';
import { costAnnotationOf, fieldAnnotation, type ListSize } from './annotations.ts';

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
/** The field of Apollo Federation has an item for each representation. */
const ENTITIES_FIELD = '_entities';
const ENTITIES_SIZE: ListSize = {
  assumedSize: undefined,
  slicingArguments: [['representations']],
  sizedFields: [],
  requireOneSlicingArgument: false,
};

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
    return getOrCreate(this.#compiled, fragment, () => this.#parts(fragment.selectionSet, type, sizes));
  }

  /** Whether a type condition excludes objects of a type. */
  #narrows(type: GraphQLCompositeType, condition: GraphQLCompositeType): boolean {
    if (!isAbstractType(type)) return false;
    if (!isAbstractType(condition)) return true;
    return !this.#schema.getPossibleTypes(type).every((object) => this.#schema.isSubType(condition, object));
  }

  #field(node: FieldNode, parent: GraphQLCompositeType, sizes: SizedFields): Formula {
    const name = node.name.value;
    const definition = fieldOf(parent, name);
    // Introspection and __typename have their own limits.
    if (definition === undefined) return 0;
    const type = getNamedType(definition.type);
    const { weight, listSize = name === ENTITIES_FIELD ? ENTITIES_SIZE : undefined } = fieldAnnotation(
      this.#schema,
      definition,
      parent,
    );
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

/**
 * The number of items that `@listSize` gives a field or its sized fields: the largest slicing argument, or the
 * assumed size; undefined without both. Evaluating it throws a GraphQLError if the request must contain
 * exactly one slicing argument and does not.
 */
function expectedSize(
  { assumedSize, slicingArguments, requireOneSlicingArgument }: ListSize,
  definition: GraphQLField<unknown, unknown>,
  node: FieldNode,
  defaults: { readonly listSize: number; readonly requiresSlicing: boolean },
): Formula | undefined {
  if (slicingArguments.length === 0) return assumedSize;
  const unlimited = assumedSize ?? defaults.listSize;
  // A negative size may select items from the end, or all items, as in SQL and Array.prototype.slice.
  const itemsOf = (size: number): number => (size < 0 ? Math.max(-size, unlimited) : size);
  const sizes = slicingArguments.map((path) => sliceSize(definition.args, node, path));
  if (!sizes.some((size) => typeof size === 'function')) {
    const given = sizes.filter((size) => typeof size === 'number');
    const count = given.length;
    if (given[0] !== undefined && count === 1) return itemsOf(given[0]);
    if (count === 0 && assumedSize !== undefined) return assumedSize;
  }
  const isStrict = requireOneSlicingArgument && defaults.requiresSlicing;
  const names = slicingArguments.map((path) => `"${path.join('.')}"`).join(', ');
  return (variables) => {
    let largest: number | undefined;
    let count = 0;
    for (const size of sizes) {
      const value = evaluateSize(size, variables);
      if (value === undefined) continue;
      count += 1;
      largest = Math.max(largest ?? 0, itemsOf(value));
    }
    if (isStrict && (count > 1 || (count === 0 && assumedSize === undefined))) {
      throw new GraphQLError(
        `The field "${definition.name}" has ${count} of the arguments ${names}; exactly one is required`,
        { nodes: [node], extensions: { code: 'SLICING_ARGUMENT_REQUIRED' } },
      );
    }
    return largest ?? unlimited;
  };
}

/** Costs nothing, and throws the error of a size that no selected list uses. */
const sizeCheck = (size: Formula | undefined): Formula =>
  typeof size === 'function' ? (variables) => size(variables) * 0 : 0;

type InputDefinition = GraphQLArgument | GraphQLInputField;

/** The cost of the arguments of a field that the document contains. */
function argumentsCost(definitions: readonly GraphQLArgument[], node: FieldNode): Formula {
  return sum(
    (node.arguments ?? []).map(({ name, value }) => {
      const definition = definitions.find((candidate) => candidate.name === name.value);
      return definition === undefined ? 0 : nodeCost(definition, value);
    }),
  );
}

/** The cost of a value in the document: its weight, and its input objects with their fields. */
function nodeCost(definition: InputDefinition, node: ValueNode): Formula {
  if (node.kind === Kind.VARIABLE) {
    const name = node.name.value;
    return (variables) => valueCost(definition, variables[name], rememberedCost);
  }
  if (node.kind === Kind.NULL) return 0;
  const { weight } = costAnnotationOf(definition);
  return sum([weight ?? 0, memberCost(definition, definition.type, node, weight === undefined)]);
}

/** The cost of the input objects in a list or object; `counts` is false for objects with a weight. */
function memberCost(
  definition: InputDefinition,
  type: GraphQLInputType,
  node: ValueNode,
  counts: boolean,
): Formula {
  const fields = fieldsOf(type);
  if (fields === undefined) return 0;
  if (node.kind === Kind.VARIABLE) {
    const name = node.name.value;
    return (variables) => rememberedCost(definition, variables[name], counts);
  }
  if (node.kind === Kind.LIST)
    return sum(node.values.map((item) => memberCost(definition, type, item, counts)));
  if (node.kind !== Kind.OBJECT) return 0;
  const members = node.fields.map(({ name, value }) => {
    const field = fields[name.value];
    return field === undefined ? 0 : nodeCost(field, value);
  });
  return sum([counts ? 1 : 0, ...members]);
}

/** Like `nodeCost`, for a value of the variables. */
function valueCost(definition: InputDefinition, value: unknown, costOfMembers = membersCost): number {
  if (value === undefined || value === null) return 0;
  const { weight } = costAnnotationOf(definition);
  return (weight ?? 0) + costOfMembers(definition, value, weight === undefined);
}

/** The costs of the values of variables; a document may use one large value in thousands of fields. */
const costs = new WeakMap<object, Map<unknown, number>>();

/** Like `membersCost`, and computes the cost of a value once. */
function rememberedCost(definition: InputDefinition, value: unknown, counts: boolean): number {
  if (typeof value !== 'object' || value === null) return 0;
  const known = getOrCreate(costs, value, () => new Map());
  const type = getNamedType(definition.type);
  const key = counts ? type : type.name;
  return getOrCreate(known, key, () => membersCost(definition, value, counts));
}

function membersCost(definition: InputDefinition, value: unknown, counts: boolean): number {
  const fields = fieldsOf(definition.type);
  if (fields === undefined) return 0;
  if (Array.isArray(value)) {
    return value.reduce<number>((total, item) => total + membersCost(definition, item, counts), 0);
  }
  if (!isObject(value)) return 0;
  let total = counts ? 1 : 0;
  for (const [name, member] of Object.entries(value)) {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (field !== undefined) total += valueCost(field, member);
  }
  return total;
}

function fieldsOf(type: GraphQLInputType): Readonly<Record<string, GraphQLInputField>> | undefined {
  const named = getNamedType(type);
  return isInputObjectType(named) ? named.getFields() : undefined;
}

/** A number that a slicing argument has: undefined if it is not given. */
type SliceSize = number | undefined | ((variables: VariableValues) => number | undefined);

/**
 * The size that a slicing argument requests, by its path; undefined if neither the request nor a default contains
 * it. May be negative.
 */
function sliceSize(
  definitions: readonly GraphQLArgument[],
  node: FieldNode,
  [name, ...path]: readonly string[],
): SliceSize {
  const definition = definitions.find((argument) => argument.name === name);
  const given = node.arguments?.find((argument) => argument.name.value === name)?.value;
  return definition === undefined ? undefined : sizeOfNode(definition, given, path);
}

function sizeOfNode(
  definition: InputDefinition,
  node: ValueNode | undefined,
  path: readonly string[],
): SliceSize {
  if (node === undefined) return sizeOf(definition, undefined, path);
  if (node.kind === Kind.VARIABLE) {
    const name = node.name.value;
    return (variables) => sizeOf(definition, variables[name], path);
  }
  const [first, ...rest] = path;
  if (first === undefined && node.kind === Kind.LIST) return node.values.length;
  if (first === undefined) return sizeOf(definition, valueFromASTUntyped(node), path);
  const field = fieldsOf(definition.type)?.[first];
  if (node.kind !== Kind.OBJECT || field === undefined) return undefined;
  return sizeOfNode(field, node.fields.find((candidate) => candidate.name.value === first)?.value, rest);
}

/** The size in a value, by its path. Values that are not given have their defaults. */
function sizeOf(
  definition: InputDefinition,
  given: unknown,
  [first, ...rest]: readonly string[],
): number | undefined {
  const value = given === undefined ? defaultOf(definition) : given;
  if (value === undefined || value === null) return undefined;
  if (first === undefined) return toSize(value, definition);
  const field = fieldsOf(definition.type)?.[first];
  return field !== undefined && isObject(value) ? sizeOf(field, value[first], rest) : undefined;
}

/**
 * A list requests as many items as it has; a single value becomes a list (GraphQL specification, §3.11). A custom
 * scalar may be a string.
 */
function toSize(value: unknown, { type }: InputDefinition): number {
  if (Array.isArray(value)) return value.length;
  if (listLevels(type) > 0) return 1;
  // The conversion of an object would call its `toString`, which a client may have set to anything.
  const size = typeof value === 'object' ? Number.NaN : Number(value);
  if (Number.isNaN(size)) {
    throw refusalError(`The size of a list is ${formatValue(value)}; it must be a number`, 'BAD_USER_INPUT');
  }
  return size;
}

/** Evaluates a slice size. */
const evaluateSize = (size: SliceSize, variables: VariableValues): number | undefined =>
  typeof size === 'function' ? size(variables) : size;

function listLevels(type: unknown): number {
  let levels = 0;
  for (let inner = type; isNonNullType(inner) || isListType(inner); inner = inner.ofType) {
    if (isListType(inner)) levels += 1;
  }
  return levels;
}

/** The values of an operation's variables, as the client sent them. */
export type VariableValues = Readonly<Record<string, unknown>>;

/** A number, or a function of the variables if it depends on them. */
type Formula = number | ((variables: VariableValues) => number);

export const evaluate = (formula: Formula, variables: VariableValues): number =>
  typeof formula === 'number' ? formula : formula(variables);

/** The sum of formulas. Constant parts are added when the document is prepared. */
function sum(parts: readonly Formula[]): Formula {
  let constant = 0;
  const variable: Exclude<Formula, number>[] = [];
  for (const part of parts) {
    if (typeof part === 'number') constant += part;
    else variable.push(part);
  }
  const [first] = variable;
  if (first === undefined) return constant;
  if (variable.length === 1 && constant === 0) return first;
  return (variables) => {
    let total = constant;
    for (const part of variable) total += part(variables);
    return total;
  };
}

function product(left: Formula, right: Formula): Formula {
  if (left === 0 || right === 0) return 0;
  if (left === 1) return right;
  if (right === 1) return left;
  if (typeof left === 'number' && typeof right === 'number') return left * right;
  return (variables) => evaluate(left, variables) * evaluate(right, variables);
}

/** A formula without its negative values. */
function notNegative(formula: Formula): Formula {
  if (typeof formula === 'number') return Math.max(0, formula);
  return (variables) => Math.max(0, formula(variables));
}

/**
 * The largest of several sums, each a list of indexes of `parts`. Each part is evaluated once, since the parts
 * of nested formulas would otherwise be evaluated exponentially often.
 */
function largestSum(parts: readonly Formula[], sums: readonly (readonly number[])[]): Formula {
  const largestOf = (values: readonly number[]): number => {
    let result = 0;
    for (const indexes of sums) {
      let total = 0;
      for (const index of indexes) total += values[index] as number;
      result = Math.max(result, total);
    }
    return result;
  };
  const constants = parts.filter((part) => typeof part === 'number');
  if (constants.length === parts.length) return largestOf(constants);
  return (variables) => largestOf(parts.map((part) => evaluate(part, variables)));
}

/** 1 if `@skip` and `@include` keep a selection and 0 if they remove it. */
function inclusionOf(directives: readonly DirectiveNode[] = []): Formula {
  let result: Formula = 1;
  for (const { name, arguments: [argument] = [] } of directives) {
    if (name.value !== 'skip' && name.value !== 'include') continue;
    const keeps = name.value === 'include';
    const node = argument?.value;
    if (node?.kind === Kind.BOOLEAN) result = product(result, node.value === keeps ? 1 : 0);
    else if (node?.kind === Kind.VARIABLE) {
      const variable = node.name.value;
      result = product(result, (variables) => ((variables[variable] === true) === keeps ? 1 : 0));
    }
  }
  return result;
}

/** The defaults of an operation's variables. */
function defaultsOf({ variableDefinitions = [] }: OperationDefinitionNode): VariableValues {
  return Object.fromEntries(
    variableDefinitions.flatMap(({ variable, defaultValue }) =>
      defaultValue === undefined ? [] : [[variable.name.value, valueFromASTUntyped(defaultValue)]],
    ),
  );
}

/** Creates a formula that is evaluated with the defaults of variables that are not given. */
function withDefaults(formula: Formula, defaults: VariableValues): Formula {
  if (typeof formula === 'number' || Object.keys(defaults).length === 0) return formula;
  return (variables) => evaluate(formula, { ...defaults, ...variables });
}
