import type { GraphQLSchema } from 'graphql';
import { optional } from '../src/graphql/optional.ts';

export { authTypeDefs } from '../src/auth/directives.ts';
export type * from '../types/auth.ts';

/**
 * Returns the part of a schema that callers with these scopes may use, for the option `auth.schemaFor` of
 * `graphqlHTTP`, which executes operations with the whole schema.
 *
 * @param scopes - the scopes; null for callers that are not signed in
 * @param policies - the policies that these callers meet; what requires other policies is hidden
 * @throws TypeError (code `ERR_OPTION`) for a wrong directive in the schema.
 */
export function visibleSchema(
  schema: GraphQLSchema,
  scopes: readonly string[] | null,
  policies: readonly string[] = [],
): GraphQLSchema {
  return optional.auth().visiblePart(schema, scopes, policies);
}
