import { buildSchema, DirectiveLocation, GraphQLError, GraphQLSchema, type ValidationRule } from 'graphql';
import { optionError } from '../options/rules.ts';
import { IDEMPOTENCY_OPTIONS } from '../options/scopes.ts';

const NAME = 'idempotent';

// The text is public, so the declarations of this file are part of the package: it stays apart from the rest.

/** The definition of `@idempotent`, for tools that read the schema without the handler. */
export const idempotentTypeDefs = `"""
Executes a mutation once: a repetition with the same key gets the stored result.
"""
directive @idempotent(
  "A value that is unique to this mutation, such as a UUID."
  key: String!
) on FIELD
`;

const extended = new WeakMap<GraphQLSchema, GraphQLSchema>();

/**
 * Adds `@idempotent` to a schema. The schema itself stays as it is.
 *
 * @throws TypeError (code `ERR_OPTION`) if the schema has another directive of that name.
 */
export function withDirective(schema: GraphQLSchema): GraphQLSchema {
  const own = schema.getDirective(NAME);
  if (own !== undefined && own !== null) {
    const isSame =
      own.locations.includes(DirectiveLocation.FIELD) && own.args.some(({ name }) => name === 'key');
    if (isSame) return schema;
    throw optionError(
      IDEMPOTENCY_OPTIONS,
      `option "idempotency" is set, but the schema has another directive @${NAME}; expected: directive @idempotent(key: String!) on FIELD`,
    );
  }
  const known = extended.get(schema);
  if (known !== undefined) return known;
  // `extendSchema` would replace the types.
  const config = schema.toConfig();
  const added = buildSchema(idempotentTypeDefs)
    .getDirectives()
    .filter(({ name }) => name === NAME);
  const directives = [...config.directives, ...added];
  const result = new GraphQLSchema({ ...config, directives, assumeValid: true });
  extended.set(schema, result);
  return result;
}

/** Refuses `@idempotent` where it would have no effect. */
export const rootFieldsOnly: ValidationRule = (context) => ({
  Directive(node) {
    if (node.name.value !== NAME) return;
    const type = context.getParentType();
    if (type && type === context.getSchema().getMutationType()) return;
    const message = `The directive "@${NAME}" may only be used at the fields of the mutation type.`;
    context.reportError(new GraphQLError(message, { nodes: node }));
  },
});
