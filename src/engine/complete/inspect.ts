/*
 * graphql-js quotes values in its error messages with a function that it does not export. An enum without matching value
 * quotes any value with it, so an enum is the only exact way to use that function. A copy would differ between versions.
 */
import { GraphQLEnumType, GraphQLError } from 'graphql';
import { toOutput } from './leaf-output.ts';

const EMPTY_ENUM = new GraphQLEnumType({ name: 'Empty', values: { NONE: { value: Symbol('none') } } });
const MESSAGE_START = 'Enum "Empty" cannot represent value: ';

/** Formats a value as graphql-js does in messages. Throws what getters of the value throw. */
export function inspect(value: unknown): string {
  try {
    return String(toOutput(EMPTY_ENUM, value));
  } catch (error) {
    if (!(error instanceof GraphQLError) || !error.message.startsWith(MESSAGE_START)) throw error;
    return error.message.slice(MESSAGE_START.length);
  }
}
