import {
  GraphQLBoolean,
  GraphQLFloat,
  GraphQLID,
  GraphQLInt,
  type GraphQLScalarType,
  GraphQLString,
} from 'graphql';
import { V17 } from '../../execution/graphql-version.ts';

type InputFunctions = Readonly<Record<string, unknown>>;

/** The functions of a scalar that read variables and literals. */
const NAMES = V17 ? ['coerceInputValue', 'coerceInputLiteral'] : ['parseValue', 'parseLiteral'];

const functionsOf = (type: GraphQLScalarType): readonly unknown[] =>
  NAMES.map((name) => (type as object as InputFunctions)[name]);

const originals: ReadonlyMap<unknown, readonly unknown[]> = new Map(
  [GraphQLString, GraphQLID, GraphQLInt, GraphQLFloat, GraphQLBoolean].map((type) => [
    type,
    functionsOf(type),
  ]),
);

/**
 * Whether a type is a built-in scalar with its original input functions. Applications replace these functions to sanitize
 * input, so the engine may skip only the original ones.
 */
export function readsInputUnchanged(type: unknown): boolean {
  const functions = originals.get(type);
  if (functions === undefined) return false;
  return functionsOf(type as GraphQLScalarType).every((value, index) => value === functions[index]);
}
