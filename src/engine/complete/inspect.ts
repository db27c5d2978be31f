/*
 * graphql-js quotes values in error messages with a function that it does not export. An enum without a matching value
 * quotes any value with that function, so the engine uses an enum. A copy of the function would differ between versions.
 */
import { GraphQLEnumType, GraphQLError } from 'graphql';
import { toOutput } from './leaf-output.ts';

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
