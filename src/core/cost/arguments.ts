import {
  type FieldNode,
  type GraphQLArgument,
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
import { formatValue } from '../../options/format-value.ts';
import { isObject } from '../../options/rules.ts';
import { refusalError } from '../errors.ts';
import { costAnnotationOf } from './annotations.ts';
import { evaluate, type Formula, sum, type VariableValues } from './formula.ts';

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

/** The size that a slicing argument requests, by its path; undefined if the request does not contain it. */
export function sliceSize(
  definitions: readonly GraphQLArgument[],
  node: FieldNode,
  [name, ...path]: readonly string[],
): SliceSize {
  const given = node.arguments?.find((argument) => argument.name.value === name)?.value;
  const definition = definitions.find((argument) => argument.name === name);
  if (given !== undefined) return sizeOfNode(given, path);
  return definition === undefined ? undefined : sizeOf(memberOf(defaultValueOf(definition), path));
}

function sizeOfNode(node: ValueNode, path: readonly string[]): SliceSize {
  if (node.kind === Kind.VARIABLE) {
    const name = node.name.value;
    return (variables) => sizeOf(memberOf(variables[name], path));
  }
  const [first, ...rest] = path;
  if (first === undefined)
    return node.kind === Kind.LIST ? node.values.length : sizeOf(valueFromASTUntyped(node));
  if (node.kind !== Kind.OBJECT) return undefined;
  const field = node.fields.find((candidate) => candidate.name.value === first);
  return field === undefined ? undefined : sizeOfNode(field.value, rest);
}

const memberOf = (value: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>((inner, name) => (isObject(inner) ? inner[name] : undefined), value);

/** A list requests as many items as it has; a custom scalar may be a string. */
function sizeOf(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (Array.isArray(value)) return value.length;
  // The conversion of an object would call its `toString`, which a client may have set to anything.
  const size = typeof value === 'object' ? Number.NaN : Number(value);
  if (Number.isNaN(size)) {
    throw refusalError(`The size of a list is ${formatValue(value)}; it must be a number`, 'BAD_USER_INPUT');
  }
  return Math.max(size, 0);
}

/** graphql 17 has other members for default values, so those of SDL are read from it. */
function defaultValueOf({ astNode, ...definition }: GraphQLArgument): unknown {
  if (astNode?.defaultValue !== undefined) return valueFromASTUntyped(astNode.defaultValue);
  const { defaultValue, default: input } = definition as {
    readonly defaultValue?: unknown;
    readonly default?: { readonly value?: unknown };
  };
  return defaultValue ?? input?.value;
}

/** Evaluates a slice size. */
export const evaluateSize = (size: SliceSize, variables: VariableValues): number | undefined =>
  typeof size === 'function' ? size(variables) : size;

/** The levels of lists in a type. */
export function listLevels(type: unknown): number {
  let levels = 0;
  for (let inner = type; isNonNullType(inner) || isListType(inner); inner = inner.ofType) {
    if (isListType(inner)) levels += 1;
  }
  return levels;
}

/** Creates a formula that is evaluated with the defaults of variables that are not given. */
export function withDefaults(formula: Formula, defaults: VariableValues): Formula {
  if (typeof formula === 'number' || Object.keys(defaults).length === 0) return formula;
  return (variables) => evaluate(formula, { ...defaults, ...variables });
}
