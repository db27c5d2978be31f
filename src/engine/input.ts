import {
  type FieldNode,
  type GraphQLArgument,
  GraphQLBoolean,
  type GraphQLError,
  type GraphQLField,
  GraphQLFloat,
  GraphQLID,
  type GraphQLInputType,
  GraphQLInt,
  type GraphQLScalarType,
  type GraphQLSchema,
  GraphQLString,
  getArgumentValues,
  getVariableValues,
  isEnumType,
  isInputType,
  isNonNullType,
  type OperationDefinitionNode,
  typeFromAST,
  type ValueNode,
  type VariableDefinitionNode,
} from 'graphql';
import { V17 } from '../execution/graphql-version.ts';
import type { EngineSettings } from '../execution/types.ts';
import type { Execution } from './execution.ts';

type Values = Record<string, unknown>;

/** Coerced variables: in the form of `info.variableValues`, and by name. */
export interface CoercedVariables {
  readonly kind: 'coerced';
  readonly variables: Values;
  readonly values: Values;
}

/** The errors of variables that cannot be coerced. */
export interface VariableErrors {
  readonly kind: 'errors';
  readonly errors: readonly GraphQLError[];
}

/** Coerces the variables of a request. */
export type CoerceVariables = (inputs: Values | undefined) => CoercedVariables | VariableErrors;

interface Signature {
  readonly name: string;
  readonly type: GraphQLInputType;
  readonly default: { readonly literal: unknown } | undefined;
}

/** A variable of a built-in scalar. A JSON value of the expected type needs no coercion. */
interface DirectVariable {
  readonly signature: Signature;
  readonly required: boolean;
  readonly accepts: (value: unknown) => boolean;
}

const NO_INPUTS: Values = Object.freeze({});

const isString = (value: unknown): boolean => typeof value === 'string';

/** The values that each built-in scalar accepts unchanged. */
const ACCEPTED_VALUES = new Map<unknown, (value: unknown) => boolean>([
  [GraphQLString, isString],
  [GraphQLID, isString],
  [GraphQLBoolean, (value) => typeof value === 'boolean'],
  [GraphQLInt, (value) => typeof value === 'number' && (value | 0) === value],
  [GraphQLFloat, Number.isFinite],
]);

/** The functions of a scalar that read variables and literals. */
const COERCION_FUNCTIONS = V17 ? ['coerceInputValue', 'coerceInputLiteral'] : ['parseValue', 'parseLiteral'];

const functionsOf = (type: object): readonly unknown[] =>
  COERCION_FUNCTIONS.map((name) => (type as Values)[name]);

const originals = new Map(
  [...ACCEPTED_VALUES.keys()].map((type) => [type, functionsOf(type as GraphQLScalarType)]),
);

/**
 * Whether a type is a built-in scalar with its original input functions. Applications replace these functions
 * to sanitize input, so the engine may skip only the original ones.
 */
function readsInputUnchanged(type: GraphQLInputType): boolean {
  const functions = originals.get(type);
  return functions !== undefined && functionsOf(type).every((value, index) => value === functions[index]);
}

/**
 * Compiles the coercion of an operation's variables. Values of built-in scalars are checked here; graphql-js
 * coerces the rest.
 */
export function compileVariables(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  settings: EngineSettings,
): CoerceVariables {
  const definitions = operation.variableDefinitions ?? [];
  const coerce: CoerceVariables = (inputs) => toCoerced(variableValues(schema, operation, settings, inputs));
  const direct = definitions.map((definition) => directVariable(schema, definition));
  if (!direct.every((variable) => variable !== undefined)) return coerce;
  const read = V17 ? read17 : read16;
  return (inputs) => read(direct, inputs ?? NO_INPUTS) ?? coerce(inputs);
}

/** The result of graphql-js's `getVariableValues`, which differs between its versions. */
export function variableValues(
  schema: GraphQLSchema,
  { variableDefinitions = [] }: OperationDefinitionNode,
  { maxErrors, hideSuggestions }: EngineSettings,
  inputs: Values | undefined,
): object {
  return getVariableValues(schema, variableDefinitions, inputs ?? {}, { maxErrors, hideSuggestions });
}

/** Converts the result of `variableValues`. */
export function toCoerced(result: object): CoercedVariables | VariableErrors {
  const { errors, variableValues, coerced } = result as Values;
  if (errors !== undefined) return { kind: 'errors', errors: errors as readonly GraphQLError[] };
  return V17 ? coerced17(variableValues as Values) : coerced16(coerced as Values);
}

function coerced16(coerced: Values): CoercedVariables {
  return { kind: 'coerced', variables: coerced, values: coerced };
}

function coerced17(variables: Values): CoercedVariables {
  return { kind: 'coerced', variables, values: variables['coerced'] as Values };
}

function directVariable(
  schema: GraphQLSchema,
  definition: VariableDefinitionNode,
): DirectVariable | undefined {
  const type = typeFromAST(schema, definition.type);
  if (!isInputType(type)) return undefined;
  // A variable with the name `__proto__` would set the prototype of the map.
  if (definition.defaultValue !== undefined || definition.variable.name.value === '__proto__')
    return undefined;
  const required = isNonNullType(type);
  const nullable = required ? type.ofType : type;
  const accepts = ACCEPTED_VALUES.get(nullable);
  if (accepts === undefined || !readsInputUnchanged(nullable)) return undefined;
  const signature = { name: definition.variable.name.value, type, default: undefined };
  return { signature, required, accepts };
}

function isValid({ required, accepts }: DirectVariable, value: unknown): boolean {
  return value === null ? !required : accepts(value);
}

function read16(direct: readonly DirectVariable[], inputs: Values): CoercedVariables | undefined {
  const coerced: Values = {};
  for (const variable of direct) {
    const { name } = variable.signature;
    if (!Object.hasOwn(inputs, name)) {
      if (variable.required) return undefined;
    } else {
      const value = inputs[name];
      if (!isValid(variable, value)) return undefined;
      coerced[name] = value;
    }
  }
  return coerced16(coerced);
}

function read17(direct: readonly DirectVariable[], inputs: Values): CoercedVariables | undefined {
  const sources: Values = Object.create(null);
  const coerced: Values = Object.create(null);
  for (const variable of direct) {
    const { signature } = variable;
    const { name } = signature;
    const value = Object.hasOwn(inputs, name) ? inputs[name] : undefined;
    if (value === undefined) {
      if (variable.required) return undefined;
      sources[name] = { signature };
    } else {
      if (!isValid(variable, value)) return undefined;
      sources[name] = { signature, value };
      coerced[name] = value;
    }
  }
  return coerced17({ sources, coerced });
}

type Arguments = Record<string, unknown>;

/** graphql 16 passes plain objects to resolvers, 17 objects without a prototype. */
export const emptyArguments: () => Arguments = V17 ? () => Object.create(null) : () => ({});

/** The signature of 17; 16 ignores the additional parameters. */
const coerceArguments: (
  definition: GraphQLField<unknown, unknown>,
  node: FieldNode,
  variables: Record<string, unknown>,
  fragmentVariables: undefined,
  hideSuggestions: boolean,
) => Arguments = getArgumentValues;

/** The source of one argument: a value known at compile time, or a variable. */
interface ArgumentSource {
  readonly name: string;
  readonly variable: string | undefined;
  readonly required: boolean;
  readonly value: unknown;
}

/**
 * Compiles the arguments of a field. Plain variables and constants of built-in types are read directly.
 * graphql-js coerces everything else, and everything that may be invalid, in each execution.
 */
export function compileArguments(
  definition: GraphQLField<unknown, unknown>,
  node: FieldNode,
): (ex: Execution) => Arguments {
  if (definition.args.length === 0) return emptyArguments;
  const coerce = (ex: Execution): Arguments =>
    coerceArguments(definition, node, ex.variables, undefined, ex.program.settings.hideSuggestions);
  const sources = sourcesOf(definition, node);
  if (sources === undefined) return coerce;
  return (ex) => {
    const args = emptyArguments();
    for (const source of sources) {
      const { variable } = source;
      if (variable === undefined) args[source.name] = source.value;
      else {
        if (!Object.hasOwn(ex.values, variable)) return coerce(ex);
        const value = ex.values[variable];
        if (source.required && (value === null || value === undefined)) return coerce(ex);
        args[source.name] = value;
      }
    }
    return args;
  };
}

function sourcesOf(
  definition: GraphQLField<unknown, unknown>,
  node: FieldNode,
): ArgumentSource[] | undefined {
  const constants = constantsOf(definition, node);
  if (constants === undefined) return undefined;
  const sources: ArgumentSource[] = [];
  for (const argument of definition.args) {
    const { name } = argument;
    const given = valueNode(node, name);
    const required = isNonNullType(argument.type);
    if (given?.kind === 'Variable') {
      sources.push({ name, variable: given.name.value, required, value: undefined });
    } else if (Object.hasOwn(constants, name)) {
      sources.push({ name, variable: undefined, required, value: constants[name] });
    }
  }
  return sources;
}

/** The coerced arguments other than variables; undefined if they may differ between calls or are invalid. */
function constantsOf(definition: GraphQLField<unknown, unknown>, node: FieldNode): Arguments | undefined {
  const literal = definition.args.filter(({ name }) => valueNode(node, name)?.kind !== 'Variable');
  if (!literal.every(isConstant)) return undefined;
  try {
    return getArgumentValues({ ...definition, args: literal }, node);
  } catch {
    return undefined;
  }
}

function isConstant({ type }: GraphQLArgument): boolean {
  // Resolvers may modify lists and input objects, so each call needs a new one. Custom scalars run code of
  // the user.
  const inner = isNonNullType(type) ? type.ofType : type;
  return isEnumType(inner) || readsInputUnchanged(inner);
}

function valueNode(node: FieldNode, name: string): ValueNode | undefined {
  return node.arguments?.find((argument) => argument.name.value === name)?.value;
}
