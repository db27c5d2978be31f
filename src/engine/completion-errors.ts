import {
  type FieldNode,
  type GraphQLAbstractType,
  GraphQLEnumType,
  GraphQLError,
  type GraphQLLeafType,
  type GraphQLSchema,
  isObjectType,
  specifiedScalarTypes,
} from 'graphql';
import { isGraphQLError, markServerError } from '../execution/graphql-error.ts';
import { V17 } from '../execution/graphql-version.ts';

/*
 * The errors of an executor about the values that functions of the application return, equal to those of graphql-js.
 * Their messages contain the values, so they are marked where they are created.
 */

type OutputFunction = (value: unknown) => unknown;

/**
 * The method of leaf types that converts values for the response. graphql 17 renamed it, and error messages
 * name it.
 */
export const OUTPUT_METHOD: 'serialize' | 'coerceOutputValue' = V17 ? 'coerceOutputValue' : 'serialize';

/** The output method of a type, to detect whether it was replaced. */
export function outputFunction(type: GraphQLLeafType): OutputFunction | undefined {
  return (type as { [Name in typeof OUTPUT_METHOD]?: OutputFunction })[OUTPUT_METHOD];
}

const ownOutputs: ReadonlyMap<unknown, unknown> = new Map(
  specifiedScalarTypes.map((type) => [type, outputFunction(type)]),
);
const enumOutput = outputFunction(GraphQLEnumType.prototype);

/** Whether a type converts values with a function of graphql-js. */
function hasOwnOutput(type: GraphQLLeafType): boolean {
  const output = outputFunction(type);
  return output !== undefined && (output === enumOutput || output === ownOutputs.get(type));
}

/** Converts a value for the response. Throws the errors of a function of the application as they are. */
export function toOutput(type: GraphQLLeafType, value: unknown): unknown {
  try {
    return (type as { [Name in typeof OUTPUT_METHOD]?: OutputFunction })[OUTPUT_METHOD]?.(value);
  } catch (error) {
    if (isGraphQLError(error) && hasOwnOutput(type)) markServerError(error);
    throw error;
  }
}

/*
 * graphql-js quotes values in error messages with a function that it does not export. An enum without a
 * matching value quotes any value with that function. A copy of the function would differ between versions.
 */
const EMPTY_ENUM = new GraphQLEnumType({ name: 'Empty', values: { NONE: { value: Symbol('none') } } });
const MESSAGE_START = 'Enum "Empty" cannot represent value: ';

/** Formats a value as graphql-js does in messages. Throws the errors of the value's getters. */
export function inspect(value: unknown): string {
  try {
    return String(outputFunction(EMPTY_ENUM)?.call(EMPTY_ENUM, value));
  } catch (error) {
    if (!(error instanceof GraphQLError) || !error.message.startsWith(MESSAGE_START)) throw error;
    return error.message.slice(MESSAGE_START.length);
  }
}

type Nodes = readonly FieldNode[] | undefined;

const serverError = (message: string, nodes?: Nodes): GraphQLError =>
  markServerError(new GraphQLError(message, nodes && { nodes }));

/** `field` is the coordinate of the field. */
export const notIterable = (field: string): GraphQLError =>
  serverError(`Expected Iterable, but did not find one for field "${field}".`);

/** The error of a value for which `isTypeOf` of its type is false. */
export const wrongTypeError = (name: string, value: unknown, nodes: Nodes): GraphQLError =>
  serverError(`Expected value of type "${name}" but got: ${inspect(value)}.`, nodes);

/** The result of a type resolver, the value that it was called with, and the coordinate of the field. */
interface ResolvedName {
  readonly name: unknown;
  readonly value: unknown;
  readonly field: string;
  readonly nodes: Nodes;
}

export function assertRuntimeType(
  schema: GraphQLSchema,
  type: GraphQLAbstractType,
  resolved: ResolvedName,
): void {
  const { name, nodes } = resolved;
  if (typeof name !== 'string') throw noNameError(type, resolved);
  const found = schema.getType(name);
  if (found === undefined || found === null) {
    const message = `Abstract type "${type.name}" was resolved to a type "${name}" that does not exist inside the schema.`;
    throw serverError(message, nodes);
  }
  if (!isObjectType(found)) {
    throw serverError(`Abstract type "${type.name}" was resolved to a non-object type "${name}".`, nodes);
  }
  if (!schema.isSubType(type, found)) {
    const message = `Runtime Object type "${found.name}" is not a possible type for "${type.name}".`;
    throw serverError(message, nodes);
  }
}

function noNameError(type: GraphQLAbstractType, { name, value, field, nodes }: ResolvedName): GraphQLError {
  const must = `Abstract type "${type.name}" must resolve to an Object type at runtime for field "${field}"`;
  if (name === null || name === undefined) {
    const how = `Either the "${type.name}" type should provide a "resolveType" function or each possible type should provide an "isTypeOf" function.`;
    return serverError(`${must}. ${how}`, nodes);
  }
  if (!V17 && isObjectType(name)) {
    return serverError(
      'Support for returning GraphQLObjectType from resolveType was removed in graphql-js@16.0.0 please return type name instead.',
    );
  }
  const received = `${must} with value ${inspect(value)}, received "${inspect(name)}"`;
  return serverError(`${received}${V17 ? ', which is not a valid Object type name' : ''}.`);
}
