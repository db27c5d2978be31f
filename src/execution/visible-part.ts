import type { GraphQLSchema, OperationTypeNode } from 'graphql';

// A caller may see only a part of a schema: the part validates its operations, and the whole schema executes them.

const wholes = new WeakMap<GraphQLSchema, GraphQLSchema>();

/** Says which schema executes the operations of callers that may use the names of `visible`, which it returns. */
export function markVisible(visible: GraphQLSchema, whole: GraphQLSchema): GraphQLSchema {
  wholes.set(visible, whole);
  return visible;
}

/** The resolver of the only field of a root type of which a caller sees nothing. */
export const nothing = (): null => null;

/** The schema that executes operations of a caller: the whole one of the schema whose names the caller may use. */
export function executingSchema(visible: GraphQLSchema, operation: OperationTypeNode): GraphQLSchema {
  const whole = wholes.get(visible);
  const [field] = Object.values(visible.getRootType(operation)?.getFields() ?? {});
  return whole === undefined || field?.resolve === nothing ? visible : whole;
}
