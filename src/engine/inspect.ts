import { GraphQLEnumType, GraphQLError } from 'graphql';
import { toOutput } from './output.ts';

const NOTHING = new GraphQLEnumType({ name: 'Nothing', values: { NOTHING: { value: Symbol('nothing') } } });
const BEFORE = 'Enum "Nothing" cannot represent value: ';

/**
 * A value as graphql-js shows it in messages. Its function is not exported; an enum that knows no value quotes it.
 * Throws what the value's own getters throw.
 */
export function inspect(value: unknown): string {
  try {
    return String(toOutput(NOTHING, value));
  } catch (error) {
    if (!(error instanceof GraphQLError) || !error.message.startsWith(BEFORE)) throw error;
    return error.message.slice(BEFORE.length);
  }
}
