import { type FieldNode, GraphQLError, type GraphQLField } from 'graphql';
import type { ListSize } from './annotations.ts';
import { evaluateSize, sliceSize } from './arguments.ts';
import type { Formula } from './formula.ts';

/**
 * The number of items that `@listSize` gives a field or its sized fields: the largest slicing argument, or the
 * assumed size; undefined without both. Evaluating it throws a GraphQLError if the request must contain
 * exactly one slicing argument and does not.
 */
export function expectedSize(
  { assumedSize, slicingArguments, requireOneSlicingArgument }: ListSize,
  definition: GraphQLField<unknown, unknown>,
  node: FieldNode,
  defaults: { readonly listSize: number; readonly requiresSlicing: boolean },
): Formula | undefined {
  if (slicingArguments.length === 0) return assumedSize;
  const unlimited = assumedSize ?? defaults.listSize;
  // A negative size may select items from the end, or all items, as in SQL and Array.prototype.slice.
  const itemsOf = (size: number): number => (size < 0 ? Math.max(-size, unlimited) : size);
  const sizes = slicingArguments.map((path) => sliceSize(definition.args, node, path));
  if (!sizes.some((size) => typeof size === 'function')) {
    const given = sizes.filter((size) => typeof size === 'number');
    const count = given.length;
    if (given[0] !== undefined && count === 1) return itemsOf(given[0]);
    if (count === 0 && assumedSize !== undefined) return assumedSize;
  }
  const isStrict = requireOneSlicingArgument && defaults.requiresSlicing;
  const names = slicingArguments.map((path) => `"${path.join('.')}"`).join(', ');
  return (variables) => {
    let largest: number | undefined;
    let count = 0;
    for (const size of sizes) {
      const value = evaluateSize(size, variables);
      if (value === undefined) continue;
      count += 1;
      largest = Math.max(largest ?? 0, itemsOf(value));
    }
    if (isStrict && (count > 1 || (count === 0 && assumedSize === undefined))) {
      throw new GraphQLError(
        `The field "${definition.name}" has ${count} of the arguments ${names}; exactly one is required`,
        { nodes: [node], extensions: { code: 'SLICING_ARGUMENT_REQUIRED' } },
      );
    }
    return largest ?? unlimited;
  };
}

/** Costs nothing, and throws the error of a size that no selected list uses. */
export const sizeCheck = (size: Formula | undefined): Formula =>
  typeof size === 'function' ? (variables) => size(variables) * 0 : 0;
