import type { GraphQLLeafType } from 'graphql';
import { V17 } from '../execution/graphql-version.ts';

type OutputFunction = (value: unknown) => unknown;

/** A leaf type's own function from values to JSON; its name changed with 17, and messages quote it. */
export const OUTPUT_METHOD: 'serialize' | 'coerceOutputValue' = V17 ? 'coerceOutputValue' : 'serialize';

/** The function itself, to be recognised. */
export function outputFunction(type: GraphQLLeafType): OutputFunction | undefined {
  return (type as { [Name in typeof OUTPUT_METHOD]?: OutputFunction })[OUTPUT_METHOD];
}

/** A value as the type puts it into the answer. Throws what the type throws. */
export function toOutput(type: GraphQLLeafType, value: unknown): unknown {
  return (type as { [Name in typeof OUTPUT_METHOD]?: OutputFunction })[OUTPUT_METHOD]?.(value);
}
