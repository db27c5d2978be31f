import {
  GraphQLBoolean,
  type GraphQLError,
  GraphQLFloat,
  GraphQLID,
  type GraphQLInputType,
  GraphQLInt,
  type GraphQLSchema,
  GraphQLString,
  getVariableValues,
  isInputType,
  isNonNullType,
  type OperationDefinitionNode,
  typeFromAST,
  type VariableDefinitionNode,
} from 'graphql';
import { V17 } from '../execution/graphql-version.ts';
import type { EngineSettings } from '../execution/types.ts';

type Values = Record<string, unknown>;

/** Coerced variables: as resolvers see them in `info`, and by name. */
export interface Variables {
  readonly variables: Values;
  readonly values: Values;
}

/** What is wrong with what a request sent. */
export interface Rejected {
  readonly errors: readonly GraphQLError[];
}

/** Coerces what a request sent. */
export type CoerceVariables = (inputs: Values | undefined) => Variables | Rejected;

interface Signature {
  readonly name: string;
  readonly type: GraphQLInputType;
  readonly default: { readonly literal: unknown } | undefined;
}

/** A variable whose JSON value, when it has the right type, is its coerced value. */
interface Direct {
  readonly signature: Signature;
  readonly required: boolean;
  readonly accepts: (value: unknown) => boolean;
}

const isText = (value: unknown): boolean => typeof value === 'string';

/** What each built-in scalar takes as it is. */
const ACCEPTS: ReadonlyMap<unknown, (value: unknown) => boolean> = new Map<
  unknown,
  (value: unknown) => boolean
>([
  [GraphQLString, isText],
  [GraphQLID, isText],
  [GraphQLBoolean, (value) => typeof value === 'boolean'],
  [GraphQLInt, (value) => typeof value === 'number' && (value | 0) === value],
  [GraphQLFloat, Number.isFinite],
]);

/** How the variables of an operation are coerced: built-in scalars by looking at them, all else by graphql-js. */
export function compileVariables(
  schema: GraphQLSchema,
  operation: OperationDefinitionNode,
  { maxErrors, hideSuggestions }: EngineSettings,
): CoerceVariables {
  const definitions = operation.variableDefinitions ?? [];
  const options = { maxErrors, hideSuggestions };
  const coerce = (inputs: Values | undefined): Variables | Rejected => {
    const result: Record<string, unknown> = {
      ...getVariableValues(schema, definitions, inputs ?? {}, options),
    };
    if (result['errors'] !== undefined) return { errors: result['errors'] as readonly GraphQLError[] };
    return V17 ? ofSeventeen(result['variableValues'] as Values) : ofSixteen(result['coerced'] as Values);
  };
  const direct = definitions.map((definition) => directly(schema, definition));
  if (!direct.every((variable) => variable !== undefined)) return coerce;
  const read = V17 ? readSeventeen : readSixteen;
  return (inputs) => read(direct, inputs ?? {}) ?? coerce(inputs);
}

function ofSixteen(coerced: Values): Variables {
  return { variables: coerced, values: coerced };
}

function ofSeventeen(variables: Values): Variables {
  return { variables, values: variables['coerced'] as Values };
}

function directly(schema: GraphQLSchema, definition: VariableDefinitionNode): Direct | undefined {
  const type = typeFromAST(schema, definition.type);
  if (definition.defaultValue !== undefined || !isInputType(type)) return undefined;
  const required = isNonNullType(type);
  const accepts = ACCEPTS.get(required ? type.ofType : type);
  if (accepts === undefined) return undefined;
  const signature = { name: definition.variable.name.value, type, default: undefined };
  return { signature, required, accepts };
}

function isRight({ required, accepts }: Direct, value: unknown): boolean {
  return value === null ? !required : accepts(value);
}

function readSixteen(direct: readonly Direct[], inputs: Values): Variables | undefined {
  const coerced: Values = {};
  for (const variable of direct) {
    const { name } = variable.signature;
    if (!Object.hasOwn(inputs, name)) {
      if (variable.required) return undefined;
    } else {
      const value = inputs[name];
      if (!isRight(variable, value)) return undefined;
      coerced[name] = value;
    }
  }
  return ofSixteen(coerced);
}

function readSeventeen(direct: readonly Direct[], inputs: Values): Variables | undefined {
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
      if (!isRight(variable, value)) return undefined;
      sources[name] = { signature, value };
      coerced[name] = value;
    }
  }
  return ofSeventeen({ sources, coerced });
}
