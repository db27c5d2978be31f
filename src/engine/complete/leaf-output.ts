/*
 * graphql-js quotes values in error messages with a function that it does not export. An enum without a
 * matching value quotes any value with that function, so the engine uses an enum. A copy of the function
 * would differ between versions.
 */
import { GraphQLEnumType, GraphQLError, type GraphQLLeafType } from 'graphql';
import { V17 } from '../../execution/graphql-version.ts';

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

/** Converts a value for the response. Throws the errors of the type's method. */
export function toOutput(type: GraphQLLeafType, value: unknown): unknown {
  return (type as { [Name in typeof OUTPUT_METHOD]?: OutputFunction })[OUTPUT_METHOD]?.(value);
}

const EMPTY_ENUM = new GraphQLEnumType({ name: 'Empty', values: { NONE: { value: Symbol('none') } } });
const MESSAGE_START = 'Enum "Empty" cannot represent value: ';

/** Formats a value as graphql-js does in messages. Throws the errors of the value's getters. */
export function inspect(value: unknown): string {
  try {
    return String(toOutput(EMPTY_ENUM, value));
  } catch (error) {
    if (!(error instanceof GraphQLError) || !error.message.startsWith(MESSAGE_START)) throw error;
    return error.message.slice(MESSAGE_START.length);
  }
}
