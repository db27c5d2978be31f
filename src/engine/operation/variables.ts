import {
  GraphQLBoolean,
  type GraphQLError,
  GraphQLFloat,
  GraphQLID,
  type GraphQLInputType,
  GraphQLInt,
  type GraphQLSchema,
  GraphQLString,
  getNamedType,
  getVariableValues,
  isInputType,
  isNonNullType,
  type OperationDefinitionNode,
  typeFromAST,
  type VariableDefinitionNode,
} from 'graphql';
import type { EngineSettings } from '../../execution/engine.ts';
import { V17 } from '../../execution/graphql-version.ts';
import { readsInputUnchanged, type SchemaSnapshot } from '../run/schema-functions.ts';

type Values = Record<string, unknown>;

/** Coerced variables: in the form of `info.variableValues`, and by name. */
export interface CoercedVariables {
  readonly variables: Values;
  readonly values: Values;
}

/** The errors of variables that cannot be coerced. */
export interface VariableErrors {
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
const ACCEPTED_VALUES: ReadonlyMap<unknown, (value: unknown) => boolean> = new Map<
  unknown,
  (value: unknown) => boolean
>([
  [GraphQLString, isString],
  [GraphQLID, isString],
  [GraphQLBoolean, (value) => typeof value === 'boolean'],
  [GraphQLInt, (value) => typeof value === 'number' && (value | 0) === value],
  [GraphQLFloat, Number.isFinite],
]);

/**
 * Compiles the coercion of an operation's variables. Values of built-in scalars are checked here; graphql-js
 * coerces the rest.
 */
export function compileVariables(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  settings: EngineSettings,
  snapshot: SchemaSnapshot,
): CoerceVariables {
  const definitions = operation.variableDefinitions ?? [];
  const coerce: CoerceVariables = (inputs) => toCoerced(variableValues(schema, operation, settings, inputs));
  const direct = definitions.map((definition) => directVariable(schema, definition, snapshot));
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
  if (errors !== undefined) return { errors: errors as readonly GraphQLError[] };
  return V17 ? coerced17(variableValues as Values) : coerced16(coerced as Values);
}

function coerced16(coerced: Values): CoercedVariables {
  return { variables: coerced, values: coerced };
}

function coerced17(variables: Values): CoercedVariables {
  return { variables, values: variables['coerced'] as Values };
}

function directVariable(
  schema: GraphQLSchema,
  definition: VariableDefinitionNode,
  snapshot: SchemaSnapshot,
): DirectVariable | undefined {
  const type = typeFromAST(schema, definition.type);
  if (!isInputType(type)) return undefined;
  snapshot.addInputType(getNamedType(type));
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
