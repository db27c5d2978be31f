import type { GraphQLLeafType } from 'graphql';
import { V17 } from '../../execution/graphql-version.ts';

type OutputFunction = (value: unknown) => unknown;

/** The method of leaf types that converts values for the response. graphql 17 renamed it, and error messages name it. */
export const OUTPUT_METHOD: 'serialize' | 'coerceOutputValue' = V17 ? 'coerceOutputValue' : 'serialize';

/** The output method of a type, to detect whether it was replaced. */
export function outputFunction(type: GraphQLLeafType): OutputFunction | undefined {
  return (type as { [Name in typeof OUTPUT_METHOD]?: OutputFunction })[OUTPUT_METHOD];
}

/** Converts a value for the response. Throws the errors of the type's method. */
export function toOutput(type: GraphQLLeafType, value: unknown): unknown {
  return (type as { [Name in typeof OUTPUT_METHOD]?: OutputFunction })[OUTPUT_METHOD]?.(value);
}
