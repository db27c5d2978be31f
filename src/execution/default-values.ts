import { astFromValue, type GraphQLInputType, Kind, type ValueNode, valueFromASTUntyped } from 'graphql';

/** An argument, an input field, or the configuration of one. */
interface Input {
  readonly type: GraphQLInputType;
  readonly defaultValue?: unknown;
  readonly astNode?: { readonly defaultValue?: ValueNode | undefined } | null | undefined;
}

const known = new WeakMap<Input, unknown>();

/**
 * Returns the default value of an argument or an input field as a client would send it; undefined if it has none.
 * graphql 17 has another member for default values, and keeps them as they were written.
 */
export function defaultOf(input: Input): unknown {
  if (!known.has(input)) known.set(input, readDefault(input));
  return known.get(input);
}

function readDefault(input: Input): unknown {
  const { defaultValue, default: given } = input as Input & {
    readonly default?: { readonly value?: unknown; readonly literal?: ValueNode } | undefined;
  };
  if (given === undefined && defaultValue === undefined) return undefined;
  if (given !== undefined && given.literal === undefined) return given.value;
  const literal = given?.literal ?? input.astNode?.defaultValue ?? astFromValue(defaultValue, input.type);
  return literal == null ? undefined : literalValue(literal, {});
}

/** Like `valueFromASTUntyped`, with the text of integers that a number cannot represent, such as long ids. */
export function literalValue(node: ValueNode, variables: Readonly<Record<string, unknown>>): unknown {
  switch (node.kind) {
    case Kind.INT:
      return Number.isSafeInteger(Number(node.value)) ? Number(node.value) : node.value;
    case Kind.LIST:
      return node.values.map((item) => literalValue(item, variables));
    case Kind.OBJECT:
      return Object.fromEntries(
        node.fields.map(({ name, value }) => [name.value, literalValue(value, variables)]),
      );
    default:
      return valueFromASTUntyped(node, variables as Record<string, unknown>);
  }
}
