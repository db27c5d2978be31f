import {
  type FieldNode,
  type GraphQLArgument,
  GraphQLError,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLInputType,
  getNamedType,
  isInputObjectType,
  isListType,
  isNonNullType,
  Kind,
  type ValueNode,
  valueFromASTUntyped,
} from 'graphql';
import { refusalError } from '../execution/graphql-error.ts';
import { formatValue, isObject } from '../options/rules.ts';
import { costAnnotationOf, type ListSize } from './annotations.ts';
import { type Formula, sum, type VariableValues } from './formula.ts';

/**
 * The number of items that `@listSize` gives a field or its sized fields: the largest slicing argument, or the
 * assumed size; undefined without both. Evaluating it throws a GraphQLError if the request must contain
 * exactly one slicing argument and does not.
 */
export function expectedSize(
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
export const sizeCheck = (size: Formula | undefined): Formula =>
  typeof size === 'function' ? (variables) => size(variables) * 0 : 0;

type InputDefinition = GraphQLArgument | GraphQLInputField;

/** The cost of the arguments of a field that the document contains. */
export function argumentsCost(definitions: readonly GraphQLArgument[], node: FieldNode): Formula {
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
  let known = costs.get(value);
  if (known === undefined) {
    known = new Map();
    costs.set(value, known);
  }
  const type = getNamedType(definition.type);
  const key = counts ? type : type.name;
  let cost = known.get(key);
  if (cost === undefined) {
    cost = membersCost(definition, value, counts);
    known.set(key, cost);
  }
  return cost;
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
  const value = given === undefined ? defaultValueOf(definition) : given;
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

/** graphql 17 has other members for default values, so those of SDL are read from it. */
function defaultValueOf({ astNode, ...definition }: InputDefinition): unknown {
  if (astNode?.defaultValue !== undefined) return valueFromASTUntyped(astNode.defaultValue);
  const { defaultValue, default: input } = definition as {
    readonly defaultValue?: unknown;
    readonly default?: { readonly value?: unknown };
  };
  return defaultValue ?? input?.value;
}

/** Evaluates a slice size. */
const evaluateSize = (size: SliceSize, variables: VariableValues): number | undefined =>
  typeof size === 'function' ? size(variables) : size;

/** The levels of lists in a type. */
export function listLevels(type: unknown): number {
  let levels = 0;
  for (let inner = type; isNonNullType(inner) || isListType(inner); inner = inner.ofType) {
    if (isListType(inner)) levels += 1;
  }
  return levels;
}
