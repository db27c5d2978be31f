import { extendSchema, type GraphQLSchema, parse } from 'graphql';
import type { ErrorSettings } from './options.ts';

const EXTENSION = `
  "What this server supports beyond the specification."
  type __Service { capabilities: [__Capability!]! }
  "A capability of the server."
  type __Capability { name: String! value: String }
`;

const extended = new WeakMap<GraphQLSchema, GraphQLSchema>();

/** Adds `__service` of the GraphQL proposal "service capabilities" to the query type. Schemas stay as they are. */
export function withCapabilities(schema: GraphQLSchema, { modes }: ErrorSettings): GraphQLSchema {
  const known = extended.get(schema);
  if (known !== undefined) return known;
  const query = schema.getQueryType();
  if (query === undefined || query === null) return schema;
  const document = parse(`${EXTENSION} extend type ${query.name} { __service: __Service! }`);
  // The specification reserves names with two underscores for itself, and this is a proposal to it.
  const result = extendSchema(schema, document, { assumeValid: true });
  const field = result.getQueryType()?.getFields()['__service'];
  const capabilities = modes.length === 0 ? [] : [{ name: 'graphql.onError', value: modes.join(' ') }];
  if (field !== undefined) field.resolve = () => ({ capabilities });
  extended.set(schema, result);
  return result;
}
